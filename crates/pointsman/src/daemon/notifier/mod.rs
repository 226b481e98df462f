//! Sends notices to people and reads their messages. The core decides who is told what and when, and what a message
//! means; this module records the decision and carries it out.
//!
//! A notice is an effect in a lane of each notifier that tells it: `tell` performs it. `watch` drops what nobody wants to
//! hear any more, and finds threads and rooms to look after: `standing` updates the first message of each thread, `listener`
//! reads a room, and `incoming` acts on messages. All but `incoming` and this file run beside the loop, so a server that is
//! down delays nobody.

mod incoming;
mod listener;
mod standing;
mod tell;
mod watch;

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use pointsman_adapters::notify::matrix::Own;
use pointsman_core::chat::PersonMessage;
use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Health, Lane, Notifier, NotifierKey, Plan, Posting, Rules, Topic, plan};
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::Utc;
use pointsman_core::words;
use pointsman_store::{Change, Delivered, DeliveryId, NewNotice, Store, Thread, Write};
use pointsman_view::notice::Testing;

pub(super) use tell::tell;
pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::clock;
use super::effects::chain;
use super::engine::Engine;
use super::inbound::{Inbox, ThreadReport};
use super::timetable::SystemZone;
use crate::control::protocol::{FailureKind, Reply};

/// A report of a thread to the loop, which writes it down.
pub(crate) enum NotifierReport {
    /// People are to be told something that no effect has ordered.
    Posted(Posting),
    /// Nobody wants to hear a notice any more.
    Dropped { id: DeliveryId, why: String },
    /// What a notifier rests for may be put right.
    Rested { project: ProjectName, by: NotifierKind },
    /// The first message of a thread shows something else.
    Shown(Thread),
    /// A part of telling people does not work.
    Failed {
        project: ProjectName,
        /// Which part, see [`health_name`] and [`LISTENER`].
        part: String,
        error: String,
        /// How long the other side asks to wait.
        asked: Option<Duration>,
    },
    Heard {
        project: ProjectName,
        place: String,
        /// Notices of ours that are there: it may be news to us that they are told.
        own: Vec<Own>,
        /// What, oldest first.
        said: Vec<PersonMessage>,
        /// More was said than was read.
        missed: bool,
        /// Up to where that is read: a named value to remember.
        read_to: (String, String),
    },
}

/// The part that listens.
pub(crate) const LISTENER: &str = "listener.matrix";

/// The name under which a notifier's trouble is remembered.
pub(crate) fn health_name(kind: NotifierKind) -> String {
    format!("notifier.{kind}")
}

/// The failures of a part of the notifier; none if it works.
pub(crate) fn health(
    store: &Store,
    project: &ProjectName,
    part: &str,
) -> Result<Option<Health>, pointsman_store::Error> {
    let value = store.cursor(Some(project), part)?;
    Ok(value.and_then(|text| serde_json::from_str(&text).ok()))
}

/// Has the loop write something down, and waits until it is.
pub(super) fn send(inbox: &Inbox, told: NotifierReport) {
    let (written, answer) = sync_channel(1);
    inbox.report(ThreadReport::Notifier { told: Box::new(told), written });
    // The daemon's end drops the other side.
    let _ = answer.recv();
}

/// Writes down what was told to the loop. Twice is the same as once.
pub(super) fn take(
    engine: &mut Engine,
    told: &NotifierReport,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    match told {
        NotifierReport::Posted(posting) => post(engine, posting, now),
        NotifierReport::Dropped { id, why } => {
            let delivered = Delivered::Dropped { why: why.clone() };
            let dropped = Write::Delivered { id: *id, delivered, at: now };
            engine.write(&[Change::quiet(now, vec![dropped])]).map(drop)
        }
        NotifierReport::Rested { project, by } => {
            let Some(health) = health(engine.store(), project, &health_name(*by))? else { return Ok(()) };
            engine.write(&[Change::quiet(now, retried(project, *by, health.next).collect())]).map(drop)
        }
        NotifierReport::Shown(thread) => {
            engine.write(&[Change::quiet(now, vec![Write::Thread(thread.clone())])]).map(drop)
        }
        NotifierReport::Failed { project, part, error, asked } => {
            let before = health(engine.store(), project, part)?;
            let after = Health::failed(before.as_ref(), error, *asked, now);
            if before.is_none_or(|before| before.error != after.error) {
                tracing::error!(%project, part, error = after.error, "people cannot be told or heard");
            }
            let text = serde_json::to_string(&after).unwrap_or_default();
            engine.write(&[Change::quiet(now, vec![Write::cursor(project, part, text)])]).map(drop)
        }
        NotifierReport::Heard { project, place, own, said, missed, read_to } => {
            for own in own.iter().filter(|own| own.project == project.as_str()) {
                incoming::confirm(engine, project, place, own)?;
            }
            for said in said {
                incoming::take(engine, project, place, said, now)?;
            }
            let mut writes = vec![Write::cursor(project, &read_to.0, &read_to.1)];
            if *missed {
                writes.extend(incoming::missed(engine, project, &read_to.1, now)?);
            }
            if health(engine.store(), project, LISTENER)?.is_some() {
                tracing::info!(%project, "the room is listened to again");
                writes.push(Write::cursor(project, LISTENER, ""));
            }
            engine.write(&[Change::quiet(now, writes)]).map(drop)
        }
    }
}

/// The rows that follow from what happened to a notifier.
pub(super) fn moved(before: &Notifier, after: &Notifier) -> Vec<Write> {
    let NotifierKey { project, kind, .. } = &after.key;
    let mut writes = Vec::new();
    match (&before.health, &after.health) {
        (None, None) => return writes,
        (Some(ill), None) => {
            tracing::info!(%project, notifier = %kind, "people can be told again");
            writes.extend(retried(project, *kind, ill.next));
        }
        (before, Some(after)) if before.as_ref().is_none_or(|before| before.error != after.error) => {
            tracing::error!(%project, notifier = %kind, error = after.error, "people cannot be told");
        }
        (Some(_) | None, Some(_)) => {}
    }
    let text = after.health.as_ref().and_then(|health| serde_json::to_string(health).ok());
    writes.push(Write::cursor(project, health_name(*kind), text.unwrap_or_default()));
    writes
}

/// Notices that waited until then because the notifier rested are due.
fn retried(
    project: &ProjectName,
    kind: NotifierKind,
    until: Timestamp,
) -> impl Iterator<Item = Write> + use<> {
    let project = project.clone();
    Lane::ALL.into_iter().map(move |lane| {
        let workflow = NotifierKey { project: project.clone(), kind, lane }.into();
        Write::EffectsRetried { workflow, until }
    })
}

/// Plans who tells a notice, and when, and writes that down.
fn post(engine: &mut Engine, posting: &Posting, now: Timestamp) -> Result<(), pointsman_store::Error> {
    match planned(engine, posting, now)? {
        Some(notice) => engine.write(&[Change::quiet(now, vec![notice])]).map(drop),
        None => Ok(()),
    }
}

/// Plans who tells a notice, and when, for somebody who writes it down with something else. Nothing if it was told.
pub(super) fn planned(
    engine: &Engine,
    posting: &Posting,
    now: Timestamp,
) -> Result<Option<Write>, pointsman_store::Error> {
    let Some(config) = engine.config(&posting.project) else { return Ok(None) };
    if engine.store().has_notice(&posting.key)? {
        return Ok(None);
    }
    let same = engine.store().told_last(&posting.project, &posting.words())?;
    let rules = Rules::new(&config);
    let same_at = same.map(|(_, at)| at);
    let planned = match SystemZone::find(config.quiet_zone()) {
        Some(zone) => plan(posting, same_at, &rules, &zone, now),
        None => plan(posting, same_at, &rules, &Utc, now),
    };
    match (planned, same) {
        (Plan::Tell(lane, mut to), _) => {
            for (kind, when) in &mut to {
                // Who rests is not disturbed by what is new.
                let rests = health(engine.store(), &posting.project, &health_name(*kind))?;
                let until = rests.filter(|health| health.rests(now)).map(|health| health.next);
                *when = until.map_or(*when, |until| until.max(*when));
            }
            Ok(Some(Write::Notice(NewNotice { posting: posting.clone(), lane, to })))
        }
        (Plan::Count, Some((id, _))) => Ok(Some(Write::NoticeRepeated(id))),
        (Plan::Count, None) => Ok(None),
    }
}

/// Tells people that this is a test, by all who are listed.
pub(super) fn try_out(engine: &mut Engine, project: &ProjectName, key: &str) -> Reply {
    let Some(config) = engine.config(project) else {
        return failed(FailureKind::NotFound, words::daemon::request::not_served(project));
    };
    let posting = Posting {
        key: format!("test:{project}:{key}"),
        project: project.clone(),
        topic: Topic::Room,
        link: None,
        question: None,
        notice: words::chat::trial(project),
    };
    let now = clock::now();
    let to =
        config.notify.to.iter().filter(|kind| **kind != NotifierKind::Log).map(|kind| (*kind, now)).collect();
    let notice = Write::Notice(NewNotice { posting: posting.clone(), lane: Lane::Prompt, to });
    match engine.write(&[Change::quiet(now, vec![notice])]) {
        Ok(_) => done(Testing { key: posting.key }),
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}
