//! The log: `events`, `signals`, `journal`.

use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::role::Role;
use pointsman_core::words::journal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Time;

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub seq: i64,
    /// Its number among the events of its project.
    pub project_seq: i64,
    /// Where the log is read on after it, in every project. It is to be given back, and not to be looked into.
    pub cursor: String,
    pub at: Time,
    pub kind: String,
    pub project: Option<ProjectName>,
    pub issue: Option<Number>,
    pub session: Option<String>,
    pub data: Value,
}

/// An entry of the log as a person would tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    pub at: Time,
    pub role: Role,
    pub issue: Option<Number>,
    pub lines: Vec<String>,
}

impl JournalEntry {
    /// The view of an entry of the journal.
    pub fn new(at: Time, issue: Option<Number>, entry: journal::Entry) -> Self {
        Self { at, role: entry.role, issue, lines: entry.lines }
    }
}
