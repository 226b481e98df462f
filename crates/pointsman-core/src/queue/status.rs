//! The status of an entry of the merge queue, and of a paused queue.

use serde::{Deserialize, Serialize};

/// The standing of an entry. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryStatus {
    Queued,
    /// Its candidate is being made.
    Building,
    /// Its candidate is being tested.
    Testing,
    Landed,
    /// Does not apply to the main branch.
    Conflict,
    /// Applies, but its tests fail.
    Red,
    /// Its branch or pull request changed while it waited.
    Stale,
    Removed,
}

impl EntryStatus {
    /// Whether it still waits for its end.
    pub fn is_unfinished(self) -> bool {
        match self {
            Self::Queued | Self::Building | Self::Testing => true,
            Self::Landed | Self::Conflict | Self::Red | Self::Stale | Self::Removed => false,
        }
    }
}

/// The one who paused a merge queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    Person,
    /// The audit: something reached the main branch past the queue.
    Audit,
    /// The server: it refuses to take what would land.
    Refusal,
}
