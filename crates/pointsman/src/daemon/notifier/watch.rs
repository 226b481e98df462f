//! Looks after notifiers: what is told too late, what a thread shows, and who reads a room.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Health, KEPT, overflow};
use pointsman_core::words;
use pointsman_store::{DeliveryId, Store};

use super::tell::SendError;
use super::{LISTENER, NotifierReport, health, health_name, listener, send, standing};
use crate::daemon::backing_up::BackingUp;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;
use crate::daemon::{clock, digest};

/// Those that can be down.
const LOUD: [NotifierKind; 3] = [NotifierKind::Desktop, NotifierKind::Webhook, NotifierKind::Matrix];

/// Looks after all notifiers.
pub(crate) struct Watch {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    /// Projects as they were when it was looked whether they list fewer notifiers than before.
    known: BTreeMap<ProjectName, Arc<Served>>,
    backing_up: BackingUp,
}

impl Watch {
    /// Nothing was seen yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, known: BTreeMap::new(), backing_up: BackingUp::default() }
    }

    /// Has done what is due: each project's threads and room on threads of their own.
    pub(crate) fn look(&mut self) {
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(served) = projects.values().next() {
            self.backing_up.look(&self.world.paths, served.enclosure.kept_backups());
        }
        for served in projects.values() {
            let before = self.known.insert(served.config.name.clone(), Arc::clone(served));
            let new = before.is_none_or(|before| !Arc::ptr_eq(&before, served));
            digest::look(&self.world, &self.inbox, served);
            for kind in LOUD.into_iter().filter(|kind| new || served.config.tells(*kind)) {
                self.shorten(served, kind);
                self.wake(served, kind, new);
            }
            if served.config.tells(NotifierKind::Matrix) && self.is_outdated(served) {
                let (inbox, world) = (self.inbox.clone(), Arc::clone(&self.world));
                let name = format!("threads {}", served.config.name);
                self.world.jobs.submit(name, served, move |_, served| update(&world, &inbox, served));
            }
            if served.config.listens() && (new || !self.rests(served, LISTENER)) {
                let (inbox, world) = (self.inbox.clone(), Arc::clone(&self.world));
                let name = format!("listen {}", served.config.name);
                self.world
                    .jobs
                    .submit(name, served, move |_, served| listener::listen(&world, &inbox, served));
            }
        }
    }

    fn read<T>(&self, read: impl FnOnce(&Store) -> Result<T, pointsman_store::Error>) -> Option<T> {
        match self.world.read(read) {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::error!(%error, "notices could not be read");
                None
            }
        }
    }

    fn health(&self, served: &Served, part: &str) -> Option<Health> {
        self.read(|store| health(store, &served.config.name, part)).flatten()
    }

    fn rests(&self, served: &Served, part: &str) -> bool {
        self.health(served, part).is_some_and(|health| health.rests(clock::now()))
    }

    /// Whoever starts the daemon anew, or changes a project, may just have put right what was wrong: then nobody rests. Nor
    /// does one that seems to rest because the clock went back.
    fn wake(&self, served: &Served, kind: NotifierKind, new: bool) {
        let Some(health) = self.health(served, &health_name(kind)) else { return };
        if new || health.since > clock::now() {
            let project = served.config.name.clone();
            send(&self.inbox, NotifierReport::Rested { project, by: kind });
        }
    }

    fn is_outdated(&self, served: &Served) -> bool {
        !self.rests(served, &health_name(NotifierKind::Matrix))
            && !standing::outdated(&self.world, served).is_empty()
    }

    /// Drops what nobody wants to hear any more: too many, too old, or by somebody who is not listed any more.
    fn shorten(&self, served: &Served, kind: NotifierKind) {
        let project = &served.config.name;
        let Some(line) = self.read(|store| store.waiting_deliveries(project, kind)) else { return };
        let now = clock::now();
        let urgent: Vec<bool> = line.iter().map(|(_, _, urgent)| *urgent).collect();
        let too_many = overflow(&urgent);
        for (place, (id, at, _)) in line.into_iter().enumerate() {
            let why = if !served.config.tells(kind) {
                words::daemon::notifier::not_told_this_way()
            } else if at.after(KEPT) <= now {
                words::daemon::notifier::told_too_late()
            } else if too_many.binary_search(&place).is_ok() {
                words::daemon::notifier::too_many_waited()
            } else {
                continue;
            };
            self.drop(served, kind, id, why);
        }
    }

    fn drop(&self, served: &Served, by: NotifierKind, id: DeliveryId, why: &str) {
        tracing::warn!(project = %served.config.name, notifier = %by, why, "a notice is dropped");
        send(&self.inbox, NotifierReport::Dropped { id, why: why.to_owned() });
    }
}

/// Brings the first messages of threads up to date.
fn update(world: &EffectPerformer, inbox: &Inbox, served: &Served) {
    if let Err(SendError::Broken { error, asked }) = standing::update(world, inbox, served) {
        let (project, part) = (served.config.name.clone(), health_name(NotifierKind::Matrix));
        send(inbox, NotifierReport::Failed { project, part, error, asked });
    }
}
