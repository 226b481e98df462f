//! The vault at work. What may happen to an action is decided in the core; here it is written down and carried out.
//!
//! `watch` looks what is to be done: files in the pending directory, handlers to run, people to tell, time that passed.
//! `fire` runs a handler, `call` one that is an address, `look` has the vault's agent look first. They only send; this
//! file writes, in the loop.

mod call;
mod fire;
mod look;
mod watch;

use pointsman_core::ids::ProjectName;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{
    Action, ActionId, Entry, Estimate, Event, Policy, Refused, Status, rule, step, submit,
};
use pointsman_store::Change;
use pointsman_view::vault as view;
use serde_json::{Value, json};

pub(super) use fire::trusted;
pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::clock;
use super::engine::Engine;
use super::outcome::NotTaken;
use super::world::chain;
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
            failed(FailureKind::NotFound, format!("the vault of {project} has no action {id}"))
        }
        Ok(Err(NotTaken::Refused(why))) => failed(FailureKind::Refused, format!("vault action {id}: {why}")),
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
        Ok(next) => {
            let told = json!({ "event": event, "from": entry.status });
            let mut change = changed(kind(event), &next, told, now);
            more(&mut change, &next);
            engine.store().commit(&[change])?;
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
        return Ok(failed(FailureKind::NotFound, format!("project {project} is not served")));
    };
    let mut action = match Action::parse(text.as_bytes()) {
        Ok(action) => action,
        Err(malformed) => {
            let mut change = Change::new(now, "vault_refused");
            change.project = Some(project.clone());
            change.data = json!({ "from": from, "why": malformed.to_string() });
            engine.store().commit(&[change])?;
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
            let message = format!("the id {} belongs to another action: take a new one", action.id);
            failed(FailureKind::Refused, message)
        });
    }
    let rule = rule(&config, &action.kind);
    let entry = submit(project, action, rule, &Policy::new(&config), now);
    engine.store().commit(&[changed("vault_submitted", &entry, Value::Null, now)])?;
    Ok(match entry.status {
        Status::Rejected => failed(FailureKind::Refused, entry.reason.unwrap_or_default()),
        _ => done(view::Action::from(&entry)),
    })
}

fn changed(kind: &str, entry: &Entry, more: Value, now: Timestamp) -> Change {
    let mut data = json!({
        "id": entry.id(),
        "type": entry.action.kind,
        "source": entry.action.source,
        "hash": entry.hash,
        "to": entry.status,
        "reason": entry.reason,
        "decided_by": entry.decided_by,
    });
    if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
        data.extend(more);
    }
    let mut change = Change::new(now, kind);
    change.project = Some(entry.project.clone());
    change.data = data;
    change.vault = Some(entry.clone());
    change
}

/// The event's name in the log.
fn kind(event: &Event) -> &'static str {
    match event {
        Event::Approved { .. } => "vault_approved",
        Event::Rejected { .. } => "vault_rejected",
        Event::Raised { .. } => "vault_raised",
        Event::LookEnded { .. } => "vault_looked",
        Event::TimePassed => "vault_expired",
        Event::FiringBegun => "vault_firing",
        Event::FiringEnded { .. } => "vault_fired",
        Event::FiringLost => "vault_lost",
        Event::Told => "vault_told",
    }
}
