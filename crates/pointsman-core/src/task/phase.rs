//! Phases: the claims of an agent in its phase file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What every first line begins with.
const SENTINEL: &str = "PHASE:";
/// How an older protocol spells `escalate`.
const OLDER_ESCALATE: &str = "needs_human";

/// A claim of the agent, as it writes it into its phase file. A claim only asks us to go and look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The branch is pushed and waits for CI.
    AwaitingCi,
    /// CI passed, the pull request waits for a review.
    AwaitingReview,
    Escalate,
    /// The pull request is merged.
    Done,
    Failed,
}

impl Phase {
    /// Every phase, in the order of the protocol.
    pub const ALL: [Self; 5] =
        [Self::AwaitingCi, Self::AwaitingReview, Self::Escalate, Self::Done, Self::Failed];

    /// Reads the first line of a phase file, white space already removed: an exact `PHASE:` sentinel.
    pub fn parse(first_line: &str) -> Option<Self> {
        Self::from_name(first_line.strip_prefix(SENTINEL)?)
    }

    /// Whether a first line is only the beginning of a sentinel: a write that was caught half-way. It says nothing.
    pub fn is_torn(first_line: &str) -> bool {
        let whole = Self::ALL.iter().map(|phase| phase.name()).chain([OLDER_ESCALATE]);
        whole
            .map(|name| format!("{SENTINEL}{name}"))
            .any(|s| s.len() > first_line.len() && s.starts_with(first_line))
    }

    /// Reads a bare phase name; `needs_human` is the older spelling of `escalate`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "awaiting_ci" => Some(Self::AwaitingCi),
            "awaiting_review" => Some(Self::AwaitingReview),
            "escalate" | OLDER_ESCALATE => Some(Self::Escalate),
            "done" => Some(Self::Done),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }

    /// The bare name.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwaitingCi => "awaiting_ci",
            Self::AwaitingReview => "awaiting_review",
            Self::Escalate => "escalate",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason for which an agent turned a task down, from its summary file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub status: RefusalStatus,
    #[serde(default)]
    pub reason: String,
    /// The issues that must be closed first.
    #[serde(default)]
    pub blocked_by: Vec<u64>,
}

/// The three refusals of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalStatus {
    /// Another issue must be done first.
    UnmetDependency,
    /// Too large or too vague for one task.
    TooLarge,
    /// There is nothing left to do.
    AlreadyDone,
}

#[cfg(test)]
mod tests {
    use super::{Phase, Refusal, RefusalStatus};

    #[test]
    fn every_sentinel_reads_back_and_nothing_else_does() {
        for phase in Phase::ALL {
            assert_eq!(Phase::parse(&format!("PHASE:{phase}")), Some(phase));
        }
        assert_eq!(Phase::parse("PHASE:needs_human"), Some(Phase::Escalate));
        for rubbish in
            ["", "PHASE:", "done", "phase:done", "PHASE:doneReason:x", "PHASE:DONE", "PHASE:crashed"]
        {
            assert_eq!(Phase::parse(rubbish), None, "{rubbish}");
        }
    }

    #[test]
    fn the_beginning_of_a_sentinel_is_torn_and_rubbish_is_not() {
        for torn in ["PHASE", "PHASE:", "PHASE:d", "PHASE:awaiting_", "PHASE:needs_hum"] {
            assert!(Phase::is_torn(torn), "{torn}");
        }
        for whole in ["PHASE:done", "PHASE:needs_human", "PHASE:dx", "phase:", "PHASE:done!"] {
            assert!(!Phase::is_torn(whole), "{whole}");
        }
    }

    #[test]
    fn a_refusal_needs_only_its_status() {
        let refusal: Refusal = serde_json::from_str(r#"{"status": "too_large"}"#).unwrap();
        assert_eq!(refusal.status, RefusalStatus::TooLarge);
        assert!(serde_json::from_str::<Refusal>(r#"{"status": "bored"}"#).is_err());
    }
}
