//! Has the vault's agent look at an action before it is fired without a person.
//!
//! Level-triggered: what was asked is a run about the action's hash, what was answered is its result. Whatever became of
//! that run, there is no second one.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use anyhow::Context;
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::run::{Event as RunEvent, Run, Status, Subject, vault_key};
use pointsman_core::vault::{Entry, Event, FORMULA, Opinion, ROLE};
use pointsman_core::words;
use pointsman_store::RunScope;

use super::fire::tell;
use crate::control::protocol::Reply;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::engine::Input;
use crate::daemon::inbound::{Inbound, Inbox};
use crate::daemon::served::Served;

/// Who asks, in the list of runs.
const BY: &str = ROLE.as_str();

/// Begins the look, or takes what came of it.
pub(super) fn attend(inbox: &Inbox, world: &Arc<EffectPerformer>, served: &Served, entry: &Entry) {
    let (opinion, reason) = match look(inbox, world, served, entry) {
        Ok(None) => return,
        Ok(Some(Ok(opinion))) => (Some(opinion.estimate()), opinion.reason),
        Ok(Some(Err(why))) => (None, words::daemon::vault::no_opinion(&why)),
        Err(error) => {
            // It is tried again at the next look, and nothing is fired meanwhile.
            tracing::warn!(action = %entry.id(), error = format!("{error:#}"), "it is looked at later");
            return;
        }
    };
    let hash = entry.hash.clone();
    drop(tell(inbox, &entry.project, entry.id(), Event::LookEnded { hash, opinion, reason }));
    crash_point("vault-look-taken");
}

/// What came of it; nothing yet if it is still to come.
fn look(
    inbox: &Inbox,
    world: &EffectPerformer,
    served: &Served,
    entry: &Entry,
) -> anyhow::Result<Option<Result<Opinion, String>>> {
    let (config, project) = (&served.config, &entry.project);
    let before = world.read(|store| store.runs_about(project, &vault_key(&entry.hash)))?;
    if let Some(run) = before.first() {
        return Ok(came_of(run));
    }
    if !config.roles.vault.enabled {
        return Ok(Some(Err(words::daemon::vault::look_is_off().to_owned())));
    }
    if free_memory_mb().is_some_and(|free| free < config.limits.min_free_memory_mb) {
        return Ok(Some(Err(words::daemon::vault::too_little_memory().to_owned())));
    }
    let open = world.read(|store| store.runs(project, RunScope::Open))?;
    if open.iter().any(|run| is_look(run) && !run.status.is_over()) {
        return Ok(None);
    }
    let subject = Subject::Vault { id: entry.id().clone(), hash: entry.hash.clone() };
    let (written, answer) = sync_channel(1);
    inbox.send(Inbound::RunWanted {
        project: project.clone(),
        formula: FORMULA.to_owned(),
        subject,
        by: BY.to_owned(),
        written,
    });
    match answer.recv().context(words::daemon::process::is_stopping())? {
        Reply::Failed { message, .. } => Ok(Some(Err(message))),
        Reply::Done { .. } => Ok(None),
    }
}

fn came_of(run: &Run) -> Option<Result<Opinion, String>> {
    let reason = || {
        run.reason.clone().unwrap_or_else(|| words::daemon::vault::look_ended(run.id, run.status.as_str()))
    };
    match run.status {
        Status::Starting | Status::Running => None,
        Status::Done => Some(Opinion::read(run.result.as_ref())),
        Status::Failed | Status::Stopped => Some(Err(reason())),
    }
}

/// Ends looks that nobody waits for any more: somebody has decided, or a person is asked already.
pub(super) fn call_off(inbox: &Inbox, world: &EffectPerformer, served: &Served) {
    if !served.config.roles.vault.enabled {
        return;
    }
    let project = &served.config.name;
    let open = match world.read(|store| store.runs(project, RunScope::Open)) {
        Ok(open) => open,
        Err(error) => return tracing::warn!(%project, %error, "looks that nobody needs go on for now"),
    };
    for run in open.iter().filter(|run| is_look(run) && !run.status.is_over()) {
        let Some(Subject::Vault { id, .. }) = &run.subject else { continue };
        let awaited = world.read(|store| store.vault_entry(project, id));
        if awaited.is_ok_and(|entry| entry.is_none_or(|entry| !entry.awaits_look)) {
            let event = RunEvent::Stopped { by: BY.to_owned() };
            inbox.tell(Input::of_run(run.key(), event));
        }
    }
}

fn is_look(run: &Run) -> bool {
    matches!(run.subject, Some(Subject::Vault { .. }))
}
