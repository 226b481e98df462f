//! Drives the vault. The core decides what may happen to an action; this module records the decision and carries it
//! out.
//!
//! `watch` finds due work: files in the pending directory, handlers to run, people to notify, deadlines. `fire` runs
//! a handler, `call` calls an address, and `look` asks the vault's agent for its opinion. They only send; this file
//! writes, in the loop.

mod call;
mod fire;
mod look;
mod watch;

use pointsman_core::config::Config;
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::part::question::{self, Owner};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{
    self as core, Action, ActionId, Entry, Estimate, Event, Policy, Refused, Status, rule, step, submit,
};
use pointsman_core::words;
use pointsman_store::{Change, VaultScope};
use pointsman_view::vault as view;

pub(super) use fire::trusted;
pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::clock;
use super::effects::chain;
use super::engine::Engine;
use super::outcome::NotTaken;
use super::questions;
use crate::control::protocol::{FailureKind, Reply, VaultCommand};

/// Carries out an order.
pub(super) fn answer(engine: &mut Engine, project: &ProjectName, command: &VaultCommand) -> Reply {
    let now = clock::now();
    let (id, event) = match command {
        VaultCommand::Submit { text, from } => {
            return take_in(engine, project, text, from.as_deref(), now)
                .unwrap_or_else(|error| failed(FailureKind::Failed, chain(&error)));
        }
        VaultCommand::Approve { id, hash, again, by } => {
            (id, Event::Approved { by: by.clone(), hash: hash.clone(), again: *again })
        }
        VaultCommand::Reject { id, reason, by } => {
            (id, Event::Rejected { by: by.clone(), reason: reason.clone() })
        }
        VaultCommand::Raise { id, risk, irreversible, requires_human, reason, by } => {
            let estimate =
                Estimate { risk: *risk, reversible: !irreversible, requires_human: *requires_human };
            (id, Event::Raised { by: by.clone(), estimate, reason: reason.clone() })
        }
    };
    match happened(engine, project, id, &event, now) {
        Ok(Ok(entry)) => done(view::Action::from(&entry)),
        Ok(Err(NotTaken::Missing)) => {
            failed(FailureKind::NotFound, words::daemon::vault::no_action(project, id))
        }
        Ok(Err(NotTaken::Refused(why))) => {
            let why = questions::with_first(engine, project, &Owner::Vault(id.clone()), why, now);
            failed(FailureKind::Refused, words::daemon::vault::refused(id, &why))
        }
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}

/// Writes down what happened to an action, if it may happen.
pub(super) fn happened(
    engine: &mut Engine,
    project: &ProjectName,
    id: &ActionId,
    event: &Event,
    now: Timestamp,
) -> Result<Result<Entry, NotTaken>, pointsman_store::Error> {
    happened_with(engine, project, id, event, now, |_, _| {})
}

/// The same, with more to be written at the same time.
pub(super) fn happened_with(
    engine: &mut Engine,
    project: &ProjectName,
    id: &ActionId,
    event: &Event,
    now: Timestamp,
    more: impl FnOnce(&mut Change, &Entry),
) -> Result<Result<Entry, NotTaken>, pointsman_store::Error> {
    let (Some(entry), Some(config)) = (engine.store().vault_entry(project, id)?, engine.config(project))
    else {
        return Ok(Err(NotTaken::Missing));
    };
    match step(&entry, event, &Policy::new(&config), now) {
        Ok(mut next) => {
            questions::number(engine.store(), next.asked.as_mut());
            let asked = core::questions(Some(&entry), Some(event), &next, now);
            let mut change = changed(&next, Some((event, entry.status)), now);
            more(&mut change, &next);
            engine.write(&questions::with(change, &asked, now))?;
            Ok(Ok(next))
        }
        Err(Refused(why)) => Ok(Err(NotTaken::Refused(why))),
    }
}

fn take_in(
    engine: &mut Engine,
    project: &ProjectName,
    text: &str,
    from: Option<&str>,
    now: Timestamp,
) -> Result<Reply, pointsman_store::Error> {
    let Some(config) = engine.config(project) else {
        return Ok(failed(FailureKind::NotFound, words::daemon::request::not_served(project)));
    };
    let mut action = match Action::parse(text.as_bytes()) {
        Ok(action) => action,
        Err(malformed) => {
            let (from, why) = (from.map(str::to_owned), malformed.to_string());
            engine.write(&[Change::logged(now, project, &log::Entry::VaultRefused { from, why })])?;
            return Ok(failed(FailureKind::Refused, malformed.to_string()));
        }
    };
    // Who asks is what we see, not what the text says.
    if let Some(session) = from {
        action.source = clean_line(session, 100);
    }
    if let Some(known) = engine.store().vault_entry(project, &action.id)? {
        return Ok(if known.hash == action.hash(project) {
            done(view::Action::from(&known))
        } else {
            failed(FailureKind::Refused, words::daemon::vault::id_is_taken(&action.id))
        });
    }
    let rule = rule(&config, &action.kind);
    let mut entry = submit(project, action, rule, &Policy::new(&config), now);
    questions::number(engine.store(), entry.asked.as_mut());
    let asked = core::questions(None, None, &entry, now);
    engine.write(&questions::with(changed(&entry, None, now), &asked, now))?;
    Ok(match entry.status {
        Status::Rejected => failed(FailureKind::Refused, entry.reason.unwrap_or_default()),
        _ => done(view::Action::from(&entry)),
    })
}

/// Numbers the questions that an earlier program asked without one, so that they are listed.
pub(super) fn number_questions(
    engine: &mut Engine,
    config: &Config,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    for entry in engine.store().vault_entries(&config.name, VaultScope::Open)? {
        if entry.asked.is_some() || entry.question().is_none() {
            continue;
        }
        let mut entry = entry.asking(&Policy::new(config), now);
        questions::number(engine.store(), entry.asked.as_mut());
        let asked = entry.asked.clone().map(question::Change::Asked);
        if let Some(mut change) = asked.and_then(|asked| Change::of_question(now, &asked)) {
            change.vault = Some(entry);
            engine.write(&[change])?;
        }
    }
    Ok(())
}

/// An action as it is after an event, which came in a status, or at its submission.
fn changed(entry: &Entry, event: Option<(&Event, Status)>, now: Timestamp) -> Change {
    let action = log::Action {
        id: entry.id().clone(),
        kind: entry.action.kind.clone(),
        source: entry.action.source.clone(),
        hash: entry.hash.clone(),
        to: entry.status,
        reason: entry.reason.clone(),
        decided_by: entry.decided_by.clone(),
        event: event.map(|(event, _)| event.clone()),
        from: event.map(|(_, from)| from),
    };
    let mut change = Change::logged(now, &entry.project, &logged(event.map(|(event, _)| event), action));
    change.vault = Some(entry.clone());
    change
}

/// What the log says of it.
fn logged(event: Option<&Event>, action: log::Action) -> log::Entry {
    match event {
        None => log::Entry::VaultSubmitted(action),
        Some(Event::Approved { .. }) => log::Entry::VaultApproved(action),
        Some(Event::Rejected { .. }) => log::Entry::VaultRejected(action),
        Some(Event::Raised { .. }) => log::Entry::VaultRaised(action),
        Some(Event::LookEnded { .. }) => log::Entry::VaultLooked(action),
        Some(Event::TimePassed) => log::Entry::VaultExpired(action),
        Some(Event::FiringBegun) => log::Entry::VaultFiring(action),
        Some(Event::FiringEnded { .. }) => log::Entry::VaultFired(action),
        Some(Event::FiringLost) => log::Entry::VaultLost(action),
        Some(Event::Told) => log::Entry::VaultTold(action),
    }
}
