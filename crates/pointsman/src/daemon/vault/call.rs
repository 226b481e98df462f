//! The handler that is built in: an address of the operator's is called with the payload of an action.

use std::time::Duration;

use pointsman_adapters::http::{Answer, Error, ErrorKind, Limits, RetryWait};
use pointsman_adapters::notify::webhook::Webhook;
use pointsman_adapters::secret::{Dotenv, Secret, Source};
use pointsman_core::config::VaultType;
use pointsman_core::text::clean_block;
use pointsman_core::vault::{Address, Entry, Outcome};
use pointsman_core::words;

use super::fire::LOG_BYTES;
use crate::daemon::clock;
use crate::daemon::effects::{EffectPerformer, chain};
use crate::daemon::served::Served;
use crate::remote::look_in;

/// Calls it, once: what came of it and what was answered, or why it was not called.
pub(super) fn call(
    world: &EffectPerformer,
    served: &Served,
    entry: &Entry,
    handler: &VaultType,
    url: &str,
) -> Result<(Outcome, String), Outcome> {
    let failed = |why: String| Outcome::Failed { why };
    let address = Address::parse(url).map_err(|why| failed(words::daemon::vault::not_callable(why)))?;
    if !address.is_listed(&served.config.vault.hosts) {
        return Err(failed(words::daemon::vault::host_not_listed(&address)));
    }
    let token = token(world, handler).map_err(failed)?;
    let hook = open(url, token.clone(), served.config.timing.vault_handler.duration()).map_err(failed)?;
    tracing::info!(project = %entry.project, action = %entry.id(), host = %address, "fires a vault action");
    let key = format!("{}/{}", entry.project, entry.id());
    let headers = [
        ("idempotency-key", key.as_str()),
        ("x-pointsman-project", entry.project.as_str()),
        ("x-pointsman-vault-id", entry.id().as_str()),
        ("x-pointsman-vault-type", &entry.action.kind),
        ("x-pointsman-vault-hash", &entry.hash),
    ];
    let heard = hook.call(&entry.action.payload, &headers);
    let log = told(&heard);
    let log = token.map_or_else(|| log.clone(), |token| token.redact(&log));
    Ok((judged(heard), clean_block(&log, LOG_BYTES * 2)))
}

fn token(world: &EffectPerformer, handler: &VaultType) -> Result<Option<Secret>, String> {
    let (file, variable) = (handler.token_file.as_deref(), handler.token_env.as_deref());
    if file.is_none() && variable.is_none() {
        return Ok(None);
    }
    let dotenv = Dotenv::read(&world.paths.dotenv()).map_err(|error| chain(&error))?;
    let source = Source { whose: "a vault action", command: None, file, variable };
    source.find(look_in(world.environment), &dotenv).map(Some).map_err(|error| chain(&error))
}

/// A connection of its own, which nothing else has used, and nothing that tries twice.
fn open(url: &str, token: Option<Secret>, limit: Duration) -> Result<Webhook, String> {
    let address = Secret::new(url).ok_or_else(words::daemon::vault::no_address)?;
    let default = Limits::default();
    let limits = Limits {
        call: limit,
        connect: default.connect.min(limit),
        tries: 1,
        answer_bytes: LOG_BYTES as u64,
        ..default
    };
    Webhook::new(&address, token, clock::now, limits, RetryWait::default()).map_err(|error| chain(&error))
}

fn told(heard: &Result<Answer, Error>) -> String {
    match heard {
        Ok(answer) => format!("{}\n{}", answer.status, answer.text()),
        Err(error) => format!("{error}\n"),
    }
}

/// The status is the server's word. Without one, or with that of somebody who only stands in between, there is none.
fn judged(heard: Result<Answer, Error>) -> Outcome {
    let Err(error) = heard else { return Outcome::Done };
    let why = chain(&error);
    match error.trouble {
        ErrorKind::Status { status: 408 | 502 | 504, .. } => Outcome::Unknown { why },
        ErrorKind::Status { .. }
        | ErrorKind::Moved { .. }
        | ErrorKind::Limited { .. }
        | ErrorKind::Unreachable { .. }
        | ErrorKind::Resting { .. } => Outcome::Failed { why },
        _ => Outcome::Unknown { why },
    }
}
