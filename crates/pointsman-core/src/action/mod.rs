//! The action agent carries out operational tasks that an issue labelled `action` describes.
//!
//! This module finds the formula that an issue names, checks the agent's report, and decides the next step. Its
//! sentences are in [`crate::words::action`]. Sessions belong to [`crate::run`]; the daemon pushes and posts.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::deed::{Act, Deeds, Ending, Tend};
use crate::ids::Number;
use crate::labels::{ACTION, BLOCKED, IN_PROGRESS, has};
use crate::role::{FORMULA_PREFIX, Role};
use crate::role_memory::Orders;
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

/// The action agent's memory between two looks: issues whose action could not begin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// Why each could not, as its issue was told.
    pub refused: BTreeMap<Number, String>,
    pub deeds: Deeds,
}

impl Memory {
    /// Blocks an issue whose action cannot begin. While that is under way, or if the forge would not have it, the same is not
    /// ordered again; an issue that a person has unblocked since is blocked once more.
    pub(crate) fn block(&mut self, issue: Number, why: &str, orders: &mut Orders<'_>) {
        let name = format!("block/{issue}");
        let same = self.refused.get(&issue).is_some_and(|known| known == why);
        match self.deeds.get(&name) {
            Some(None) => return,
            Some(Some(Ending::Refused { .. })) if same => return,
            Some(Some(_)) | None => self.deeds.forget(&name),
        }
        self.refused.insert(issue, why.to_owned());
        self.deeds.order(&name);
        orders
            .deed(name, Act::Tend(blocked(issue, "action:refused".to_owned(), words::action::refused(why))));
    }
}

/// The changes that block the issue of an action, with the reason as a comment.
pub(crate) fn blocked(issue: Number, marker: String, why: String) -> Tend {
    let (add, remove) = (vec![BLOCKED.to_owned()], vec![IN_PROGRESS.to_owned()]);
    Tend { issue, marker, comment: Some(why), add, remove, close: false }
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
}

/// The next step for an issue that asks for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    Begin,
    /// The last run is over: its issue is told, and closed, handed on or blocked.
    Report,
}

/// Decides. A run that failed blocks its issue; who takes the label away wants it tried again.
pub fn plan(facts: &ActionFacts<'_>) -> Next {
    let ActionFacts { labels, waits, runs } = *facts;
    if !has(labels, ACTION) {
        return Next::Nothing;
    }
    let told = match runs.last() {
        // Its tree is looked at before its session is put away.
        Some(run) if run.is_open() => return Next::Nothing,
        Some(run) => run.deeds.get(REPORT),
        None => Some(Some(&Ending::Gone)),
    };
    match told {
        None => Next::Report,
        // The forge would not take the report, and a person was told: the same is not wanted again.
        Some(None | Some(Ending::Refused { .. })) => Next::Nothing,
        Some(Some(Ending::Done { .. } | Ending::Gone)) if has(labels, BLOCKED) || waits => Next::Nothing,
        Some(Some(Ending::Done { .. } | Ending::Gone)) => Next::Begin,
    }
}

/// The name of the deed with which the issue of an action learns what came of a run.
pub const REPORT: &str = "report";

/// The deed by which the issue of an action learns what came of a run that is over.
pub fn report(run: &Run, issue: Number) -> Act {
    if run.status == Status::Done {
        return Act::ReportAction { issue };
    }
    let why = run.reason.as_deref().unwrap_or(words::daemon::run::no_reason());
    Act::Tend(blocked(issue, report_marker(run), words::action::failed(run.id, why)))
}

/// The name of the comment that reports a run.
pub fn report_marker(run: &Run) -> String {
    format!("action:{}", run.id)
}

/// The claim on an issue whose action begins.
pub(crate) fn claim(issue: Number) -> Act {
    let (marker, add) = ("action:begun".to_owned(), vec![IN_PROGRESS.to_owned()]);
    Act::Tend(Tend { issue, marker, add, ..Tend::default() })
}

/// Whether a session that was last seen to do something then has been idle for too long.
pub fn is_idle(last_active: Timestamp, limit: Duration, now: Timestamp) -> bool {
    last_active.after(limit) <= now
}
