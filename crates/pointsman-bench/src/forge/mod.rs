//! What a forge on a server is asked in a day: by us with polling alone, by us with webhooks, and by the original's fixed
//! polls, each against a fake Forgejo of its own that counts.
//!
//! `day` is what its people and its CI do, `seed` the original's pattern. The day passes so many times as fast, with
//! every pace of the three divided by the same number; what our daemon does itself takes the time it takes.

mod day;
mod seed;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::{Context, anyhow};
use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OWNER, REPO, Rules, Traffic};
use serde_json::{Value, json};

use self::day::{CODING, Clock, FIXING, Lived, MORNING};
use crate::report::{Report, Target};
use crate::stage::{Stage, Workspace};
use crate::wait;

/// Issue 6: so much of the original's calls at most, by polling alone.
const POLLING_LIMIT: f64 = 25.0;
/// Issue 6: and with webhooks.
const WEBHOOKS_LIMIT: f64 = 5.0;
/// For the daemon to listen for webhooks, and to ask for the first time.
const LISTEN_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);
/// What both sides sign with.
const SECRET: &str = "bench-webhook-secret";

/// Lives through the day three times, at the same time.
pub(crate) fn measure(place: &Workspace, factor: u32) -> anyhow::Result<Report> {
    let (polling, webhooks, seed) = thread::scope(|scope| {
        let polling = scope.spawn(|| ours(place, factor, Listening::None));
        let webhooks = scope.spawn(|| ours(place, factor, Listening::Webhooks));
        let seed = scope.spawn(|| original(factor));
        let lived = |thread: thread::ScopedJoinHandle<'_, anyhow::Result<Lived>>| {
            thread.join().map_err(|_| anyhow!("a day ended in panic"))?
        };
        anyhow::Ok((
            lived(polling).context("polling alone")?,
            lived(webhooks).context("with webhooks")?,
            lived(seed).context("the original")?,
        ))
    })?;
    let rows = [("the original's polls", &seed), ("polling alone", &polling), ("with webhooks", &webhooks)];
    let share = |lived: &Lived| lived.day.calls as f64 / seed.day.calls as f64 * 100.0;
    let target = |what: &str, limit: f64, lived: &Lived| Target {
        what: format!("calls of the day {what}, of the original's:"),
        unit: "%",
        limit,
        found: share(lived),
    };
    Ok(Report {
        name: "forge",
        title: format!(
            "Forge: what a Forgejo is asked in a day of 24 h with two issues, {factor} times as fast. Calls of its API \
             and kB of\nbodies both ways; per task from filing to closing, per hour of a night in which nothing happens."
        ),
        header: vec!["WHO", "TASK", "kB", "IDLE HOUR", "kB", "DAY", "kB", "% OF CALLS"],
        rows: rows.iter().map(|(name, lived)| row(name, lived, share(lived))).collect(),
        targets: vec![
            target("by polling alone", POLLING_LIMIT, &polling),
            target("with webhooks", WEBHOOKS_LIMIT, &webhooks),
        ],
        results: rows.iter().map(|(name, lived)| to_json(name, lived, factor)).collect(),
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Listening {
    None,
    Webhooks,
}

/// A day of the original's pattern.
fn original(factor: u32) -> anyhow::Result<Lived> {
    let fake = FakeForgejo::start(Rules::default());
    let (clock, over) = (Clock::start(factor), AtomicBool::new(false));
    let seed = seed::Seed::new(&fake, clock, &over)?;
    thread::scope(|scope| {
        let cron = scope.spawn(|| seed.run_cron());
        let lived = day::live(&fake, clock);
        over.store(true, Ordering::SeqCst);
        cron.join().map_err(|_| anyhow!("the original's cron panicked"))??;
        lived
    })
}

/// A day of ours.
fn ours(place: &Workspace, factor: u32, webhook_support: Listening) -> anyhow::Result<Lived> {
    let fake = FakeForgejo::start(Rules::default());
    let clock = Clock::start(factor);
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let listen = format!("127.0.0.1:{port}");
    let millis = |seconds: u32| format!("\"{}ms\"", (seconds * 1000 / factor).max(1));
    let seconds = |span| format!("\"{}\"", clock.real(span).as_secs_f64());
    let mut stage = Stage::empty(place)?;
    let file = |name: &str, text: &str| {
        let path = stage.session_files().join(name);
        private(&path, text)?;
        anyhow::Ok(format!("{:?}", path.to_str().context("a path that is UTF-8")?))
    };
    let mut toml = format!(
        "name = \"bench\"\n[forge]\nkind = \"forgejo\"\nurl = \"{}\"\nrepo = \"{REPO}\"\ntoken_file = {}\n\
         [ci]\nkind = \"forge\"\npoll = {}\n[review]\nmode = \"human\"\n[timing]\nforge_poll = {}\n\
         [agent]\ncommand = [\"bash\", {}, {}, {}]\n[dev]\nphase_dir = {:?}\n",
        fake.url(),
        file("token", &fake.token(DEV))?,
        millis(30),
        millis(30),
        file("agent.sh", include_str!("agent.sh"))?,
        seconds(CODING),
        seconds(FIXING),
        stage.session_files(),
    );
    if webhook_support == Listening::Webhooks {
        let secret = file("secret", SECRET)?;
        toml.push_str(&format!("[webhooks]\nlisten = \"{listen}\"\nsecret_file = {secret}\n"));
    }
    std::fs::write(stage.checkout().join("pointsman.toml"), toml)?;
    let there = fake.repository().to_string_lossy().into_owned();
    stage.git(&["push", "--quiet", "--force", &there, "main:main"])?;
    stage.start_daemon()?;
    if webhook_support == Listening::Webhooks {
        fake.hook(&listen, "/webhook/bench", SECRET);
        // As if something had happened the day before.
        wait::until("the daemon to listen", LISTEN_LIMIT, || {
            Ok(std::net::TcpStream::connect(&listen).is_ok().then_some(()))
        })?;
        fake.close(fake.create_issue(OWNER, "Yesterday", "", &[]));
    }
    // What a new daemon asks once is no part of a day.
    wait::until("the daemon to have looked", LISTEN_LIMIT, || {
        Ok(fake.requests().iter().any(|(_, path)| path.ends_with("/branches/main")).then_some(()))
    })?;
    let lived = day::live(&fake, Clock::start(factor));
    lived.with_context(|| format!("the daemon's last words:\n{}", stage.log_tail()))
}

/// Writes a file that nobody else can read.
fn private(path: &std::path::Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text)?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    Ok(std::fs::set_permissions(path, mode)?)
}

fn of_tasks(lived: &Lived) -> Traffic {
    let sum = lived.tasks.iter().fold(Traffic::default(), |sum, task| Traffic {
        calls: sum.calls + task.calls,
        sent: sum.sent + task.sent,
        received: sum.received + task.received,
    });
    let count = lived.tasks.len().max(1) as u64;
    Traffic { calls: sum.calls / count, sent: sum.sent / count, received: sum.received / count }
}

fn kilobytes(traffic: Traffic) -> f64 {
    (traffic.sent + traffic.received) as f64 / 1000.0
}

fn row(name: &str, lived: &Lived, share: f64) -> Vec<String> {
    let hours = MORNING.as_secs_f64() / 3600.0;
    let task = of_tasks(lived);
    vec![
        name.to_owned(),
        task.calls.to_string(),
        format!("{:.0}", kilobytes(task)),
        format!("{:.1}", lived.night.calls as f64 / hours),
        format!("{:.1}", kilobytes(lived.night) / hours),
        lived.day.calls.to_string(),
        format!("{:.0}", kilobytes(lived.day)),
        format!("{share:.1}"),
    ]
}

fn to_json(name: &str, lived: &Lived, factor: u32) -> Value {
    let told = |t: &Traffic| json!({ "calls": t.calls, "sent": t.sent, "received": t.received });
    json!({
        "who": name,
        "factor": factor,
        "night_hours": MORNING.as_secs() / 3600,
        "night": told(&lived.night),
        "tasks": lived.tasks.iter().map(told).collect::<Vec<_>>(),
        "day": told(&lived.day),
        "asked": lived.asked,
    })
}
