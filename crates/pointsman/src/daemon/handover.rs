//! `task take` and `task give`: a task's work on its way to a person's checkout and back.
//!
//! Git's part is done by whoever brings the order ([`prepare`]); the loop only writes down that the task is taken or given back.

use std::path::Path;

use pointsman_adapters::git::capture::{self, Whole};
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::{self, RefName, checkpoint};
use pointsman_adapters::phase_file;
use pointsman_core::config::Worktree;
use pointsman_core::ids::{Number, Sha, TaskKey};
use pointsman_core::task::{Stage, Task};
use pointsman_core::words;
use pointsman_view::task::Handed;

use super::answer::{done, failed};
use super::effects::{EffectPerformer, chain, conversation_of};
use super::served::{Served, SessionFiles};
use crate::control::protocol::{FailureKind, HandoverCommand, Reply};

/// Does what needs git, and answers with what is left to be written down.
pub(super) fn prepare(
    world: &EffectPerformer,
    served: &Served,
    command: HandoverCommand,
) -> Result<HandoverCommand, Reply> {
    match command {
        HandoverCommand::Take { .. } => {
            // Its branch is in the mirror, and its files are where the agent has them.
            if served.config.dev.worktree == Worktree::Linked {
                return Err(refused(words::handover::LINKED.to_owned()));
            }
            Ok(command)
        }
        HandoverCommand::Fetch { issue } => Err(match fetch(world, served, issue) {
            Ok(handed) => done(handed),
            Err(reply) => reply,
        }),
        HandoverCommand::Give { issue, checkout, head, by } => {
            let task = find(world, served, issue)?;
            bring(served, &task, &checkout, &head)?;
            Ok(HandoverCommand::Given { issue, head, by })
        }
        // Only we say that a commit is here.
        HandoverCommand::Given { .. } => Err(refused(words::queue::ONLY_BY_COMMAND.to_owned())),
    }
}

fn refused(why: String) -> Reply {
    failed(FailureKind::Refused, why)
}

fn broken(error: git::Error) -> Reply {
    failed(FailureKind::Unavailable, chain(&error))
}

fn find(world: &EffectPerformer, served: &Served, issue: Number) -> Result<Task, Reply> {
    let key = TaskKey { project: served.config.name.clone(), issue };
    match world.read(|store| store.task(&key)) {
        Ok(Some(task)) => Ok(task),
        Ok(None) => Err(failed(FailureKind::NotFound, words::daemon::request::no_task(&key))),
        Err(error) => Err(failed(FailureKind::Failed, chain(&error))),
    }
}

/// The name that a task's work is kept by while a person has it.
fn reference(issue: Number) -> Result<RefName, Reply> {
    let name = format!("refs/pointsman/taken/{issue}");
    RefName::new(&name).ok_or_else(|| failed(FailureKind::Failed, words::daemon::git::not_a_ref_name(&name)))
}

/// Puts all that the agent left under one reference: its commits, and the files that it had not committed.
fn fetch(world: &EffectPerformer, served: &Served, issue: Number) -> Result<Handed, Reply> {
    let task = find(world, served, issue)?;
    if task.taken_by.is_none() {
        return Err(refused(words::task::refused::not_taken(issue)));
    }
    if task.session.stage != Stage::None {
        return Err(refused(words::handover::SESSION_ENDS.to_owned()));
    }
    let session_files = served.session_files(&task.key);
    let refname = reference(issue)?;
    let whole = find_work(served, &task, &session_files, &refname)?;
    let session = task.key.session(task.session.generation);
    if let Some(why) = &whole.incomplete {
        tracing::warn!(session, why, "what a person takes may be incomplete");
    }
    Ok(Handed {
        branch: task.contribution.branch.clone(),
        head: whole.head,
        commit: whole.commit,
        repository: served.captures.dir().to_owned(),
        reference: refname.to_string(),
        conversation: conversation(world, &session_files, task.session.generation),
        session,
    })
}

fn find_work(
    served: &Served,
    task: &Task,
    session_files: &SessionFiles,
    refname: &RefName,
) -> Result<Whole, Reply> {
    let captures = &served.captures;
    let issue = task.key.issue;
    if session_files.tree.exists() {
        let message = words::daemon::git::rescue(&task.key.session(task.session.generation));
        let whole =
            capture::capture_whole(captures, &session_files.tree, refname, &message).map_err(broken)?;
        return whole.ok_or_else(|| refused(words::handover::unreadable(issue)));
    }
    // The tree is gone: what was saved last is what there is.
    let saved = checkpoint::newest(captures, issue).map_err(broken)?;
    let saved = saved.and_then(|saved| Some((saved.parent?, saved.commit)));
    let branch = served.branch(task).map_err(|error| failed(FailureKind::Failed, format!("{error:#}")))?;
    let pushed = || served.mirror.remote_head(&branch).map(|head| head.map(|head| (head.clone(), head)));
    let (head, commit) = match saved {
        Some(saved) => saved,
        None => pushed().map_err(broken)?.ok_or_else(|| refused(words::handover::no_work(issue)))?,
    };
    capture::move_ref(captures, refname, &commit).map_err(broken)?;
    Ok(Whole { head, commit, incomplete: None })
}

/// The agent's own record of the conversation. Nothing is followed on the way: the agent could have written the path.
fn conversation(
    world: &EffectPerformer,
    session_files: &SessionFiles,
    generation: u32,
) -> Option<(String, std::path::PathBuf)> {
    let id = conversation_of(session_files, generation)?;
    let own = session_files.agent_settings(generation);
    let config = if own.is_dir() { own } else { world.paths.claude_config() };
    let projects = config.join("projects");
    if !projects.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return None;
    }
    let found = std::fs::read_dir(projects).ok()?.flatten().find_map(|entry| {
        let file = entry.path().join(format!("{id}.jsonl"));
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        (is_dir && phase_file::is_own_file(&file)).then_some(file)
    })?;
    Some((id, found))
}

/// Brings the task's branch from a person's checkout. What the agent had and the person left out stays in the captures.
fn bring(served: &Served, task: &Task, checkout: &Path, head: &Sha) -> Result<(), Reply> {
    let issue = task.key.issue;
    if task.taken_by.is_none() {
        return Err(refused(words::task::refused::not_taken(issue)));
    }
    let branch = served.branch(task).map_err(|error| failed(FailureKind::Failed, format!("{error:#}")))?;
    let mirror = &served.mirror;
    match LocalCheckout::find(mirror.git(), checkout).map_err(broken)? {
        Found::Checkout(_) => {}
        Found::Bare | Found::Nothing => return Err(refused(words::handover::no_checkout(checkout))),
    }
    // A name of its own for every commit: another order at the same time does not move it.
    let name = format!("refs/pointsman/given/{issue}/{head}");
    let Some(to) = RefName::new(&name) else {
        return Err(failed(FailureKind::Failed, words::daemon::git::not_a_ref_name(&name)));
    };
    let found = mirror.fetch_checkout(checkout, &branch.full(), &to).map_err(broken)?;
    if found.as_ref() != Some(head) {
        if let Some(found) = &found {
            mirror.delete_ref(&to, found).map_err(broken)?;
        }
        return Err(refused(words::handover::moved(branch.as_str())));
    }
    mirror.fetch_branches(&[&served.primary]).map_err(broken)?;
    let Some(main) = mirror.remote_head(&served.primary).map_err(broken)? else {
        return Err(failed(FailureKind::NotFound, words::daemon::git::no_branch(&served.primary)));
    };
    if mirror.merge_base(&main, head).map_err(broken)?.is_none() {
        mirror.delete_ref(&to, head).map_err(broken)?;
        return Err(refused(words::daemon::queue::no_shared_history(&branch, &served.primary)));
    }
    keep_left_out(served, task, head)
}

/// The commits of the agent that the person's branch does not have are kept as a rescue.
fn keep_left_out(served: &Served, task: &Task, head: &Sha) -> Result<(), Reply> {
    let captures = &served.captures;
    let Some(taken) = captures.read_ref(&reference(task.key.issue)?).map_err(broken)? else { return Ok(()) };
    if capture::is_part_of(captures, &taken, head).map_err(broken)? {
        return Ok(());
    }
    let session = task.key.session(task.session.generation);
    let rescue = capture::next_rescue_ref(captures, &session).map_err(broken)?;
    let Some(rescue) = rescue else { return Err(refused(words::daemon::git::no_rescue_ref(&session))) };
    capture::move_ref(captures, &rescue, &taken).map_err(broken)
}
