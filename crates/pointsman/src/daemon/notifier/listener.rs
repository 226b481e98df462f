//! Reads a room: asks for news, and the answer comes when there are some. How far it was read is on disk together with
//! what was said, so that nothing is missed or taken twice, whoever dies in between.

use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::notify::matrix::{LONG_POLL, RoomMembership};
use pointsman_core::chat::{Ignored, PersonMessage, listen as hear};
use pointsman_core::people::AccountKind;

use super::tell::{SendError, unread, unset};
use super::{LISTENER, NotifierReport, send};
use crate::daemon::crash::crash_point;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;

/// The name under which it is remembered how far a room was read, by this account.
pub(super) fn cursor(there: &RoomMembership) -> String {
    format!("matrix.since {} {}", there.room, there.me)
}

/// Listens until there is trouble, the daemon stops, or the project is served anew.
pub(super) fn listen(world: &EffectPerformer, inbox: &Inbox, served: &Arc<Served>) {
    while !world.jobs.is_stopping() && world.serves(served) {
        match round(world, inbox, served) {
            Ok(()) => {}
            Err(SendError::Broken { error, asked }) => {
                let (project, part) = (served.config.name.clone(), LISTENER.to_owned());
                return send(inbox, NotifierReport::Failed { project, part, error, asked });
            }
            Err(SendError::Unfit(error)) => {
                let (project, part) = (served.config.name.clone(), LISTENER.to_owned());
                return send(inbox, NotifierReport::Failed { project, part, error, asked: Some(LONG_POLL) });
            }
            Err(SendError::NotYet) => return,
        }
    }
}

fn round(world: &EffectPerformer, inbox: &Inbox, served: &Served) -> Result<(), SendError> {
    let matrix = served.notifiers.matrix().map_err(unset)?;
    let (there, project) = (matrix.look()?, &served.config.name);
    let name = cursor(&there);
    let since = world.read(|store| store.cursor(Some(project), &name)).map_err(unread)?;
    let ill = world.read(|store| super::health(store, project, LISTENER)).map_err(unread)?.is_some();
    // Who was in trouble wants to know quickly that it is over.
    let wait = if since.is_some() && !ill { LONG_POLL } else { Duration::ZERO };
    let batch = matrix.sync(since.as_deref(), wait)?;
    let mut said = Vec::new();
    for heard in &batch.heard {
        match hear(heard, &there.me, &served.config.matrix.people) {
            Ok(words) => {
                let people = served.enclosure.people();
                match people.allows(AccountKind::Chat, &words.by) {
                    true => {
                        let by = people.recorded(AccountKind::Chat, &words.by);
                        said.push(PersonMessage { by, ..words });
                    }
                    false => tracing::info!(%project, sender = words.by, "not among [people]"),
                }
            }
            Err(Ignored::Own) => {}
            Err(why) => {
                tracing::info!(%project, sender = heard.sender, event = heard.event, ?why, "not listened to")
            }
        }
    }
    if ill || !said.is_empty() || !batch.own.is_empty() || batch.missed || since.as_ref() != Some(&batch.next)
    {
        if !said.is_empty() {
            crash_point("reply-read");
        }
        let (project, place, read_to) = (project.clone(), there.room.clone(), (name, batch.next));
        send(
            inbox,
            NotifierReport::Heard { project, place, own: batch.own, said, missed: batch.missed, read_to },
        );
    }
    Ok(())
}
