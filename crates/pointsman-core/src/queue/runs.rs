//! The gate's runs on one tree, and the verdict that follows from them.

use serde::{Deserialize, Serialize};

use crate::task::CiVerdict;

/// The runs of a gate on a tree, counted by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    pub green: u32,
    /// Ended red (or at its time limit).
    pub red: u32,
    /// Told nothing about the code.
    pub infra: u32,
}

/// The verdict that several runs amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateVerdict {
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

    /// The verdict that these runs amount to.
    pub fn standing(self) -> GateVerdict {
        match self {
            Self { green: 1.., .. } => GateVerdict::Green,
            Self { red: 2.., .. } => GateVerdict::Red,
            Self { green, red, infra } if green + red + infra >= Self::LIMIT => GateVerdict::Undecided,
            Self { red: 1, .. } => GateVerdict::Suspect,
            Self { .. } => GateVerdict::Unknown,
        }
    }

    /// These runs and one more.
    pub fn and(self, verdict: &CiVerdict) -> Self {
        match verdict {
            CiVerdict::Passed => Self { green: self.green + 1, ..self },
            CiVerdict::Failed { .. } | CiVerdict::TimedOut { .. } => Self { red: self.red + 1, ..self },
            CiVerdict::Infra { .. } => Self { infra: self.infra + 1, ..self },
            // Another run would be refused the same.
            CiVerdict::Unreached { .. } => Self { infra: self.infra + Self::LIMIT, ..self },
        }
    }
}

/// The record of a tree and a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub runs: Runs,
    /// The last red or green verdict, or the last one at all.
    pub last: CiVerdict,
}

impl Record {
    /// The part that is worth keeping: runs that told something about the code. None if there is none.
    pub fn kept(&self) -> Option<Record> {
        let runs = Runs { infra: 0, ..self.runs };
        (runs.green + runs.red > 0).then(|| Record { runs, last: self.last.clone() })
    }

    /// The record with one more verdict.
    pub fn add(earlier: Option<&Record>, verdict: CiVerdict) -> Record {
        let runs = earlier.map(|record| record.runs).unwrap_or_default().and(&verdict);
        let told = !matches!(verdict, CiVerdict::Infra { .. } | CiVerdict::Unreached { .. });
        let last = match earlier {
            // What an outage says is of no use to anybody who has a red log already.
            Some(record) if !told && record.runs.green + record.runs.red > 0 => record.last.clone(),
            _ => verdict,
        };
        Record { runs, last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_amount_to() {
        for (green, red, infra, expected) in [
            (0, 0, 0, GateVerdict::Unknown),
            (0, 0, 2, GateVerdict::Unknown),
            (0, 0, 3, GateVerdict::Undecided),
            (1, 0, 0, GateVerdict::Green),
            (1, 1, 0, GateVerdict::Green),
            (1, 2, 0, GateVerdict::Green),
            (0, 1, 0, GateVerdict::Suspect),
            (0, 1, 1, GateVerdict::Suspect),
            (0, 1, 2, GateVerdict::Undecided),
            (0, 2, 0, GateVerdict::Red),
            (0, 2, 1, GateVerdict::Red),
        ] {
            assert_eq!(
                Runs { green, red, infra }.standing(),
                expected,
                "{green} green, {red} red, {infra} infra"
            );
        }
    }

    #[test]
    fn every_tree_is_decided_within_the_limit() {
        let ends = (0..=Runs::LIMIT).flat_map(|red| (0..=Runs::LIMIT - red).map(move |infra| (red, infra)));
        for (red, infra) in ends {
            let runs = Runs { green: Runs::LIMIT - red - infra, red, infra };
            assert!(!matches!(runs.standing(), GateVerdict::Unknown | GateVerdict::Suspect), "{runs:?}");
        }
    }

    #[test]
    fn a_record_keeps_the_verdict_that_tells_most() {
        let red = CiVerdict::Failed { summary: "1 failed".to_owned(), log: "assertion".to_owned() };
        let slow = CiVerdict::TimedOut { log: "…".to_owned() };
        let outage = |reason: &str| CiVerdict::Infra { reason: reason.to_owned(), log: String::new() };
        let after = |verdicts: &[CiVerdict]| {
            let mut record = None;
            for verdict in verdicts {
                record = Some(Record::add(record.as_ref(), verdict.clone()));
            }
            record.map(|record| (record.runs.green, record.runs.red, record.runs.infra, record.last)).unwrap()
        };
        assert_eq!(after(&[CiVerdict::Passed]), (1, 0, 0, CiVerdict::Passed));
        assert_eq!(after(&[red.clone(), outage("disk")]), (0, 1, 1, red.clone()));
        assert_eq!(after(&[outage("disk"), red.clone()]), (0, 1, 1, red.clone()));
        assert_eq!(after(&[outage("disk"), outage("net")]), (0, 0, 2, outage("net")));
        assert_eq!(after(&[red.clone(), slow.clone()]), (0, 2, 0, slow));
        assert_eq!(after(&[red, CiVerdict::Passed]), (1, 1, 0, CiVerdict::Passed));
    }

    #[test]
    fn what_says_nothing_about_the_code_is_not_kept() {
        let outage = CiVerdict::Infra { reason: "disk".to_owned(), log: String::new() };
        let red = CiVerdict::Failed { summary: "1 failed".to_owned(), log: "assertion".to_owned() };
        let only_outage = Record::add(None, outage.clone());
        assert_eq!(only_outage.kept(), None);
        let both = Record::add(Some(&only_outage), red.clone());
        let kept = Record { runs: Runs { red: 1, ..Runs::default() }, last: red };
        assert_eq!(Record::add(Some(&both), outage).kept(), Some(kept));
    }
}
