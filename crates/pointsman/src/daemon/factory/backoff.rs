//! Retries of failed looks, later and later: a server that is down, or that refuses for good, is not asked every
//! moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pointsman_core::time::Timestamp;

use super::watch::Watch;
use crate::daemon::served::Served;

const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(600);

/// What failed, by name: when it may be tried again, and how long was waited for that.
#[derive(Debug, Default)]
pub(super) struct Backoff(Mutex<BTreeMap<String, (Timestamp, Duration)>>);

impl Backoff {
    fn may(&self, name: &str, now: Timestamp) -> bool {
        let failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The clock may have been set back.
        failed.get(name).is_none_or(|(at, _)| *at <= now || *at > now.after(LONGEST))
    }

    fn failed(&self, name: &str, now: Timestamp) {
        let mut failed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = failed.get(name).map_or(FIRST, |(_, pause)| (*pause * 2).min(LONGEST));
        failed.insert(name.to_owned(), (now.after(pause), pause));
    }

    fn went_well(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

impl Watch {
    /// Does something beside the loop, of each name one at a time.
    pub(super) fn beside(
        &self,
        name: String,
        served: &Arc<Served>,
        now: Timestamp,
        work: impl Fn(&Served) -> anyhow::Result<()> + Send + 'static,
    ) {
        if !self.patience.may(&name, now) {
            return;
        }
        let patience = Arc::clone(&self.patience);
        self.world.jobs.submit(name.clone(), served, move |_, served| match work(served) {
            Ok(()) => patience.went_well(&name),
            Err(error) => {
                patience.failed(&name, now);
                tracing::warn!(what = name, error = format!("{error:#}"), "not done yet");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Backoff, LONGEST};
    use pointsman_core::time::Timestamp;

    #[test]
    fn what_fails_is_tried_less_and_less_often_and_at_once_after_it_went_well() {
        let patience = Backoff::default();
        let mut now = Timestamp(1_000_000);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert!(patience.may("plan", now) && patience.may("garden", now));
            patience.failed("plan", now);
            let pause = (0..=LONGEST.as_secs())
                .find(|seconds| patience.may("plan", now.after(std::time::Duration::from_secs(*seconds))));
            let pause = pause.unwrap();
            pauses.push(pause);
            now = now.after(std::time::Duration::from_secs(pause));
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 600, 600]);
        patience.failed("plan", now);
        assert!(patience.may("plan", Timestamp(0)), "a clock that was set back holds nothing up");
        patience.went_well("plan");
        assert!(patience.may("plan", now));
    }
}
