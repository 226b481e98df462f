//! `doctor`: whether everything that is needed is there.

use serde::{Deserialize, Serialize};

/// All checks; `ok` unless one failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doctor {
    pub ok: bool,
    pub checks: Vec<Check>,
}

/// The steps of `agent check`; `ok` unless one failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCheck {
    /// The kind of agent.
    pub agent: String,
    pub ok: bool,
    pub checks: Vec<Check>,
}

/// One check, with a fix for what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub id: String,
    pub status: Grade,
    pub detail: String,
    pub fix: Option<String>,
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    Ok,
    Warn,
    Fail,
}

impl Check {
    /// A check that found nothing wrong.
    pub fn ok(id: &str, detail: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: Grade::Ok, detail: detail.into(), fix: None }
    }

    /// A check that found something to know about.
    pub fn warn(id: &str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: Grade::Warn, detail: detail.into(), fix: Some(fix.into()) }
    }

    /// A check that found something that does not work.
    pub fn fail(id: &str, detail: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: Grade::Fail, detail: detail.into(), fix: Some(fix.into()) }
    }
}
