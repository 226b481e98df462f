//! The action agent carries out operational tasks that an issue labelled `action` describes.
//!
//! This module finds the formula that an issue names, checks the agent's report, and decides the next step. Its
//! sentences are in [`crate::words::action`]. Sessions belong to [`crate::run`]; the daemon pushes and posts.

#[cfg(test)]
mod tests;

use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::labels::{ACTION, BLOCKED, has};
use crate::role::{FORMULA_PREFIX, Role};
use crate::run::{Run, Status};
use crate::time::Timestamp;
use crate::words;

/// The role whose sessions carry actions out.
pub const ROLE: Role = Role::Action;
/// The formula of an issue that names none.
pub const FORMULA: &str = ROLE.formula();
/// Actions under way at the same time, in one project. Each may wait for a person for hours.
pub const AT_ONCE: usize = 4;
/// The longest report, in bytes.
const SUMMARY_BYTES: usize = 20 << 10;

/// The report with which an action's session ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// In words, for the issue.
    pub summary: String,
}

impl Report {
    /// Reads a result; a sentence about what is wrong if it cannot be used.
    pub fn read(result: Option<&Value>) -> Result<Self, String> {
        let Some(result) = result else { return Err(words::answer::NO_REPORT.to_owned()) };
        let report: Self =
            serde_json::from_value(result.clone()).map_err(|error| words::answer::not_a("report", error))?;
        match report.summary.trim().is_empty() || report.summary.len() > SUMMARY_BYTES {
            true => Err(words::answer::not_a(
                "report",
                words::answer::length("the summary", SUMMARY_BYTES, "bytes"),
            )),
            false => Ok(report),
        }
    }
}

/// The formula that an issue names in a line of its own: `Formula: tidy`, or `formulas/tidy.toml`. The last one counts, and
/// roles are not for issues to call.
pub fn formula(body: &str) -> &str {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        let named = r"(?im)^[ \t]*(?:formula:[ \t]*)?`?(?:formulas/)?([a-z0-9][a-z0-9._-]{0,63}?)(?:\.toml)?`?[ \t]*\r?$";
        Regex::new(named).expect("a constant that the tests compile")
    });
    let meant = |found: &regex::Captures<'_>| {
        let line = found.get(0).map_or("", |line| line.as_str()).to_lowercase();
        line.contains("formula:") || line.contains("formulas/")
    };
    let named = NAMED.captures_iter(body).filter(meant).filter_map(|found| found.get(1)).last();
    named.map(|name| name.as_str()).filter(|name| !name.starts_with(FORMULA_PREFIX)).unwrap_or(FORMULA)
}

/// An issue as it is.
#[derive(Clone, Copy, Debug)]
pub struct ActionFacts<'a> {
    pub labels: &'a [String],
    /// Whether it waits for another issue.
    pub waits: bool,
    /// Its runs, oldest first.
    pub runs: &'a [Run],
    /// Whether the issue was told what came of the last one.
    pub told: bool,
}

/// The next step for an issue that asks for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    Begin,
    /// The last run is through: its report is posted, and the issue closed or handed on.
    Report,
    /// The last run came to nothing: the issue is told, and blocked.
    Block,
}

/// Decides. A run that failed blocks its issue; who takes the label away wants it tried again.
pub fn plan(facts: &ActionFacts<'_>) -> Next {
    let ActionFacts { labels, waits, runs, told } = *facts;
    if !has(labels, ACTION) {
        return Next::Nothing;
    }
    match runs.last() {
        // Its tree is looked at before its session is put away.
        Some(run) if run.is_open() => Next::Nothing,
        Some(run) if run.status == Status::Done => Next::Report,
        Some(_) if !told => Next::Block,
        Some(_) | None if has(labels, BLOCKED) || waits => Next::Nothing,
        Some(_) | None => Next::Begin,
    }
}

/// Whether a session that was last seen to do something then has been idle for too long.
pub fn is_idle(last_active: Timestamp, limit: Duration, now: Timestamp) -> bool {
    last_active.after(limit) <= now
}
