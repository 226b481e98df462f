//! The pulse of every session: `last_seen` goes on as long as its process does. One that uses no
//! processor time gives no sign, and that is counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use pointsman_adapters::process::{self, ProcessorTimes};
use pointsman_core::part::session::Stage;
use pointsman_core::session::liveness;
use pointsman_core::time::Timestamp;

use crate::daemon::board::WorkflowMap;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::{Inbox, ThreadReport};

/// Looks at processes at the pace of their projects (`timing.heartbeat`, halved: a look may be late).
pub(crate) struct Heartbeats {
    inbox: Inbox,
    world: Arc<EffectPerformer>,
    next: BTreeMap<String, Timestamp>,
    /// The processor time that each session had used at its last look. Only in memory: for a new daemon the first look is
    /// a sign.
    used: BTreeMap<String, u128>,
}

impl Heartbeats {
    /// Nothing was felt yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, next: BTreeMap::new(), used: BTreeMap::new() }
    }

    /// Looks at every session whose time has come; answers when the next one's comes.
    pub(crate) fn feel(&mut self, picture: &WorkflowMap, now: Timestamp) -> Option<Timestamp> {
        let (mut seen, mut silent, mut missed) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = BTreeMap::new();
        let mut processes = None;
        for (id, owner) in picture.iter().filter(|(_, owner)| owner.session().stage == Stage::Alive) {
            let (Some(session), Some(served)) = (owner.session_name(), self.world.project(id.project()))
            else {
                continue;
            };
            let pace = liveness::Rules::of(&served.config.timing).look_pace;
            let due = match self.next.get(&session) {
                None => now.after(pace),
                Some(at) if *at > now && *at <= now.after(pace) => *at,
                Some(_) => {
                    let processes = processes.get_or_insert_with(ProcessorTimes::now);
                    match self.look_at(&session, processes) {
                        Sign::Given => seen.push(session.clone()),
                        Sign::None => silent.push(session.clone()),
                        Sign::NotThere => missed.push(session.clone()),
                    }
                    now.after(pace)
                }
            };
            next.insert(session, due);
        }
        self.used.retain(|session, _| next.contains_key(session));
        self.next = next;
        if !seen.is_empty() || !silent.is_empty() {
            self.inbox.report(ThreadReport::Seen { sessions: seen, silent });
        }
        if !missed.is_empty() {
            self.inbox.report(ThreadReport::Missed { sessions: missed });
        }
        self.next.values().min().copied()
    }

    /// Looks whether the session's process is there, and whether one of its processes ran since the last look.
    fn look_at(&mut self, session: &str, processes: &ProcessorTimes) -> Sign {
        let row = self.world.read(|store| store.session(session)).ok().flatten();
        let process = row.and_then(|row| row.pid.zip(row.start_time));
        let there = process.filter(|(pid, start_time)| process::is_alive(*pid, *start_time));
        let Some(used) = there.and_then(|(pid, _)| processes.of_tree(pid)) else { return Sign::NotThere };
        match self.used.insert(session.to_owned(), used) {
            Some(before) if before == used => Sign::None,
            Some(_) | None => Sign::Given,
        }
    }
}

/// The sign of life that a session gave between two looks.
enum Sign {
    Given,
    None,
    NotThere,
}
