//! The merge queue's decisions: the order of the branches, the next test, the next landing, and which branches are
//! removed.
//!
//! The queue is a chain of candidates C1…Cn on the main branch; Ck holds the first k branches. Every decision is
//! computed anew from the order and the test runs of each candidate's tree, so a restart that rebuilds the same
//! candidates decides the same. The daemon builds, tests and pushes.

mod order;
pub mod outside;
mod plan;
mod runs;
pub mod simulation;
mod size;
mod status;
#[cfg(test)]
mod tests;

pub use order::{Waiting, in_order};
pub use plan::{CandidateRuns, Fault, Plan, Policy, QueueFacts, Strategy, Subject, plan};
pub use runs::{GateVerdict, Record, Runs};
pub use size::batch_size;
pub use status::{EntryStatus, StoppedBy};

use std::fmt;

use serde::{Deserialize, Serialize};

/// An entry's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryId(pub i64);

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
