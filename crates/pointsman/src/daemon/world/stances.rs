//! What the sessions are doing, as their hooks say. Not remembered: after a restart nobody knows until the next hook, and
//! the screen alone decides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pointsman_core::hook::{Report, Stance};

/// Of all sessions that have said something, by their names.
#[derive(Default)]
pub(crate) struct Stances(Mutex<BTreeMap<String, Stance>>);

impl Stances {
    /// Takes note of what a hook says.
    pub(crate) fn hear(&self, report: &Report) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.remove(&report.session);
        if let Some(now) = Stance::after(before, &report.told) {
            all.insert(report.session.clone(), now);
        }
    }

    /// What a session is doing; none if nobody knows.
    pub(crate) fn of(&self, session: &str) -> Option<Stance> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned()
    }
}
