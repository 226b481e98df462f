//! People's orders to a merge queue: add, remove, pause, resume.
//!
//! Git's part of an order is done by whoever brings it ([`prepare`]); the loop only writes down ([`answer`]).

use std::path::Path;

use pointsman_adapters::git::history::MainChange;
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::{self, BranchName, RefName};
use pointsman_core::config::MergeStyle;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::log;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{
    Audit, Change as Written, EntryId, EntryScope, EntryStatus, NewEntry, QueueEntry, Stopped, StoppedBy,
    Store, VerdictRow, Write,
};
use pointsman_view::queue::{Added, Paused, Removed, Retested, Synced};

use super::answer::{done, failed};
use super::clock;
use super::effects::chain;
use super::effects::hand_in;
use super::engine::Engine;
use super::queue_trial;
use super::served::Served;
use super::undo;
use crate::control::protocol::{FailureKind, QueueCommand, Reply};
use crate::queue_view;

/// Does what needs git, and answers with what is left to be written down.
pub(crate) fn prepare(served: &Served, command: QueueCommand) -> Result<QueueCommand, Reply> {
    match command {
        QueueCommand::Add { branch, checkout, priority, style, by } => {
            let head = bring(served, &branch, checkout.as_deref())?;
            Ok(QueueCommand::Enter { branch, head, pr: None, priority, style, by })
        }
        QueueCommand::Retest { what, candidates, by } => {
            let trees = trees_of(served, &what, &candidates)?;
            Ok(QueueCommand::Forget { what, trees, by })
        }
        QueueCommand::Sync { checkout, by } => sync_main(served, &checkout, by),
        // All of it is git's part: nothing is left to be written down.
        QueueCommand::Try { branch, checkout, style } => {
            Err(queue_trial::prepare(served, &branch, checkout.as_deref(), style))
        }
        QueueCommand::Undo { issue, title, landed, before, reason, by } => {
            let order =
                undo::Order { issue, title: &title, landed: &landed, before, reason: &reason, by: &by };
            Err(undo::open(served, &order))
        }
        // Only we say that a branch is where it is, and what a tree is.
        QueueCommand::Enter { .. } | QueueCommand::Forget { .. } | QueueCommand::Synced { .. } => {
            Err(failed(FailureKind::Refused, words::queue::ONLY_BY_COMMAND.to_owned()))
        }
        other @ (QueueCommand::Remove { .. }
        | QueueCommand::Pause { .. }
        | QueueCommand::Resume
        | QueueCommand::Look) => Ok(other),
    }
}

/// The name by which people mean the branch that others land on.
const MAIN: &str = "main";

/// The trees of candidates that are still known, and of main if it is meant.
fn trees_of(served: &Served, what: &str, candidates: &[Sha]) -> Result<Vec<Sha>, Reply> {
    let broken = |error: git::Error| failed(FailureKind::Unavailable, chain(&error));
    let mirror = &served.mirror;
    let mut commits = Vec::new();
    for candidate in candidates {
        if mirror.commit_exists(candidate).map_err(broken)? {
            commits.push(candidate.clone());
        }
    }
    if what == MAIN {
        mirror.fetch_branches(&[&served.primary]).map_err(broken)?;
        commits.extend(mirror.remote_head(&served.primary).map_err(broken)?);
    }
    commits.iter().map(|commit| mirror.tree_of(commit).map_err(broken)).collect()
}

/// A branch that could land, and where it is.
pub(super) struct Landable {
    pub(super) branch: BranchName,
    pub(super) head: Sha,
    /// Its head at the forge, if it is there.
    pub(super) there: Option<Sha>,
    pub(super) main: Sha,
}

/// Finds a branch in a checkout, else at the forge, and main as it is now. Nothing is pushed.
pub(super) fn find_landable(served: &Served, name: &str, checkout: Option<&Path>) -> Result<Landable, Reply> {
    let refused = |message: String| failed(FailureKind::Refused, message);
    let shown = clean_line(name, 200);
    let Some(branch) = BranchName::new(name) else {
        return Err(refused(words::daemon::queue::not_a_branch(&shown)));
    };
    if branch == served.primary {
        return Err(refused(words::daemon::queue::is_main(&branch)));
    }
    let broken = |error: git::Error| failed(FailureKind::Unavailable, chain(&error));
    let mirror = &served.mirror;
    mirror.fetch_branches(&[&branch, &served.primary]).map_err(broken)?;
    let there = mirror.remote_head(&branch).map_err(broken)?;
    let here = match checkout {
        Some(checkout) => taken_from(served, checkout, &branch).map_err(broken)?,
        None => None,
    };
    let Some(head) = here.clone().or_else(|| there.clone()) else {
        let message = words::daemon::queue::no_branch_anywhere(&branch);
        return Err(failed(FailureKind::NotFound, message));
    };
    let Some(main) = mirror.remote_head(&served.primary).map_err(broken)? else {
        return Err(failed(FailureKind::NotFound, words::daemon::git::no_branch(&served.primary)));
    };
    if mirror.merge_base(&main, &head).map_err(broken)?.is_none() {
        return Err(refused(words::daemon::queue::no_shared_history(&branch, &served.primary)));
    }
    if mirror.is_ancestor(&head, &main).map_err(broken)? {
        return Err(refused(words::daemon::queue::already_on_main(&branch, &served.primary)));
    }
    Ok(Landable { branch, head, there, main })
}

/// Brings a branch to the forge, unless it is there, and answers its head.
fn bring(served: &Served, name: &str, checkout: Option<&Path>) -> Result<Sha, Reply> {
    let refused = |message: String| failed(FailureKind::Refused, message);
    let broken = |error: git::Error| failed(FailureKind::Unavailable, chain(&error));
    let Landable { branch, head, there, .. } = find_landable(served, name, checkout)?;
    let mirror = &served.mirror;
    if there.as_ref() == Some(&head) {
        return Ok(head);
    }
    if let Some(there) = &there
        && !mirror.is_ancestor(there, &head).map_err(broken)?
    {
        return Err(refused(words::daemon::queue::forge_is_ahead(&branch, there)));
    }
    let push = PushRef {
        refname: branch.full(),
        change: Change::To(head.clone()),
        expect: there.map_or(Expect::Absent, Expect::At),
    };
    match mirror.push(&[push]).map_err(broken)? {
        PushOutcome::Done => Ok(head),
        PushOutcome::Stale { .. } => Err(refused(words::daemon::queue::moved_meanwhile(&branch))),
        PushOutcome::Refused { message } => Err(refused(words::daemon::git::push_refused(&branch, &message))),
    }
}

/// Brings the main branch of a checkout to the embedded forge. Nothing that is there is ever lost: it only moves forward.
fn sync_main(served: &Served, checkout: &Path, by: String) -> Result<QueueCommand, Reply> {
    let refused = |message: String| failed(FailureKind::Refused, message);
    let broken = |error: git::Error| failed(FailureKind::Unavailable, chain(&error));
    let (mirror, primary) = (&served.mirror, &served.primary);
    if served.embedded.is_none() {
        return Err(refused(words::daemon::queue::sync_elsewhere(primary)));
    }
    mirror.fetch_branches(&[primary]).map_err(broken)?;
    let Some(from) = mirror.remote_head(primary).map_err(broken)? else {
        return Err(failed(FailureKind::NotFound, words::daemon::git::no_branch(primary)));
    };
    let Some(upto) = taken_from(served, checkout, primary).map_err(broken)? else {
        return Err(failed(FailureKind::NotFound, words::daemon::queue::nothing_to_sync(checkout, primary)));
    };
    if mirror.is_ancestor(&upto, &from).map_err(broken)? {
        return Ok(QueueCommand::Synced { upto: from.clone(), from, commits: 0, by });
    }
    if !mirror.is_ancestor(&from, &upto).map_err(broken)? {
        return Err(refused(words::daemon::queue::diverged(primary)));
    }
    let commits = match git::history::first_parents(mirror, &from, &upto).map_err(broken)? {
        MainChange::Forward { commits, .. } | MainChange::Rewritten { commits, .. } => commits.len() as u64,
    };
    let push = PushRef {
        refname: primary.full(),
        change: Change::To(upto.clone()),
        expect: Expect::At(from.clone()),
    };
    match mirror.push(&[push]).map_err(broken)? {
        PushOutcome::Done => Ok(QueueCommand::Synced { from, upto, commits, by }),
        PushOutcome::Stale { .. } => Err(refused(words::daemon::queue::moved_meanwhile(primary))),
        PushOutcome::Refused { message } => Err(refused(words::daemon::git::push_refused(primary, &message))),
    }
}

/// The branch as a checkout has it, fetched into the mirror; nothing if it has none.
fn taken_from(served: &Served, checkout: &Path, branch: &BranchName) -> Result<Option<Sha>, git::Error> {
    if !matches!(LocalCheckout::find(served.mirror.git(), checkout)?, Found::Checkout(_)) {
        return Ok(None);
    }
    let Some(to) = RefName::new(&format!("refs/pointsman/incoming/{branch}")) else { return Ok(None) };
    let found = served.mirror.fetch_checkout(checkout, &branch.full(), &to)?;
    if let Some(at) = &found {
        served.mirror.delete_ref(&to, at)?;
    }
    Ok(found)
}

/// Writes an order down.
pub(crate) fn answer(engine: &mut Engine, project: &ProjectName, command: &QueueCommand) -> Reply {
    let written = match command {
        QueueCommand::Add { .. }
        | QueueCommand::Retest { .. }
        | QueueCommand::Sync { .. }
        | QueueCommand::Undo { .. }
        | QueueCommand::Try { .. } => {
            return failed(FailureKind::Failed, words::daemon::request::answered_elsewhere().to_owned());
        }
        QueueCommand::Forget { what, trees, by } => forget(engine, project, what, trees, by),
        QueueCommand::Enter { branch, head, pr, priority, style, by } => {
            enter(engine, project, (branch, head, *pr), *priority, *style, by)
        }
        QueueCommand::Synced { from, upto, commits, by } => synced(engine, project, from, upto, *commits, by),
        QueueCommand::Remove { what, by } => remove(engine, project, what, by),
        QueueCommand::Pause { reason } => {
            let reason = clean_line(reason, 500);
            let stopped = Stopped { at: clock::now(), by: StoppedBy::Person, reason };
            pause(engine, project, &stopped).map(|()| done(Paused { paused: true, was_paused: None }))
        }
        QueueCommand::Resume => resume(engine, project),
        QueueCommand::Look => Ok(done(())),
    };
    written.unwrap_or_else(|error| failed(FailureKind::Failed, chain(&error)))
}

/// Main moved because a person brought it here: the queue goes on from there. What was on the forge's main before and has
/// not been audited is left to the next audit.
fn synced(
    engine: &mut Engine,
    project: &ProjectName,
    from: &Sha,
    upto: &Sha,
    commits: u64,
    by: &str,
) -> Result<Reply, pointsman_store::Error> {
    if commits > 0 {
        tracing::info!(%project, commits, by, "main was brought from the checkout");
        let audit =
            Audit { after: Some(from.clone()), upto: upto.clone(), direct: 0, person: commits, alarm: None };
        let change = audited(engine.store(), project, &audit, clock::now())?;
        engine.write(&Vec::from_iter(change))?;
    }
    Ok(done(Synced { head: upto.clone(), commits }))
}

fn enter(
    engine: &mut Engine,
    project: &ProjectName,
    (branch, head, pr): (&str, &Sha, Option<Number>),
    priority: i64,
    style: Option<MergeStyle>,
    by: &str,
) -> Result<Reply, pointsman_store::Error> {
    let owner = engine.tasks().values().find(|task| {
        task.key.project == *project && task.contribution.branch == branch && task.state.has_session()
    });
    if let Some(task) = owner {
        let message = words::daemon::queue::enters_by_itself(branch, task.key.issue, task.state);
        return Ok(failed(FailureKind::Refused, message));
    }
    let now = clock::now();
    let waiting = engine.store().queue_entries(project, EntryScope::Unfinished)?;
    let mut changes = Vec::new();
    for mut older in waiting.into_iter().filter(|e| e.branch == branch && e.head != *head) {
        older.status = EntryStatus::Removed;
        older.reason = Some(words::daemon::queue::replaced_by(head));
        changes.push(moved(&older, now));
    }
    let style = style.map(|style| style.as_str().to_owned());
    let handed_in = hand_in::landing_on(engine.store(), project, branch)?;
    let pr = handed_in.and_then(|run| run.contribution()?.pr()).or(pr);
    let entry = NewEntry {
        project: project.clone(),
        branch: branch.to_owned(),
        issue: None,
        pr,
        identity: Some(clean_line(by, 100)),
        head: head.clone(),
        requested_at: now,
        priority,
        worktree: None,
        style: style.clone(),
    };
    let id = match engine.store().waiting_entry(project, branch, head)? {
        None => {
            let id = engine.store().next_entry();
            changes.push(entered(id, &entry, now));
            id
        }
        Some(mut waiting) => {
            if waiting.priority != priority || waiting.style != style {
                (waiting.priority, waiting.style) = (priority, style);
                changes.push(moved(&waiting, now));
            }
            waiting.id
        }
    };
    engine.write(&changes)?;
    Ok(done(Added { entry: id, branch: entry.branch, head_sha: entry.head }))
}

/// Red verdicts are forgotten, so that their trees are tested again. An entry that was taken out is in the queue again.
fn forget(
    engine: &mut Engine,
    project: &ProjectName,
    what: &str,
    trees: &[Sha],
    by: &str,
) -> Result<Reply, pointsman_store::Error> {
    let now = clock::now();
    let gate = engine.config(project).and_then(|config| queue_view::gate_name(&config));
    let mut forgotten = Vec::new();
    for tree in trees {
        let Some(gate) = &gate else { break };
        let verdict = VerdictRow { verdict: serde_json::Value::Null, log_path: None, at: now, took_ms: None };
        let (project, object, gate) = (project.clone(), tree.clone(), gate.clone());
        forgotten.push(Write::Verdict { project, object, gate, verdict });
    }
    let mut changes = vec![Written::quiet(now, forgotten)];
    let mut retested = Retested { forgotten: trees.len(), entry: None };
    if what != MAIN {
        let all = engine.store().queue_entries(project, EntryScope::All)?;
        let Some(entry) = all.into_iter().rev().find(|entry| is_meant(entry, what)) else {
            let message = words::queue::unknown_entry(what);
            return Ok(failed(FailureKind::NotFound, message));
        };
        match (entry.status, entry.issue) {
            (EntryStatus::Queued | EntryStatus::Building | EntryStatus::Testing, _) => {}
            (EntryStatus::Landed, _) => {
                return Ok(failed(FailureKind::Refused, words::daemon::queue::has_landed(&entry.branch)));
            }
            (
                EntryStatus::Conflict | EntryStatus::Red | EntryStatus::Stale | EntryStatus::Removed,
                Some(issue),
            ) => {
                let message = words::queue::belongs_to_task(entry.id.0, issue);
                return Ok(failed(FailureKind::Refused, message));
            }
            (EntryStatus::Conflict | EntryStatus::Red | EntryStatus::Stale | EntryStatus::Removed, None) => {
                let again = NewEntry {
                    project: project.clone(),
                    branch: entry.branch,
                    issue: None,
                    pr: entry.pr,
                    identity: Some(clean_line(by, 100)),
                    head: entry.head,
                    requested_at: now,
                    priority: entry.priority,
                    worktree: None,
                    style: entry.style,
                };
                let waiting = engine.store().waiting_entry(project, &again.branch, &again.head)?;
                let id = waiting.as_ref().map_or(engine.store().next_entry(), |waiting| waiting.id);
                if waiting.is_none() {
                    changes.push(entered(id, &again, now));
                }
                retested.entry = Some(id);
            }
        }
    }
    engine.write(&changes)?;
    Ok(done(retested))
}

fn is_meant(entry: &QueueEntry, what: &str) -> bool {
    entry.branch == what || what.strip_prefix('#').unwrap_or(what).parse() == Ok(entry.id.0)
}

fn remove(
    engine: &mut Engine,
    project: &ProjectName,
    what: &str,
    by: &str,
) -> Result<Reply, pointsman_store::Error> {
    let waiting = engine.store().queue_entries(project, EntryScope::Unfinished)?;
    let Some(mut entry) = waiting.into_iter().find(|entry| is_meant(entry, what)) else {
        return Ok(failed(FailureKind::NotFound, words::queue::unknown_entry(what)));
    };
    if let Some(issue) = entry.issue {
        let message = words::daemon::queue::leaves_with_task(entry.id, issue);
        return Ok(failed(FailureKind::Refused, message));
    }
    entry.status = EntryStatus::Removed;
    entry.reason = Some(words::daemon::queue::taken_out_by(by));
    engine.write(&[moved(&entry, clock::now())])?;
    Ok(done(Removed { entry: entry.id, status: queue_view::status(entry.status), branch: entry.branch }))
}

fn resume(engine: &mut Engine, project: &ProjectName) -> Result<Reply, pointsman_store::Error> {
    let resumed = resumed(engine.store(), project, clock::now())?;
    engine.write(resumed.as_slice())?;
    Ok(done(Paused { paused: false, was_paused: Some(resumed.is_some()) }))
}

/// A merge queue goes on, if it is paused.
pub(super) fn resumed(
    store: &Store,
    project: &ProjectName,
    now: Timestamp,
) -> Result<Option<Written>, pointsman_store::Error> {
    let was_paused = store.queue_state(project)?.stopped.is_some();
    Ok(was_paused.then(|| {
        let mut change = Written::logged(now, project, &log::Entry::QueueResumed);
        change.writes.push(Write::QueueResumed { project: project.clone() });
        change
    }))
}

/// A branch enters the merge queue.
pub(super) fn entered(id: EntryId, entry: &NewEntry, now: Timestamp) -> Written {
    let logged = log::QueueEntry {
        entry: id,
        branch: entry.branch.clone(),
        head: entry.head.clone(),
        status: EntryStatus::Queued,
        issue: entry.issue,
        pr: entry.pr,
        candidate: None,
        reason: None,
    };
    let mut change = Written::logged(now, &entry.project, &log::Entry::QueueEntered(logged));
    change.issue = entry.issue;
    change.writes.push(Write::EntryAdded { id, entry: Box::new(entry.clone()) });
    change
}

/// An entry of the merge queue is as it is now.
pub(super) fn moved(entry: &QueueEntry, now: Timestamp) -> Written {
    let logged = log::QueueEntry {
        entry: entry.id,
        branch: entry.branch.clone(),
        head: entry.head.clone(),
        status: entry.status,
        issue: entry.issue,
        pr: entry.pr,
        candidate: entry.candidate.clone(),
        reason: entry.reason.clone(),
    };
    let mut change = Written::logged(now, &entry.project, &log::Entry::QueueMoved(logged));
    change.issue = entry.issue;
    change.writes.push(Write::EntryMoved(Box::new(entry.clone())));
    change
}

/// Those of these entries that are news. One that is over stays as it is, unless git knows that it landed.
pub(super) fn all_moved(
    store: &Store,
    entries: &[QueueEntry],
    now: Timestamp,
) -> Result<Vec<Written>, pointsman_store::Error> {
    let mut changes = Vec::new();
    for entry in entries {
        match store.queue_entry(entry.id)? {
            Some(known) if known == *entry => {}
            Some(known) if !known.status.is_unfinished() && entry.status != EntryStatus::Landed => {}
            Some(_) => changes.push(moved(entry, now)),
            None => tracing::error!(entry = %entry.id, "there is no such entry in the merge queue"),
        }
    }
    Ok(changes)
}

/// Pauses a merge queue. One that is paused keeps its first reason, and the log says nothing else.
pub(super) fn pause(
    engine: &mut Engine,
    project: &ProjectName,
    stopped: &Stopped,
) -> Result<(), pointsman_store::Error> {
    match engine.store().queue_state(project)?.stopped {
        Some(_) => Ok(()),
        None => engine.write(&[paused(project, stopped)]).map(drop),
    }
}

fn paused(project: &ProjectName, stopped: &Stopped) -> Written {
    let logged = log::Entry::QueuePaused { by: stopped.by, reason: stopped.reason.clone() };
    let mut change = Written::logged(stopped.at, project, &logged);
    change.writes.push(Write::QueuePaused { project: project.clone(), stopped: stopped.clone() });
    change
}

/// The main branch was audited, unless another audit came first.
pub(super) fn audited(
    store: &Store,
    project: &ProjectName,
    audit: &Audit,
    now: Timestamp,
) -> Result<Option<Written>, pointsman_store::Error> {
    if store.queue_state(project)?.audited != audit.after {
        return Ok(None);
    }
    let Audit { upto, direct, person, alarm, .. } = audit;
    let (upto, paused) = (upto.clone(), alarm.is_some());
    let logged = log::Entry::MainAudited { upto, direct: *direct, person: *person, paused };
    let mut change = Written::logged(now, project, &logged);
    change.writes.push(Write::MainAudited { project: project.clone(), audit: audit.clone() });
    Ok(Some(change))
}
