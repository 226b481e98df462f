//! What the gardener remembers: what was decided about which state of an issue, and what it saw when.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Dust, Finding, Plan};
use crate::forge::Issue;
use crate::ids::Number;
use crate::run::RunId;
use crate::time::Timestamp;
use crate::value::Done;

/// Findings of one run: what is left waits for the next.
const QUESTIONS: usize = 30;

/// What is remembered between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// When was looked last.
    pub looked_at: Timestamp,
    /// What was decided, by the finding's key: the state of the issues then.
    pub decided: BTreeMap<String, String>,
    /// The state of each issue, and since when it is so, as far as we saw it change.
    pub seen: BTreeMap<Number, (String, Option<Timestamp>)>,
    /// What is too small for an issue of its own.
    pub dust: Vec<Dust>,
    /// The run that was asked, and what it was asked about.
    pub asked: Option<(RunId, Vec<Question>)>,
    /// What is being done of its answer. It was decided by the issues as they were before anything of it was done.
    pub plan: Option<Plan>,
    /// What of that is done, in the order of its deeds.
    pub done: Vec<Done>,
}

/// A finding that is asked about, with the state of its issues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What.
    pub finding: Finding,
    /// The state of its issues.
    pub state: String,
}

impl Memory {
    /// When the issue was last seen to change; when it was written, if it never was.
    pub fn changed_at(&self, issue: &Issue) -> Timestamp {
        let seen = self.seen.get(&issue.number).and_then(|(_, changed)| *changed);
        seen.unwrap_or(issue.created_at).max(issue.created_at)
    }

    /// Takes in how the issues are now, and forgets those that are closed.
    pub fn see(&mut self, issues: &[Issue], now: Timestamp) {
        let before = std::mem::take(&mut self.seen);
        for issue in issues {
            let state = state(issue);
            let changed = match before.get(&issue.number) {
                Some((same, since)) if *same == state => *since,
                Some(_) => Some(now),
                None => None,
            };
            self.seen.insert(issue.number, (state, changed));
        }
        let open: BTreeSet<Number> = issues.iter().map(|issue| issue.number).collect();
        self.dust.retain(|dust| open.contains(&dust.issue));
        self.looked_at = now;
    }
}

/// What is asked: findings about issues that are not as they were when it was decided. Without any, nobody is asked.
pub fn questions(findings: &[Finding], issues: &[Issue], memory: &Memory) -> Vec<Question> {
    let states: BTreeMap<Number, String> = issues.iter().map(|issue| (issue.number, state(issue))).collect();
    let dust: BTreeSet<Number> = memory.dust.iter().map(|dust| dust.issue).collect();
    findings
        .iter()
        .filter(|finding| !dust.contains(&finding.issue()))
        .map(|finding| Question { finding: finding.clone(), state: state_of_all(finding, &states) })
        .filter(|question| memory.decided.get(&question.finding.key()) != Some(&question.state))
        .take(QUESTIONS)
        .collect()
}

fn state_of_all(finding: &Finding, states: &BTreeMap<Number, String>) -> String {
    let all: Vec<&str> =
        finding.issues().iter().map(|issue| states.get(issue).map_or("", String::as_str)).collect();
    all.join(" ")
}

/// Tells two states of an issue apart: what it says and how it is labelled.
pub(super) fn state(issue: &Issue) -> String {
    let mut hash = Sha256::new();
    for part in [&issue.title, &issue.body, &issue.labels.join(",")] {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
