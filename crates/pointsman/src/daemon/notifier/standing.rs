//! The first message of a thread tells how things stand. It is edited when that changes: nobody has to read a thread to
//! its end, and nobody is called by it.

use std::time::Duration;

use pointsman_adapters::notify::matrix::Message;
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::words;
use pointsman_store::{Store, Thread};

use super::tell::{SendError, transaction, unset};
use super::{NotifierReport, send};
use crate::daemon::clock;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;

/// A message is not edited more often than this: what changes quickly need not be seen in between.
const PAUSE: Duration = Duration::from_secs(5);

/// How a topic stands, and whether that is its end; nothing if it only has notices.
fn now(store: &Store, project: &ProjectName, topic: &Topic) -> Option<(String, bool)> {
    match topic {
        Topic::Task(issue) => {
            let key = TaskKey { project: project.clone(), issue: *issue };
            store.task(&key).ok().flatten().map(|task| words::chat::standing_of_task(&task))
        }
        Topic::Vault(id) => {
            let entry = store.vault_entry(project, id).ok().flatten();
            entry.map(|entry| words::chat::standing_of_action(&entry))
        }
        Topic::Question(id) => {
            let asked = store.question(*id).ok().flatten();
            asked.map(|asked| words::chat::standing_of_question(&asked))
        }
        Topic::Agent(_) | Topic::Room => None,
    }
}

/// The thread that a message is in, or begins; none if it is about nothing in particular.
pub(super) fn thread(
    store: &Store,
    posting: &Posting,
    known: Option<Thread>,
    place: &str,
    sent_as: &str,
) -> Option<Thread> {
    let (project, topic) = (&posting.project, &posting.topic);
    match (known, topic) {
        (_, Topic::Room) => None,
        (Some(known), _) => Some(Thread { open: true, ..known }),
        (None, Topic::Task(_) | Topic::Agent(_) | Topic::Vault(_) | Topic::Question(_)) => Some(Thread {
            project: project.clone(),
            place: place.to_owned(),
            topic: topic.clone(),
            root: sent_as.to_owned(),
            first: format!("{}\n{}", posting.notice.title, posting.notice.body),
            shown: now(store, project, topic).map(|(text, _)| text).unwrap_or_default(),
            edits: 0,
            edited_at: clock::now(),
            open: true,
        }),
    }
}

/// Threads whose first message shows something else than is so, with what they should show.
pub(super) fn outdated(world: &EffectPerformer, served: &Served) -> Vec<Thread> {
    let project = &served.config.name;
    // Without a look at the server there is no room, and nothing was written there by this daemon.
    let Some(there) = served.notifiers.matrix().ok().and_then(|matrix| matrix.known()) else {
        return Vec::new();
    };
    let threads = world.read(|store| store.open_threads(project, &there.room)).unwrap_or_default();
    let at = clock::now();
    threads
        .into_iter()
        .filter(|thread| thread.edited_at.after(PAUSE) <= at || thread.edited_at > at)
        .filter_map(|thread| {
            let (shown, over) = world.read(|store| now(store, project, &thread.topic))?;
            let changed = shown != thread.shown || over;
            changed.then(|| Thread { shown, open: !over, edits: thread.edits + 1, edited_at: at, ..thread })
        })
        .collect()
}

/// Brings them up to date.
pub(super) fn update(world: &EffectPerformer, inbox: &Inbox, served: &Served) -> Result<(), SendError> {
    let matrix = served.notifiers.matrix().map_err(unset)?;
    for thread in outdated(world, served) {
        let message = Message {
            title: &thread.shown,
            body: &thread.first,
            replaces: Some(&thread.root),
            ..Message::default()
        };
        let name = transaction(&["edit", &thread.root, &thread.edits.to_string(), &thread.shown]);
        match matrix.send(&message, &name).map_err(SendError::from) {
            Ok(_) => {}
            // The message is gone, or is not taken; the thread is good without.
            Err(SendError::Unfit(why)) => {
                tracing::warn!(project = %thread.project, why, "a thread is not kept up to date")
            }
            Err(trouble) => return Err(trouble),
        }
        send(inbox, NotifierReport::Shown(thread));
    }
    Ok(())
}
