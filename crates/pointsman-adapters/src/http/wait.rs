//! Waiting that ends early when everything ends.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Waits between tries, until it is told that nobody waits any more. Clones share one fate.
#[derive(Clone, Default)]
pub struct RetryWait(Arc<(Mutex<bool>, Condvar)>);

impl RetryWait {
    /// Ends all waiting, now and later.
    pub fn end(&self) {
        let (ended, changed) = &*self.0;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }

    /// Waits this long; false if waiting has ended.
    pub(super) fn wait(&self, span: Duration) -> bool {
        let until = Instant::now() + span;
        let (ended, changed) = &*self.0;
        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if *ended || left.is_zero() {
                return !*ended;
            }
            ended = changed.wait_timeout(ended, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::RetryWait;

    #[test]
    fn ended_patience_does_not_wait() {
        let patience = RetryWait::default();
        assert!(patience.wait(Duration::from_millis(1)));
        let other = patience.clone();
        let waiting = std::thread::spawn(move || other.wait(Duration::from_secs(3600)));
        patience.end();
        assert!(!waiting.join().unwrap());
        assert!(!patience.wait(Duration::ZERO));
    }
}
