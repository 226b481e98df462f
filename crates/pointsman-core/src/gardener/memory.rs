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
/// So often the same is asked if no answer is of any use. Each time costs a session.
const TRIES: u32 = 2;

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
    /// What was asked and not answered, by the finding's key: the state of the issues then, and how often.
    pub unanswered: BTreeMap<String, (String, u32)>,
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

    /// The answer was of no use. What was asked in vain too often is left as it is until it changes.
    pub fn heard_nothing_useful(&mut self) {
        for question in self.asked.take().into_iter().flat_map(|(_, asked)| asked) {
            let key = question.finding.key();
            let before = self.unanswered.remove(&key).filter(|(state, _)| *state == question.state);
            let times = before.map_or(1, |(_, times)| times + 1);
            if times >= TRIES {
                self.decided.insert(key, question.state);
            } else {
                self.unanswered.insert(key, (question.state, times));
            }
        }
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

#[cfg(test)]
mod tests {
    use super::{Finding, Memory, Question};
    use crate::run::RunId;

    #[test]
    fn what_is_asked_in_vain_is_asked_once_more_and_then_left_until_it_changes() {
        let question =
            |state: &str| Question { finding: Finding::NoCriteria { issue: 7 }, state: state.to_owned() };
        let mut memory = Memory::default();
        let mut ask = |state: &str| {
            memory.asked = Some((RunId(1), vec![question(state)]));
            memory.heard_nothing_useful();
            assert!(memory.asked.is_none());
            memory.decided.get(&question(state).finding.key()).cloned()
        };
        assert_eq!(ask("vague"), None);
        assert_eq!(ask("vague still"), None, "another text is another question");
        assert_eq!(ask("vague still").as_deref(), Some("vague still"));
        assert_eq!(ask("clearer").as_deref(), Some("vague still"), "which is not how it is now");
        assert!(memory.unanswered.len() == 1);
    }
}
