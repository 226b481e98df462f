//! The ends of logs: the daemon's own, and of the sessions that something is wrong with.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use pointsman_adapters::phase_file::read_end;
use pointsman_core::config::Config;
use pointsman_core::health::{self, Facts, Finding, LogError, Tail};
use pointsman_core::time::Timestamp;

use crate::paths::Paths;

/// How far back an error counts.
const RECENT: Duration = Duration::from_secs(3600);
/// The most that is read of the daemon's log for that.
const OWN_BYTES: u64 = 256 << 10;
/// The most that is read of a log to show its end.
const TAIL_BYTES: u64 = 16 << 10;
/// Lines of the daemon's log that are shown.
const OWN_LINES: usize = 20;
/// Lines of a session's log that are shown: terminals are full of frames.
const SESSION_LINES: usize = 15;
/// Sessions whose logs are shown.
const SESSIONS: usize = 5;

/// Errors that the daemon's log repeats; none if there is no log, because somebody else keeps it.
pub(super) fn errors(paths: &Paths, now: Timestamp) -> Option<Vec<LogError>> {
    let text = read(&paths.daemon_log(), OWN_BYTES)?.0;
    let is_recent = |at: &str| {
        let at = at.parse::<jiff::Timestamp>().map(|at| Timestamp(at.as_millisecond()));
        at.is_ok_and(|at| at <= now && now.since(at) <= RECENT)
    };
    Some(health::errors(&text, is_recent))
}

/// The end of the daemon's log, and of those of sessions that findings are about.
pub(crate) fn tails(paths: &Paths, config: &Config, facts: &Facts, findings: &[Finding]) -> Vec<Tail> {
    let show = |of: &str, path: &Path, lines| {
        let (text, whole) = read(path, TAIL_BYTES)?;
        Some(health::tail(of, &text, whole, lines)).filter(|tail| !tail.lines.is_empty())
    };
    let mut tails: Vec<Tail> = show("daemon", &paths.daemon_log(), OWN_LINES).into_iter().collect();
    for session in concerned(facts, findings).into_iter().take(SESSIONS) {
        // As it prints, or as it was kept when it ended.
        let identity = session.rsplit_once('.').map_or(session.as_str(), |(identity, _)| identity);
        let kept = paths.project(&config.name).transcript(&session);
        let live = config.dev.phase_dir.join(format!("{identity}.log"));
        tails.extend([kept, live].iter().find_map(|path| show(&session, path, SESSION_LINES)));
    }
    tails
}

/// The sessions that findings are about.
fn concerned(facts: &Facts, findings: &[Finding]) -> BTreeSet<String> {
    let of_task = |finding: &Finding| {
        let task = facts.tasks.iter().find(|task| Some(task.key.issue) == finding.task())?;
        Some(task.key.session(task.session.generation))
    };
    let named = |finding: &Finding| {
        if let Finding::AgentDead { session, .. } = finding {
            Some(session.clone())
        } else {
            of_task(finding)
        }
    };
    findings.iter().filter_map(named).collect()
}

/// The end of a file of ours, and whether that is all of it.
fn read(path: &Path, most: u64) -> Option<(String, bool)> {
    let bytes = read_end(path, most).ok()?;
    let whole = (bytes.len() as u64) < most;
    Some((String::from_utf8_lossy(&bytes).into_owned(), whole))
}
