//! Every call and every byte, by what it was for.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The costs of one kind of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Requests sent, each try for itself.
    pub calls: u64,
    /// Answers "it has not changed".
    pub unchanged: u64,
    pub failed: u64,
    /// Bytes of bodies sent.
    pub sent: u64,
    /// Bytes of bodies received.
    pub received: u64,
    /// Time spent waiting for answers.
    pub waited: Duration,
}

impl Count {
    /// The sum of two counts.
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            unchanged: self.unchanged + other.unchanged,
            failed: self.failed + other.failed,
            sent: self.sent + other.sent,
            received: self.received + other.received,
            waited: self.waited + other.waited,
        }
    }
}

/// Counts by operation.
#[derive(Default)]
pub struct Counts(Mutex<BTreeMap<&'static str, Count>>);

impl Counts {
    /// Adds to what an operation has cost.
    pub(super) fn add(&self, operation: &'static str, cost: Count) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = counts.entry(operation).or_default();
        *known = known.plus(cost);
    }

    /// All operations with their counts, sorted by name.
    pub fn all(&self) -> Vec<(&'static str, Count)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(operation, count)| (*operation, *count)).collect()
    }

    /// The sum over all kinds of calls.
    pub fn total(&self) -> Count {
        self.all().into_iter().fold(Count::default(), |sum, (_, count)| sum.plus(count))
    }
}
