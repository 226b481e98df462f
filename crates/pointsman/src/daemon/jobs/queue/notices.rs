//! Notices of the merge queue to people: a branch of theirs is out, main is red.
//!
//! Each has a key, so that a daemon that was killed in between can post it again.

use std::path::Path;

use pointsman_core::concern;
use pointsman_core::ids::Sha;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::part::question::Kind;
use pointsman_core::task::Notice;
use pointsman_core::words;
use pointsman_core::words::notice::TakenOut;
use pointsman_store::{EntryStatus, QueueEntry};

use super::super::Jobs;
use super::outcomes::status_word;
use crate::daemon::concerns;
use crate::daemon::effects::hand_in;
use crate::daemon::effects::put_up_from_job;
use crate::daemon::engine::Input;
use crate::daemon::served::Served;

/// Tells of a branch that is out and that nobody else is told about: a task's agent and the role that handed something in
/// hear it otherwise.
pub(super) fn taken_out(
    jobs: &Jobs,
    served: &Served,
    entry: &QueueEntry,
    log: &str,
    log_path: Option<&Path>,
) {
    match entry.status {
        EntryStatus::Conflict | EntryStatus::Red | EntryStatus::Stale => {}
        EntryStatus::Queued
        | EntryStatus::Building
        | EntryStatus::Testing
        | EntryStatus::Landed
        | EntryStatus::Removed => return,
    }
    let project = &served.config.name;
    let handed_in = jobs.read(|store| hand_in::landing_on(store, project, &entry.branch));
    if entry.issue.is_some() || !matches!(handed_in, Ok(None)) {
        return;
    }
    let log_path = log_path.map(|path| path.display().to_string());
    let notice = words::notice::taken_out(&TakenOut {
        project,
        entry: entry.id,
        branch: &entry.branch,
        status: status_word(entry.status),
        reason: entry.reason.as_deref(),
        files: &entry.conflict_files,
        log,
        log_path: log_path.as_deref(),
    });
    post(jobs, served, format!("queue-entry:{project}:{}", entry.id), notice);
}

/// Asks about a red main, once for each commit and test.
pub(super) fn main_is_red(jobs: &Jobs, served: &Served, reason: &str, (log, path): (&str, Option<&Path>)) {
    let path = path.map(|path| path.display().to_string());
    let text = words::question::main_is_red(reason, log, path.as_deref());
    let key = concerns::key(&served.config.name, Kind::MainRed);
    jobs.inbox.tell(Input::of_concern(key, concern::Event::raised(Kind::MainRed, text)));
}

/// Nobody has to look after main any more.
pub(super) fn main_is_green(jobs: &Jobs, served: &Served) {
    let key = concerns::key(&served.config.name, Kind::MainRed);
    let why = words::question::MAIN_IS_GREEN.to_owned();
    jobs.inbox.tell(Input::of_concern(key, concern::Event::Lifted { why }));
}

/// Tells that people pushed to main and that the queue goes on from there, once for each commit.
pub(super) fn outside_push(jobs: &Jobs, served: &Served, main: &Sha, what: &str, by: Option<&str>) {
    let project = &served.config.name;
    let notice = words::notice::outside_push(project, what, by);
    post(jobs, served, format!("outside-push:{project}:{main}"), notice);
}

fn post(jobs: &Jobs, served: &Served, key: String, notice: Notice) {
    let project = served.config.name.clone();
    let posting = Posting { key, project, topic: Topic::Room, link: None, question: None, notice };
    put_up_from_job(jobs, served, &posting);
}
