//! Files that a role's session changed, on their way to the main branch: as one commit of what rules allow, as a pull
//! request, through the merge queue. Rules and what is next are in the core; a role hands in if its rule is there.
//!
//! `take` remembers where a session began and takes what it may hand in, `bring` opens, follows and queues the pull
//! request. They only send; this file writes, in the loop. Whoever dies in between does the same again, which is the
//! same as once.

mod bring;
mod take;

use std::sync::MutexGuard;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use pointsman_core::hand_in::{HandIn, Memory, Need, Outcome, Taken, Took};
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::role::Role;
use pointsman_core::run::RunId;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, EntryStatus, NewEntry, Store};
use serde_json::{Value, json};

pub(crate) use bring::HandIns;
pub(super) use take::{check_out, take};

use super::engine::Engine;
use super::factory;
use super::inbound::{Inbound, Inbox};

/// What those beside the loop tell it.
#[derive(Clone, Debug)]
pub enum Told {
    /// A run is done, and this is what it may hand in.
    Taken {
        run: RunId,
        /// What, if anything.
        taken: Option<Taken>,
        /// What it changed beside that, one line each.
        refused: Vec<String>,
    },
    /// Something happened to what is open.
    Moved { commit: Sha, moved: Moved },
}

/// What happened to something handed in.
#[derive(Clone, Debug)]
pub enum Moved {
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

/// What is remembered of a role's hand-ins.
pub fn memory(store: &Store, project: &ProjectName, role: Role) -> Result<Memory, pointsman_store::Error> {
    factory::recall(store, project, &cursor(role))
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
fn open_on(
    store: &Store,
    project: &ProjectName,
    branch: &str,
) -> Result<Option<(Role, HandIn)>, pointsman_store::Error> {
    for role in Role::handing_in() {
        if let Some(open) = memory(store, project, role)?.open.filter(|open| open.branch == branch) {
            return Ok(Some((role, open)));
        }
    }
    Ok(None)
}

/// The merge queue is about to put a candidate on a branch. If a role has handed it in, that is remembered before: whoever
/// finds it there must not take it for somebody else's.
pub(super) fn about_to_push(
    reader: MutexGuard<'_, Store>,
    inbox: &Inbox,
    project: &ProjectName,
    branch: &str,
    candidate: &Sha,
) -> anyhow::Result<()> {
    let open = open_on(&reader, project, branch)?;
    // The loop may need it.
    drop(reader);
    let Some((role, open)) = open else { return Ok(()) };
    let moved = Moved::Pushing(candidate.clone());
    send(inbox, project, role, Told::Moved { commit: open.taken.commit, moved })
}

fn cursor(role: Role) -> String {
    format!("hand-in.{role}")
}

/// Has the loop write something down, and waits until it is.
fn send(inbox: &Inbox, project: &ProjectName, role: Role, told: Told) -> anyhow::Result<()> {
    let (written, answer) = sync_channel(1);
    let told = factory::Told::HandIn { project: project.clone(), role, told };
    inbox.send(Inbound::Factory { told: Box::new(told), written });
    answer.recv().context("the daemon ends")
}

/// Writes down what was told. What is told of something that is not open any more is nothing.
pub fn write(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    told: &Told,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let mut memory = memory(engine.store(), project, role)?;
    match told {
        Told::Taken { run, taken, refused } => {
            let mut lines = refused.clone();
            match memory.take(role, *run, taken.clone()) {
                Took::Before => return Ok(()),
                Took::Dismissed => lines.push(words::hand_in::unwanted(*run)),
                Took::Nothing | Took::New => {}
            }
            let files = taken.as_ref().map(|taken| &taken.files);
            save(
                engine,
                project,
                role,
                &memory,
                "hand_in",
                json!({ "run": run, "files": files, "lines": lines }),
                now,
            )
        }
        Told::Moved { commit, moved } => {
            let Some(open) = memory.open.clone().filter(|open| open.taken.commit == *commit) else {
                return Ok(());
            };
            let line = move_on(engine, project, role, &mut memory, &open, moved, now)?;
            let (kind, outcome) = match moved {
                Moved::Over(outcome) => ("hand_in_over", Some(outcome.as_str())),
                Moved::Opened(_)
                | Moved::Pushing(_)
                | Moved::Replaced(_)
                | Moved::Entered
                | Moved::Left
                | Moved::Told(_) => ("hand_in", None),
            };
            let now_open = memory.open.as_ref().filter(|_| outcome.is_none()).unwrap_or(&open);
            let mut data = json!({
                "run": now_open.taken.run,
                "pr": now_open.pr,
                "lines": line.into_iter().collect::<Vec<_>>(),
            });
            if let (Value::Object(data), Some(outcome)) = (&mut data, outcome) {
                data.insert("outcome".to_owned(), json!(outcome));
            }
            save(engine, project, role, &memory, kind, data, now)
        }
    }
}

/// Changes what is remembered, and the merge queue with it; answers what the journal says about it.
fn move_on(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    memory: &mut Memory,
    open: &HandIn,
    moved: &Moved,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    let mut next = open.clone();
    let said = match moved {
        Moved::Opened(pr) => {
            next.pr = Some(*pr);
            Some(words::hand_in::opened(*pr, &open.taken.files))
        }
        Moved::Pushing(commit) => {
            next.pushes(commit);
            None
        }
        Moved::Entered => {
            next.entry = Some(engine.store().enqueue(&NewEntry {
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
            })?);
            next.left = false;
            None
        }
        Moved::Left => {
            if let Some(id) = open.entry
                && let Some(mut entry) =
                    engine.store().queue_entry(id)?.filter(|entry| entry.status.is_unfinished())
            {
                entry.status = EntryStatus::Removed;
                entry.reason = Some("its pull request is closed, or not approved any more".to_owned());
                engine.store().update_entry(&entry)?;
            }
            next.left = true;
            None
        }
        Moved::Told(need) => {
            next.told = Some(need.clone());
            open.pr.map(|pr| words::hand_in::waits(pr, need))
        }
        Moved::Replaced(commit) => {
            if memory.newer.as_ref().is_some_and(|newer| newer.commit == *commit) {
                memory.replace();
            }
            let open = memory.open.as_ref();
            return Ok(open.and_then(|open| Some(words::hand_in::brought_up(open.pr?, &open.taken.files))));
        }
        Moved::Over(outcome) => {
            memory.end(role, *outcome);
            return Ok(Some(words::hand_in::over(open.pr, &open.taken.files, *outcome)));
        }
    };
    memory.open = Some(next);
    Ok(said)
}

/// What is said goes into the log; what is only remembered does not.
fn save(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    memory: &Memory,
    kind: &str,
    mut data: Value,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let value = json!(memory).to_string();
    if data["lines"].as_array().is_none_or(Vec::is_empty) {
        return engine.store().set_cursor(Some(project), &cursor(role), &value);
    }
    if let Value::Object(data) = &mut data {
        data.insert("role".to_owned(), json!(role));
    }
    let mut change = Change::new(now, kind);
    change.project = Some(project.clone());
    change.data = data;
    change.cursor = Some((cursor(role), value));
    engine.store().commit(&[change]).map(drop)
}
