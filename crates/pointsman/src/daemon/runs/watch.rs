//! Looks at the clock, for formulas that run by themselves.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pointsman_adapters::process::free_memory_mb;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::entries;
use sha2::{Digest, Sha256};

use crate::daemon::clock;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::{Inbox, ThreadReport};
use crate::daemon::served::Served;
use crate::daemon::timetable::ProjectFacts;

/// Timetables have minutes; they are looked at this often.
const CLOCK: Duration = Duration::from_secs(10);

/// Looks at the timetables of all projects.
pub(crate) struct Watch {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    /// When the clock is looked at next.
    clock_at: Timestamp,
}

impl Watch {
    /// Nothing was seen yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, clock_at: Timestamp::default() }
    }

    /// Does what is due.
    pub(crate) fn look(&mut self) {
        let now = clock::now();
        // The clock may have been set back.
        if self.clock_at > now && self.clock_at <= now.after(CLOCK) {
            return;
        }
        self.clock_at = now.after(CLOCK);
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        for served in projects.values() {
            self.tell_the_time(served);
        }
    }

    /// Has the loop look at the clock, where anything runs by itself.
    pub(in crate::daemon) fn tell_the_time(&self, served: &Arc<Served>) {
        let config = &served.config;
        if entries(config).is_empty() {
            return;
        }
        let main = served.mirror.remote_head(&served.primary).ok().flatten();
        let tasks = self.world.read(|store| store.tasks(Some(&config.name))).unwrap_or_default();
        let tasks: Vec<_> = tasks.iter().map(|task| (task.key.issue, task.state, task.phase)).collect();
        let inputs = format!("{main:?} {tasks:?}");
        let digest: String = Sha256::digest(inputs).iter().map(|byte| format!("{byte:02x}")).collect();
        let standing = ProjectFacts { free_memory_mb: free_memory_mb(), inputs: digest };
        self.inbox.report(ThreadReport::Timetable { project: config.name.clone(), standing });
    }
}
