//! Files that a role's session changed, on their way to the main branch: one commit of the allowed files, one pull
//! request, and the merge queue. The core has the rules and decides the next step.
//!
//! `take` records where a session began and takes the files that it may hand in. `follow` opens the pull request,
//! follows it and adds it to the queue. Both only send; this file writes, in the loop. Every step can be repeated
//! after a crash.

mod follow;
mod take;

use std::sync::mpsc::sync_channel;

use anyhow::Context;
use pointsman_core::hand_in::{HandIn, HandInFiles, Memory, Need, NewFiles, Outcome};
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::log;
use pointsman_core::role::Role;
use pointsman_core::run::RunId;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, EntryStatus, NewEntry, Store};

pub(crate) use follow::HandIns;
pub(super) use take::{check_out, take};

use super::engine::Engine;
use super::factory;
use super::inbound::{Inbound, Inbox};
use super::queue_orders;

/// A report of a thread to the loop, which writes it down.
#[derive(Clone, Debug)]
pub enum HandInReport {
    /// A run is done, and this is what it may hand in.
    Taken {
        run: RunId,
        taken: Option<HandInFiles>,
        /// What it changed beside that, one line each.
        refused: Vec<String>,
    },
    /// Something happened to what is open.
    Moved { commit: Sha, moved: HandInEvent },
}

/// A step in the life of something handed in.
#[derive(Clone, Debug)]
pub enum HandInEvent {
    /// It has a pull request.
    Opened(Number),
    /// We are about to put this commit on its branch.
    Pushing(Sha),
    /// What is newer is in its place: this commit.
    Replaced(Sha),
    /// It goes into the merge queue.
    Entered,
    /// It goes out of the merge queue.
    Left,
    Told(Need),
    Over(Outcome),
}

/// Reads what is remembered of a role's hand-ins.
pub fn memory(store: &Store, project: &ProjectName, role: Role) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, &memory_name(role))?.unwrap_or_default())
}

/// The pull request of a branch, if it is one that a role has handed in.
pub(super) fn pull_request_of(
    store: &Store,
    project: &ProjectName,
    branch: &str,
) -> Result<Option<Number>, pointsman_store::Error> {
    Ok(open_on(store, project, branch)?.and_then(|(_, open)| open.pr))
}

/// What is open on a branch, and whose it is.
pub(super) fn open_on(
    store: &Store,
    project: &ProjectName,
    branch: &str,
) -> Result<Option<(Role, HandIn)>, pointsman_store::Error> {
    for role in Role::handing_in() {
        let memory = match memory(store, project, role) {
            // Its own branches wait with it, and nobody else's.
            Err(pointsman_store::Error::Unreadable(_)) if !HandIn::is_branch_of(role, branch) => continue,
            memory => memory?,
        };
        if let Some(open) = memory.open.filter(|open| open.branch == branch) {
            return Ok(Some((role, open)));
        }
    }
    Ok(None)
}

/// The merge queue is about to put a candidate on a branch. If a role has handed it in, that is remembered before: whoever
/// finds it there must not take it for somebody else's.
pub(super) fn about_to_push(
    inbox: &Inbox,
    project: &ProjectName,
    open: Option<(Role, HandIn)>,
    candidate: &Sha,
) -> anyhow::Result<()> {
    let Some((role, open)) = open else { return Ok(()) };
    let moved = HandInEvent::Pushing(candidate.clone());
    send(inbox, project, role, HandInReport::Moved { commit: open.taken.commit, moved })
}

fn memory_name(role: Role) -> String {
    format!("hand-in.{role}")
}

/// Has the loop write something down, and waits until it is.
fn send(inbox: &Inbox, project: &ProjectName, role: Role, told: HandInReport) -> anyhow::Result<()> {
    let (written, answer) = sync_channel(1);
    let told = factory::RoleReport::HandIn { project: project.clone(), role, told };
    inbox.send(Inbound::Factory { told: Box::new(told), written });
    answer.recv().context(words::daemon::process::is_stopping())
}

/// Writes down what was told. What is told of something that is not open any more is nothing.
pub fn write(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    told: &HandInReport,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let mut memory = memory(engine.store(), project, role)?;
    let mut changes = Vec::new();
    let entry = match told {
        HandInReport::Taken { run, taken, refused } => {
            let mut lines = refused.clone();
            match memory.take(role, *run, taken.clone()) {
                NewFiles::Before => return Ok(()),
                NewFiles::Dismissed => lines.push(words::hand_in::unwanted(*run)),
                NewFiles::Nothing | NewFiles::New => {}
            }
            let files = Some(taken.as_ref().map(|taken| taken.files.clone()));
            log::Entry::HandIn(log::HandIn { role, run: *run, files, pr: None, outcome: None, lines })
        }
        HandInReport::Moved { commit, moved } => {
            let Some(open) = memory.open.clone().filter(|open| open.taken.commit == *commit) else {
                return Ok(());
            };
            let line = move_on(engine.store(), project, role, &mut memory, &open, moved, &mut changes, now)?;
            let outcome = match moved {
                HandInEvent::Over(outcome) => Some(outcome.as_str().to_owned()),
                HandInEvent::Opened(_)
                | HandInEvent::Pushing(_)
                | HandInEvent::Replaced(_)
                | HandInEvent::Entered
                | HandInEvent::Left
                | HandInEvent::Told(_) => None,
            };
            let now_open = memory.open.as_ref().filter(|_| outcome.is_none()).unwrap_or(&open);
            let (run, pr) = (now_open.taken.run, Some(now_open.pr));
            let lines = line.into_iter().collect();
            let over = outcome.is_some();
            let logged = log::HandIn { role, run, files: None, pr, outcome, lines };
            if over { log::Entry::HandInOver(logged) } else { log::Entry::HandIn(logged) }
        }
    };
    changes.push(remembered(project, role, &memory, &entry, now)?);
    engine.write(&changes).map(drop)
}

/// Changes what is remembered, and the merge queue with it: that is in `changes`, to be written together. Answers what the
/// journal says about it.
#[allow(clippy::too_many_arguments, reason = "it becomes a workflow of its own")]
fn move_on(
    store: &Store,
    project: &ProjectName,
    role: Role,
    memory: &mut Memory,
    open: &HandIn,
    moved: &HandInEvent,
    changes: &mut Vec<Change>,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    let mut next = open.clone();
    let said = match moved {
        HandInEvent::Opened(pr) => {
            next.pr = Some(*pr);
            Some(words::hand_in::opened(*pr, &open.taken.files))
        }
        HandInEvent::Pushing(commit) => {
            next.pushes(commit);
            None
        }
        HandInEvent::Entered => {
            let entry = NewEntry {
                project: project.clone(),
                branch: open.branch.clone(),
                issue: None,
                pr: open.pr,
                identity: Some(format!("{role}-run-{}", open.taken.run)),
                head: open.taken.commit.clone(),
                requested_at: now,
                priority: 0,
                worktree: None,
                style: None,
            };
            let waiting = store.waiting_entry(project, &entry.branch, &entry.head)?;
            let id = waiting.as_ref().map_or(store.next_entry(), |waiting| waiting.id);
            if waiting.is_none() {
                changes.push(queue_orders::entered(id, &entry, now));
            }
            (next.entry, next.left) = (Some(id), false);
            None
        }
        HandInEvent::Left => {
            if let Some(id) = open.entry
                && let Some(mut entry) = store.queue_entry(id)?.filter(|entry| entry.status.is_unfinished())
            {
                entry.status = EntryStatus::Removed;
                entry.reason = Some(words::daemon::hand_in::not_wanted().to_owned());
                changes.push(queue_orders::moved(&entry, now));
            }
            next.left = true;
            None
        }
        HandInEvent::Told(need) => {
            next.told = Some(need.clone());
            open.pr.map(|pr| words::hand_in::waits(pr, need))
        }
        HandInEvent::Replaced(commit) => {
            if memory.newer.as_ref().is_some_and(|newer| newer.commit == *commit) {
                memory.replace();
            }
            let open = memory.open.as_ref();
            return Ok(open.and_then(|open| Some(words::hand_in::brought_up(open.pr?, &open.taken.files))));
        }
        HandInEvent::Over(outcome) => {
            memory.end(role, *outcome);
            return Ok(Some(words::hand_in::over(open.pr, &open.taken.files, *outcome)));
        }
    };
    memory.open = Some(next);
    Ok(said)
}

/// What is remembered, with what the log says about it; with nothing to say, only that it changed.
fn remembered(
    project: &ProjectName,
    role: Role,
    memory: &Memory,
    entry: &log::Entry,
    now: Timestamp,
) -> Result<Change, pointsman_store::Error> {
    let name = memory_name(role);
    let silent = match entry {
        log::Entry::HandIn(said) | log::Entry::HandInOver(said) => said.lines.is_empty(),
        _ => false,
    };
    let quiet = log::Entry::Remembered { name: name.clone() };
    let mut change = Change::logged(now, project, if silent { &quiet } else { entry });
    change.memories.push(pointsman_store::Memory::new(name, memory)?);
    Ok(change)
}
