//! Vault actions as people and agents order them. The engine steps them.
//!
//! Three of their effects are performed here: `fire` runs a handler, `call` calls an address, and `look` asks the vault's
//! agent for its opinion.

mod call;
mod fire;
mod look;

use pointsman_adapters::secret::known;
use pointsman_core::ids::{ActionKey, ProjectName};
use pointsman_core::log;
use pointsman_core::part::question::Owner;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{Action, Entry, Estimate, Event, Status, rule};
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::Change;
use pointsman_view::vault as view;

pub(super) use fire::trusted;

use super::answer::{done, failed};
use super::clock;
use super::effects::chain;
use super::engine::{Engine, Input};
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
    let key = ActionKey { project: project.clone(), id: id.clone() };
    match happened(engine, Input::of_action(key, event), now) {
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

/// Takes in what happened to an action, if it may happen; answers the action as it is then.
pub(super) fn happened(
    engine: &mut Engine,
    input: Input,
    now: Timestamp,
) -> Result<Result<Entry, NotTaken>, pointsman_store::Error> {
    let WorkflowId::Vault(key) = input.workflow.clone() else { return Ok(Err(NotTaken::Missing)) };
    if engine.store().vault_entry(&key.project, &key.id)?.is_none() && input.begins.is_none() {
        return Ok(Err(NotTaken::Missing));
    }
    if let Some(Err(refused)) = engine.take(&[input], now)?.first() {
        return Ok(Err(NotTaken::Refused(refused.to_string())));
    }
    Ok(engine.store().vault_entry(&key.project, &key.id)?.ok_or(NotTaken::Missing))
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
    let parsed = match known().is_in(text.as_bytes()) {
        true => Err(words::daemon::vault::holds_secret().to_owned()),
        false => Action::parse(text.as_bytes()).map_err(|malformed| malformed.to_string()),
    };
    let mut action = match parsed {
        Ok(action) => action,
        Err(why) => {
            let entry = log::Entry::VaultRefused { from: from.map(str::to_owned), why: why.clone() };
            engine.write(&[Change::logged(now, project, &entry)])?;
            return Ok(failed(FailureKind::Refused, why));
        }
    };
    // Who asks is what we see, not what the text says.
    if let Some(session) = from {
        action.source = clean_line(session, 100);
    }
    if let Some(entry) = engine.store().vault_entry(project, &action.id)? {
        return Ok(if entry.hash == action.hash(project) {
            done(view::Action::from(&entry))
        } else {
            failed(FailureKind::Refused, words::daemon::vault::id_is_taken(&action.id))
        });
    }
    let rule = rule(&config, &action.kind);
    let input = Input::submit(Entry::new(project.clone(), action, now), rule);
    Ok(match happened(engine, input, now)? {
        Ok(entry) if entry.status == Status::Rejected => {
            failed(FailureKind::Refused, entry.reason.unwrap_or_default())
        }
        Ok(entry) => done(view::Action::from(&entry)),
        Err(NotTaken::Missing) => failed(FailureKind::NotFound, words::daemon::request::not_served(project)),
        Err(NotTaken::Refused(why)) => failed(FailureKind::Refused, why),
    })
}
