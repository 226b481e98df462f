//! How long "who is alive?" takes with many identities, beside `tmux ls` with as many sessions.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use pointsman::daemon::clock;
use pointsman_adapters::process::{self, Run};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::session::work::WorkState;
use pointsman_core::task::{Phase, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, SessionRow, Store};
use serde_json::json;
use tempfile::TempDir;

use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::{Stage, Workspace, end_server};
use crate::wait;

const IDENTITIES: u64 = 1_000;
/// How many sessions tmux is asked for in one command.
const CHUNK: usize = 50;
/// Each command is run so often, in turn with the others.
const TIMES: usize = 50;
/// Issue 3, in milliseconds.
const LIMIT: f64 = 20.0;
/// For one command.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

const OURS: [(&str, &[&str]); 2] =
    [("pointsman agents", &["agents"]), ("pointsman agents --json", &["agents", "--json"])];
const THEIRS: &str = "tmux ls";

/// Measures with a process for every identity, each in a tmux session of its own.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let stage = Stage::build(place, 1)?;
    let begun = Instant::now();
    let terminals = Terminals::start()?;
    register(&stage, &terminals.pids()?)?;
    eprintln!("{IDENTITIES} sessions up after {:.1} s", begun.elapsed().as_secs_f64());
    let mut times: [Vec<f64>; 3] = Default::default();
    for _ in 0..TIMES {
        wait::check()?;
        for ((_, args), times) in OURS.iter().zip(&mut times) {
            times.push(millis(stage.pointsman(args)?));
        }
        let begun = Instant::now();
        terminals.tmux(&["list-sessions"])?;
        times[2].push(millis(begun.elapsed()));
    }
    let names = OURS.iter().map(|(name, _)| *name).chain([THEIRS]);
    let samples: Vec<(&str, Sample)> = names.zip(times.map(Sample::new)).collect();
    Ok(report(&samples))
}

fn report(samples: &[(&str, Sample)]) -> Report {
    let row = |(name, sample): &(&str, Sample)| {
        let cells = [sample.percentile(0), sample.percentile(50), sample.percentile(90), sample.max()];
        std::iter::once((*name).to_owned()).chain(cells.map(|cell| format!("{cell:.1}"))).collect()
    };
    let target = |(name, sample): &(&str, Sample)| Target {
        what: format!("{name} with {IDENTITIES} identities, the median:"),
        unit: "ms",
        limit: LIMIT,
        found: sample.percentile(50),
    };
    let result = |(name, sample): &(&str, Sample)| {
        let mut value = sample.to_json();
        value["what"] = json!(name);
        value["identities"] = json!(IDENTITIES);
        value
    };
    Report {
        name: "agents",
        title: format!(
            "Who is alive: {IDENTITIES} identities with a process each, {TIMES} times in turn, milliseconds. Start of \
             the program included."
        ),
        header: vec!["WHAT", "BEST", "P50", "P90", "WORST"],
        rows: samples.iter().map(row).collect(),
        targets: samples.iter().take(OURS.len()).map(target).collect(),
        results: samples.iter().map(result).collect(),
    }
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A tmux server with a program that sleeps in every session. It goes away when it is dropped.
struct Terminals {
    socket: PathBuf,
    directory: TempDir,
}

impl Terminals {
    fn start() -> anyhow::Result<Self> {
        // Sockets need a short path, which /tmp always is.
        let directory = tempfile::Builder::new().prefix("pointsman-bench-").tempdir_in("/tmp")?;
        let terminals = Self { socket: directory.path().join("tmux.sock"), directory };
        let issues: Vec<u64> = (1..=IDENTITIES).collect();
        for chunk in issues.chunks(CHUNK) {
            wait::check()?;
            let names: Vec<String> = chunk.iter().map(|issue| format!("dev-bench-{issue}")).collect();
            let mut words: Vec<&str> = Vec::new();
            for name in &names {
                words.extend(["new-session", "-d", "-s", name, "sleep", "3600", ";"]);
            }
            words.pop();
            terminals.tmux(&words)?;
        }
        Ok(terminals)
    }

    /// The programs, in the order of their sessions' numbers.
    fn pids(&self) -> anyhow::Result<Vec<u32>> {
        let listed = self.tmux(&["list-panes", "-a", "-F", "#{session_name} #{pane_pid}"])?;
        let mut found: Vec<(u64, u32)> = listed.lines().filter_map(parse).collect();
        found.sort_unstable();
        ensure!(found.len() as u64 == IDENTITIES, "tmux has {} sessions", found.len());
        Ok(found.into_iter().map(|(_, pid)| pid).collect())
    }

    fn tmux(&self, words: &[&str]) -> anyhow::Result<String> {
        let run = Run::new("tmux").arg("-S").arg(&self.socket).args(["-f", "/dev/null"]).args(words);
        let done = run
            .inherit(&["PATH", "LANG", "TERM"])
            .cwd(self.directory.path())
            .time_limit(COMMAND_LIMIT)
            .finish()?;
        ensure!(done.end.success(), "tmux: {}", String::from_utf8_lossy(&done.stderr).trim());
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        end_server(&self.socket);
    }
}

/// `dev-bench-7 4711`.
fn parse(line: &str) -> Option<(u64, u32)> {
    let (name, pid) = line.split_once(' ')?;
    Some((name.rsplit('-').next()?.parse().ok()?, pid.parse().ok()?))
}

/// Everything a daemon would have written of them.
fn register(stage: &Stage, pids: &[u32]) -> anyhow::Result<()> {
    let (project, now) = (stage.project(), clock::now());
    let mut store = Store::open(&stage.paths().database())?;
    let mut changes = Vec::new();
    for (issue, pid) in (1..).zip(pids) {
        let key = TaskKey { project: project.clone(), issue };
        let mut task =
            Task::new(key.clone(), format!("Task {issue}"), format!("pointsman/issue-{issue}"), now);
        (task.state, task.phase, task.session.generation) = (State::AwaitingCi, Some(Phase::AwaitingCi), 1);
        let mut change = Change::new(now, "session_started");
        (change.project, change.issue) = (Some(project.clone()), Some(issue));
        change.sessions = vec![session(&stage.checkout(), &project, &key, *pid, now)?];
        change.work_state = Some(WorkState::begin(key.identity(), &task.title, now));
        change.task = Some(task);
        changes.push(change);
    }
    store.commit(&changes)?;
    Ok(())
}

fn session(
    checkout: &Path,
    project: &ProjectName,
    key: &TaskKey,
    pid: u32,
    now: Timestamp,
) -> anyhow::Result<SessionRow> {
    Ok(SessionRow {
        session: key.session(1),
        identity: key.identity(),
        project: project.clone(),
        issue: Some(key.issue),
        role: Task::ROLE,
        generation: 1,
        host: process::host_name(),
        model: Some("sonnet".to_owned()),
        bead_id: None,
        node_id: None,
        hook_path: Some(checkout.join(format!(".claude/state/hooks/{}.json", key.identity()))),
        tmux_session: Some(key.identity()),
        pane: Some(format!("%{}", key.issue)),
        pid: Some(pid),
        start_time: Some(process::start_time(pid).context("a program of ours is gone")?),
        tree: Some(checkout.join("tree")),
        created_at: now,
        last_seen: now,
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: false,
        predecessor: None,
        gauge: Some(Gauge { used_permille: 425, source: Source::StatusLine }),
        spent: Spent { tokens: 81_000, micro_usd: 1_270_000, turns: 12, ..Spent::default() },
    })
}
