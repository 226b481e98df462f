//! The estimated danger of an action, and who must be asked for it.

use serde::{Deserialize, Serialize};

use super::action::{Action, Risk};

/// An estimate of an action's danger. Several opinions make one that is at least as careful as each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Estimate {
    /// How much harm it could do.
    pub risk: Risk,
    /// Whether it can be undone.
    pub reversible: bool,
    /// Whether a person must be asked whatever else holds.
    pub requires_human: bool,
}

impl Estimate {
    /// The submitter's own.
    pub fn of(action: &Action) -> Self {
        Self { risk: action.risk, reversible: action.reversible, requires_human: action.requires_human }
    }

    /// Both opinions together: never more harmless than either.
    pub fn raised_by(self, other: Self) -> Self {
        Self {
            risk: self.risk.max(other.risk),
            reversible: self.reversible && other.reversible,
            requires_human: self.requires_human || other.requires_human,
        }
    }
}

/// The way an action takes, from the most to the least trusting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    Fire,
    /// It is fired, and a person is told.
    FireAndTell,
    Ask,
}

/// Risk and reversibility decide.
pub fn route(estimate: Estimate) -> Route {
    match estimate {
        Estimate { requires_human: true, .. } => Route::Ask,
        Estimate { risk: Risk::Low, .. } => Route::Fire,
        Estimate { risk: Risk::Medium, reversible: true, .. } => Route::FireAndTell,
        Estimate { risk: Risk::Medium, reversible: false, .. } | Estimate { risk: Risk::High, .. } => {
            Route::Ask
        }
    }
}
