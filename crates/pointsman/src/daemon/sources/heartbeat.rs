//! The pulse of every session: `last_seen` goes on as long as its process does.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointsman_adapters::process;
use pointsman_core::part::session::Stage;
use pointsman_core::time::Timestamp;

use crate::daemon::board::WorkflowMap;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::{Inbound, Inbox};

/// Looks at processes at the pace of their projects (`timing.heartbeat`, halved: a look may be late).
pub(crate) struct Heartbeats {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    next: BTreeMap<String, Timestamp>,
}

impl Heartbeats {
    /// Nothing was felt yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, next: BTreeMap::new() }
    }

    /// Looks at every session whose time has come; answers when the next one's comes.
    pub(crate) fn feel(&mut self, picture: &WorkflowMap, now: Timestamp) -> Option<Timestamp> {
        let (mut seen, mut missed, mut next) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (id, owner) in picture.iter().filter(|(_, owner)| owner.session().stage == Stage::Alive) {
            let (Some(session), Some(served)) = (owner.session_name(), self.world.project(id.project()))
            else {
                continue;
            };
            let pace = served.config.timing.heartbeat.duration() / 2;
            let due = match self.next.get(&session) {
                None => now.after(pace),
                Some(at) if *at > now && *at <= now.after(pace) => *at,
                Some(_) => {
                    if self.is_there(&session) {
                        seen.push(session.clone())
                    } else {
                        missed.push(session.clone())
                    }
                    now.after(pace)
                }
            };
            next.insert(session, due);
        }
        self.next = next;
        if !seen.is_empty() {
            self.inbox.send(Inbound::Seen { sessions: seen });
        }
        if !missed.is_empty() {
            self.inbox.send(Inbound::Missed { sessions: missed });
        }
        self.next.values().min().copied()
    }

    fn is_there(&self, session: &str) -> bool {
        let row = self.world.read(|store| store.session(session)).ok().flatten();
        row.is_some_and(
            |r| matches!((r.pid, r.start_time), (Some(pid), Some(at)) if process::is_alive(pid, at)),
        )
    }
}
