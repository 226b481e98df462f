//! The activities of the sessions, as their hooks report them. Kept in a file beside the sessions' own sockets, so
//! that a new daemon knows it too: it must not type into a dialog that was announced to the one before.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pointsman_adapters::phase_file;
use pointsman_core::hook::{Activity, Report};

/// Of all sessions that have said something, by their names.
pub(crate) struct SessionActivities {
    file: PathBuf,
    all: Mutex<BTreeMap<String, Activity>>,
}

impl SessionActivities {
    /// Reads what an earlier daemon knew. Without it nobody knows until the next hook, and the screen alone decides.
    pub(crate) fn open(file: PathBuf) -> Self {
        let all = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(%error, "what the sessions were doing cannot be read");
                BTreeMap::new()
            }),
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    tracing::warn!(%error, "what the sessions were doing cannot be read");
                }
                BTreeMap::new()
            }
        };
        Self { file, all: Mutex::new(all) }
    }

    /// Forgets the sessions that are over.
    pub(crate) fn keep(&self, is_present: impl Fn(&str) -> bool) {
        self.change(|all| all.retain(|session, _| is_present(session)));
    }

    /// Takes note of what a hook says.
    pub(crate) fn hear(&self, report: &Report) {
        self.change(|all| {
            let before = all.remove(&report.session);
            if let Some(now) = Activity::after(before, &report.told) {
                all.insert(report.session.clone(), now);
            }
        });
    }

    /// The present stance of a session; none if nobody knows.
    pub(crate) fn of(&self, session: &str) -> Option<Activity> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).get(session).cloned()
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Activity>)) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.clone();
        change(&mut all);
        if *all == before {
            return;
        }
        let written = serde_json::to_vec(&*all)
            .map_err(std::io::Error::from)
            .and_then(|bytes| phase_file::write_state_file(&self.file, &bytes));
        if let Err(error) = written {
            tracing::warn!(%error, "what the sessions are doing cannot be kept for the next daemon");
        }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::hook::{Activity, HookEvent, Report};
    use pointsman_core::time::Timestamp;

    use super::SessionActivities;

    fn report(session: &str, told: HookEvent) -> Report {
        Report { id: "1".to_owned(), session: session.to_owned(), at: Timestamp(1), told }
    }

    #[test]
    fn a_new_daemon_knows_of_a_dialog_that_was_announced_to_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("stances.json");
        let what = "permission for Bash".to_owned();
        let stances = SessionActivities::open(file.clone());
        assert_eq!(stances.of("dev-shop-1.1"), None);
        stances.hear(&report("dev-shop-1.1", HookEvent::Asked { what: what.clone() }));
        stances.hear(&report("dev-shop-2.1", HookEvent::Idle));
        let next = SessionActivities::open(file.clone());
        assert_eq!(next.of("dev-shop-1.1"), Some(Activity::AtDialog { what }));
        assert_eq!(next.of("dev-shop-2.1"), Some(Activity::AtPrompt));
        next.keep(|session| session == "dev-shop-2.1");
        let third = SessionActivities::open(file.clone());
        assert_eq!((third.of("dev-shop-1.1"), third.of("dev-shop-2.1")), (None, Some(Activity::AtPrompt)));
        std::fs::write(&file, "{\"dev-shop-2.1\": ").unwrap();
        assert_eq!(SessionActivities::open(file).of("dev-shop-2.1"), None, "torn: nobody knows");
    }
}
