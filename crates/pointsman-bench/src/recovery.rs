//! How long after its death an agent is there again, with a prompt on its terminal.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pointsman::daemon::clock;
use pointsman_core::labels::BACKLOG;
use pointsman_store::{ForgeDatabase, SessionScope, Store};
use rustix::process::{Pid, Signal, kill_process};

use crate::fleet::{Answer, Fleet};
use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::{Stage, Workspace};
use crate::wait;

/// How many agents there are; each is killed once, because a second death of the same task waits out its back-off.
const AGENTS: u64 = 30;
/// Issue 3: prompted again after at most so many milliseconds.
const LIMIT: f64 = 5000.0;
/// For all agents to be up.
const UP_LIMIT: Duration = Duration::from_secs(120);
/// For one to be there again: far beyond any good value, so that a bad one is still measured.
const AGAIN_LIMIT: Duration = Duration::from_secs(60);

/// Kills agents one after another and waits for their successors.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let mut stage = Stage::build(place, AGENTS)?;
    let mut forge_db = ForgeDatabase::open(&stage.paths().project(&stage.project()).forge_database())?;
    for number in 1..=AGENTS {
        forge_db.create_issue(&format!("Die {number}"), "", &[BACKLOG.to_owned()], "bench", clock::now())?;
    }
    drop(forge_db);
    let mut fleet = Fleet::prepare(&stage.session_files(), AGENTS)?;
    stage.start_daemon()?;
    let millis = kill_all(&stage, &mut fleet)
        .with_context(|| format!("the daemon's last words:\n{}", stage.log_tail()))?;
    let sample = Sample::new(millis);
    let cells = [sample.percentile(0), sample.percentile(50), sample.percentile(99), sample.max()];
    Ok(Report {
        name: "recovery",
        title: format!(
            "Recovery: from SIGKILL of an agent to its successor reading its prompt; {AGENTS} agents, each killed \
             once,\none after another, all time spans at their defaults. Milliseconds."
        ),
        header: vec!["WHAT", "BEST", "P50", "P99", "MAX"],
        rows: vec![
            std::iter::once("killed to prompted again".to_owned())
                .chain(cells.map(|cell| format!("{cell:.0}")))
                .collect(),
        ],
        targets: vec![Target {
            what: "killed to prompted again, p99:".to_owned(),
            unit: "ms",
            limit: LIMIT,
            found: sample.percentile(99),
        }],
        results: vec![sample.to_json()],
    })
}

fn kill_all(stage: &Stage, fleet: &mut Fleet) -> anyhow::Result<Vec<f64>> {
    fleet.hear(usize::try_from(AGENTS)?, UP_LIMIT)?;
    let store = Store::open_read_only(&stage.paths().database())?;
    let mut millis = Vec::new();
    for issue in 1..=AGENTS {
        let pid = wait::until("the agent to be on record", UP_LIMIT, || {
            let live = store.sessions(None, SessionScope::Live)?;
            Ok(live.iter().find(|s| s.issue == Some(issue)).and_then(|s| s.pid))
        })?;
        let pid = Pid::from_raw(pid.cast_signed()).context("a process id is not 0")?;
        let begun = Instant::now();
        kill_process(pid, Signal::KILL)?;
        expect(fleet, &Answer::Up)?;
        // Only the successor is there to hear this.
        fleet.ring(issue, "prompt")?;
        expect(fleet, &Answer::Prompted)?;
        millis.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(millis)
}

fn expect(fleet: &Fleet, wanted: &Answer) -> anyhow::Result<()> {
    let heard = fleet.hear(1, AGAIN_LIMIT)?;
    ensure!(heard.first() == Some(wanted), "heard {heard:?} instead of {wanted:?}");
    Ok(())
}
