//! The plan of an agent, where the project wants to see one before the work (`dev.plan`).
//!
//! A person says yes to it, says no, or answers with words. Words send it back once: an agent that was told twice what is
//! missing goes on with what it was told.

use serde::{Deserialize, Serialize};

/// The word that an agent gives as its reason when it hands its plan in.
const REASON: &str = "plan";

/// The stage of the plan of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStage {
    /// Nobody has seen one.
    #[default]
    Due,
    /// The agent handed work in without one, and was told so.
    Reminded,
    /// A person answered it with words.
    SentBack,
    /// The agent may work.
    Accepted,
}

impl PlanStage {
    /// Whether nothing has happened yet.
    pub fn is_due(&self) -> bool {
        *self == Self::Due
    }
}

/// Whether the reason of an escalation says that the agent hands its plan in.
pub fn is_plan(reason: Option<&str>) -> bool {
    reason.is_some_and(|reason| reason.trim().trim_end_matches('.').eq_ignore_ascii_case(REASON))
}

#[cfg(test)]
mod tests {
    use super::is_plan;

    #[test]
    fn a_plan_is_named_as_such() {
        assert!(is_plan(Some("plan")) && is_plan(Some(" Plan. ")));
        assert!(!is_plan(Some("I have no plan")) && !is_plan(None));
    }
}
