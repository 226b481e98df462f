//! Tells a notice by the notifier in whose lane it is.
//!
//! Whoever dies between sending and writing that down sends again. On Matrix that is the same message, by its
//! transaction; a webhook sees the same key; a desktop shows it twice.

use std::time::Duration;

use pointsman_adapters::notify::matrix::{Matrix, Message};
use pointsman_adapters::notify::{Error, desktop};
use pointsman_adapters::retry::Retry;
use pointsman_core::config::NotifierKind;
use pointsman_core::notifier;
use pointsman_core::words;
use pointsman_core::workflow::{Event, WorkflowId};
use pointsman_store::{Delivered, Delivery, DeliveryId};
use sha2::{Digest, Sha256};

use super::{listener, standing};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::{EffectError, EffectPerformer, chain};
use crate::daemon::outcome::{Note, Outcome, Performed};
use crate::daemon::served::Served;

/// Why a notice was not told.
pub(super) enum SendError {
    /// The notifier does not work.
    Broken {
        error: String,
        /// How long it asks to wait.
        asked: Option<Duration>,
    },
    /// It never takes this one.
    Unfit(String),
    /// Something else comes first.
    NotYet,
}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        match error.retry() {
            Retry::Never => Self::Unfit(chain(&error)),
            Retry::Later | Retry::LookFirst => Self::Broken { asked: error.pause(), error: chain(&error) },
        }
    }
}

/// Tells one notice. One that is settled meanwhile is not told.
pub(in crate::daemon) fn tell(
    world: &EffectPerformer,
    served: &Served,
    lane: &WorkflowId,
    id: DeliveryId,
) -> Result<Outcome, EffectError> {
    let Some(delivery) = world.read(|store| store.delivery(id))? else { return Ok(Outcome::done()) };
    if delivery.status != "pending" {
        return Ok(Outcome::done());
    }
    if !served.config.tells(delivery.notifier) {
        return Err(EffectError::never(words::daemon::notifier::not_told_this_way()));
    }
    let at = clock::now();
    let delivered = match send(world, served, &delivery) {
        Ok(delivered) => delivered,
        Err(SendError::Unfit(why)) => return Err(EffectError::never(why)),
        Err(SendError::Broken { error, asked }) => return Ok(Outcome::Down { error, asked }),
        Err(SendError::NotYet) => return Err(EffectError::later(words::daemon::notifier::room_is_unread())),
    };
    crash_point("notice-sent");
    let note = Some(Note::Told { id, delivered: Box::new(delivered), at });
    let events = match lane {
        WorkflowId::Notifier(_) => vec![Event::Notifier(notifier::Event::Told)],
        WorkflowId::Task(_)
        | WorkflowId::Run(_)
        | WorkflowId::Vault(_)
        | WorkflowId::Concern(_)
        | WorkflowId::Role(_) => Vec::new(),
    };
    Ok(Outcome::Done(Performed { events, note, ..Performed::default() }))
}

fn send(world: &EffectPerformer, served: &Served, delivery: &Delivery) -> Result<Delivered, SendError> {
    let posting = &delivery.posting;
    match delivery.notifier {
        // Written at once, by whoever had something to tell.
        NotifierKind::Log => {}
        NotifierKind::Desktop => {
            let (summary, body) =
                words::chat::desktop(&posting.project, &posting.topic, posting.notice.urgent);
            desktop::show(&summary, &body, posting.notice.urgent)?;
        }
        NotifierKind::Webhook => {
            served.notifiers.webhook().map_err(unset)?.tell(posting, &clock::rfc3339(delivery.at))?;
        }
        NotifierKind::Matrix => return write(world, served, delivery),
    }
    Ok(Delivered::Sent { sent_as: None, thread: None })
}

/// A part that is not there, because its token or address is not.
pub(super) fn unset(problem: &str) -> SendError {
    SendError::Broken { error: problem.to_owned(), asked: None }
}

/// Writes to the room: in the topic's thread, or as the message that begins it.
fn write(world: &EffectPerformer, served: &Served, delivery: &Delivery) -> Result<Delivered, SendError> {
    let matrix: &Matrix = served.notifiers.matrix().map_err(unset)?;
    let there = matrix.look()?;
    let (posting, project) = (&delivery.posting, &served.config.name);
    let cursor = listener::cursor(&there);
    let listening = world.read(|store| store.cursor(Some(project), &cursor)).map_err(unread)?;
    // Whoever answers at once must be heard.
    if served.config.listens() && listening.is_none() {
        return Err(SendError::NotYet);
    }
    let known = world.read(|store| store.thread(project, &there.room, &posting.topic)).map_err(unread)?;
    let notice = &posting.notice;
    let invitation = words::chat::invitation(&posting.topic, posting.question.as_deref(), notice.urgent)
        .filter(|_| served.config.listens());
    let body = match invitation {
        Some(invitation) if notice.body.is_empty() => invitation,
        Some(invitation) => format!("{invitation}\n{}", notice.body),
        None => notice.body.clone(),
    };
    let message = Message {
        title: &notice.title,
        body: &body,
        link: posting.link.as_deref(),
        thread: known.as_ref().map(|thread| thread.root.as_str()),
        replaces: None,
        calls: if notice.urgent { &served.config.matrix.people } else { &[] },
        notice: Some((project.as_str(), &posting.key)),
    };
    let created = delivery.at.0.to_string();
    let sent = matrix.send(&message, &transaction(&[&posting.key, project.as_str(), &created]))?;
    let thread = world.read(|store| standing::thread(store, posting, known, &there.room, &sent));
    Ok(Delivered::Sent { sent_as: Some(sent), thread })
}

pub(super) fn unread(error: pointsman_store::Error) -> SendError {
    SendError::Broken { error: chain(&error), asked: None }
}

/// A name for a message that is the same whenever it is sent, and no other's: also not that of a daemon with a new
/// state directory, for which numbers begin anew.
pub(super) fn transaction(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    let hex: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("pointsman-{hex}")
}
