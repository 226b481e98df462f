//! The outcomes of branches, reported to whoever runs `merge-queue serve`: a line for each, and a command of their
//! own.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use pointsman_adapters::process::Run;
use pointsman_core::words::queue::{Outcome, outcome};
use pointsman_store::{EntryStatus, QueueEntry};

use super::super::Jobs;

/// How long a person's command may take.
const LIMIT: Duration = Duration::from_secs(300);
/// What it gets of our environment.
const INHERITED: [&str; 5] = ["PATH", "HOME", "LANG", "SHELL", "USER"];

/// The audience of outcomes: whoever runs `serve`, and a command of theirs.
#[derive(Clone, Debug)]
pub struct Outcomes {
    /// A line for the shell, run for each.
    pub command: Option<String>,
}

/// Tells of an entry that is over, if somebody wants to know. Telling holds nothing up: the command runs by itself.
pub(super) fn tell(jobs: &Jobs, entry: &QueueEntry, log: Option<&Path>) {
    let Some(Outcomes { command }) = jobs.lock().outcomes.clone() else { return };
    let status = status_word(entry.status);
    let landed = entry.candidate.as_ref().filter(|_| entry.status == EntryStatus::Landed);
    let log = log.map(|path| path.display().to_string());
    let line = outcome(&Outcome {
        branch: &entry.branch,
        status,
        commit: landed.map(|sha| sha.short()),
        reason: entry.reason.as_deref(),
        files: &entry.conflict_files,
        log: log.as_deref(),
    });
    // Nobody may be reading.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
    let Some(command) = command else { return };
    // What comes from outside is a value of a variable, never a word of the line.
    // It has no rights with us, also when it detaches: only people do.
    let run = Run::new("sh")
        .untrusted()
        .args(["-c", &command])
        .inherit(&INHERITED)
        .env("POINTSMAN_BRANCH", &entry.branch)
        .env("POINTSMAN_STATUS", status)
        .env("POINTSMAN_REASON", entry.reason.clone().unwrap_or_default())
        .env("POINTSMAN_COMMIT", landed.map(|sha| sha.to_string()).unwrap_or_default())
        .env("POINTSMAN_LOG", log.unwrap_or_default())
        .time_limit(LIMIT);
    let spawned = std::thread::Builder::new().name("outcome".to_owned()).spawn(move || match run.finish() {
        Ok(done) if done.end.success() => {}
        Ok(done) => tracing::warn!(end = %done.end, "the command for outcomes failed"),
        Err(error) => tracing::warn!(%error, "the command for outcomes could not be run"),
    });
    if let Err(error) = spawned {
        tracing::warn!(%error, "the command for outcomes could not be run");
    }
}

/// The word for a status in one line.
pub(super) fn status_word(status: EntryStatus) -> &'static str {
    match status {
        EntryStatus::Queued | EntryStatus::Building | EntryStatus::Testing => "waiting",
        EntryStatus::Landed => "landed",
        EntryStatus::Conflict => "conflict",
        EntryStatus::Red => "red",
        EntryStatus::Stale => "stale",
        EntryStatus::Removed => "removed",
    }
}
