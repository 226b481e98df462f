//! What the gate said about one tree, and what follows from it.

use serde::{Deserialize, Serialize};

use crate::task::CiVerdict;

/// How often a gate ran on a tree, and how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// Ended green.
    pub green: u32,
    /// Ended red (or at its time limit).
    pub red: u32,
    /// Told nothing about the code.
    pub infra: u32,
}

/// What the runs amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not decided yet: no run, or none that told anything.
    Unknown,
    /// Green at least once: a red run beside it was a flake.
    Green,
    /// Red once; one more run decides.
    Suspect,
    /// Red twice and never green.
    Red,
    /// As many runs as are allowed, and no decision.
    Undecided,
}

impl Runs {
    /// Runs per tree and gate, whatever they said.
    pub const LIMIT: u32 = 3;

    /// What the runs amount to.
    pub fn standing(self) -> Standing {
        match self {
            Self { green: 1.., .. } => Standing::Green,
            Self { red: 2.., .. } => Standing::Red,
            Self { green, red, infra } if green + red + infra >= Self::LIMIT => Standing::Undecided,
            Self { red: 1, .. } => Standing::Suspect,
            Self { .. } => Standing::Unknown,
        }
    }
}

/// What is remembered about a tree and a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// All runs.
    pub runs: Runs,
    /// The last red or green verdict, or the last one at all.
    pub last: CiVerdict,
}

impl Record {
    /// The record with one more verdict.
    pub fn add(earlier: Option<&Record>, verdict: CiVerdict) -> Record {
        let mut runs = earlier.map(|record| record.runs).unwrap_or_default();
        let told = match &verdict {
            CiVerdict::Passed => {
                runs.green += 1;
                true
            }
            CiVerdict::Failed { .. } | CiVerdict::TimedOut { .. } => {
                runs.red += 1;
                true
            }
            CiVerdict::Infra { .. } => {
                runs.infra += 1;
                false
            }
        };
        let last = match earlier {
            // What an outage says is of no use to anybody who has a red log already.
            Some(record) if !told && record.runs.green + record.runs.red > 0 => record.last.clone(),
            _ => verdict,
        };
        Record { runs, last }
    }
}
