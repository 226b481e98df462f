//! Looks what is to be told, and sees to it that somebody does.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{KEPT, overflow};
use pointsman_core::words;
use pointsman_store::{Delivered, DeliveryId, Store};

use super::{LISTENER, NotifierReport, health, health_name, listener, send, standing, tell};
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

    /// Has done what is due: each notifier of each project on a thread of its own.
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
                if served.config.tells(kind) && self.has_work(served, kind, new) {
                    let (inbox, world) = (self.inbox.clone(), Arc::clone(&self.world));
                    let name = format!("notify {} {kind}", served.config.name);
                    self.world
                        .jobs
                        .submit(name, served, move |_, served| tell::all(&world, &inbox, served, kind));
                }
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

    fn rests(&self, served: &Served, part: &str) -> bool {
        let health = self.read(|store| health(store, &served.config.name, part)).flatten();
        health.is_some_and(|health| health.rests(clock::now()))
    }

    /// Whoever starts the daemon anew, or changes a project, may just have put right what was wrong: then nobody rests.
    fn has_work(&self, served: &Served, kind: NotifierKind, new: bool) -> bool {
        if !new && self.rests(served, &health_name(kind)) {
            return false;
        }
        let due = self.read(|store| store.due_deliveries(&served.config.name, kind, clock::now(), 1));
        due.is_some_and(|due| !due.is_empty())
            || (kind == NotifierKind::Matrix && !standing::outdated(&self.world, served).is_empty())
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
        let project = served.config.name.clone();
        tracing::warn!(%project, notifier = %by, why, "a notice is dropped");
        send(
            &self.inbox,
            NotifierReport::Settled {
                project,
                id,
                by,
                delivered: Delivered::Dropped { why: why.to_owned() },
                at: clock::now(),
            },
        );
    }
}
