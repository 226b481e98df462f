//! Roles: `roles`, `roles look`, `roles resume`.

use pointsman_core::role as core;
use pointsman_core::session::budget::TokenClasses;
use serde::{Deserialize, Serialize};

use crate::Time;

/// A role with its work and the outcome of that work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    pub role: core::Role,
    pub enabled: bool,
    pub schedule: Option<String>,
    /// Absent as long as nothing was ever written down.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    #[serde(flatten)]
    pub outcomes: Outcomes,
}

/// The work of a role in a span of time; `used` and `noise` count since the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    pub runs: usize,
    pub failed: usize,
    /// None if sessions ran and none of them told.
    pub tokens: Option<u64>,
    /// None if sessions ran and none of them told.
    pub token_classes: Option<TokenClasses>,
    /// None if sessions ran and none of them told.
    pub usd: Option<f64>,
    pub turns: u64,
    pub used: u32,
    pub noise: u32,
    pub paused_at: Option<Time>,
}

/// Counts of what came of a role's work. What nobody counts for a role is absent: absent is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcomes {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merged: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dismissed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub false_alarms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub landed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promoted: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watched: Option<u64>,
}

/// The answer to `roles look`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookOrdered {
    pub role: core::Role,
}

/// The answer to `roles resume`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    pub role: core::Role,
    /// None: it is not paused any more.
    pub paused_at: Option<Time>,
}
