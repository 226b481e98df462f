//! The gardener's memory: what was decided about which state of an issue, and what it saw when.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::find::AGENTS_MD;
use super::{Dust, Finding, ForgeChange, Plan};
use crate::deed::Deeds;
use crate::forge::Issue;
use crate::ids::{Number, Sha};
use crate::role_memory::Obstacle;
use crate::run::RunId;
use crate::time::Timestamp;
use crate::value::Done;

/// Findings of one run: what is left waits for the next.
const QUESTIONS: usize = 30;
/// So often the same is asked if no answer is of any use. Each time costs a session.
const TRIES: u32 = 2;
/// So often a model can have the same issue tried again: each time costs a full set of attempts.
const UNBLOCKS: u32 = 2;

/// The gardener's memory between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub looked_at: Timestamp,
    /// What was decided, by the finding's key: the state of the issues then.
    pub decided: BTreeMap<String, String>,
    /// The state of each issue, and since when it is so, as far as we saw it change.
    pub seen: BTreeMap<Number, (String, Option<Timestamp>)>,
    /// What was seen beside the issues.
    pub ground: RepositoryFacts,
    /// What is too small for an issue of its own.
    pub dust: Vec<Dust>,
    /// The run that was asked, and what it was asked about.
    pub asked: Option<(RunId, Vec<Question>)>,
    /// What is being done of its answer. It was decided by the issues as they were before anything of it was done.
    pub plan: Option<Plan>,
    /// What of that is done, in the order of its deeds.
    pub done: Vec<Done>,
    /// What of that is on its way.
    #[serde(skip_serializing_if = "Deeds::is_empty")]
    pub deeds: Deeds,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hindered: Option<Obstacle>,
    /// What was asked and not answered, by the finding's key: the state of the issues then, and how often.
    pub unanswered: BTreeMap<String, (String, u32)>,
    /// What people were asked about, by the finding's key.
    pub people: BTreeSet<String>,
    /// Issues that were unblocked, and how often.
    pub unblocked: BTreeMap<Number, u32>,
}

/// The facts beside the issues themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepositoryFacts {
    /// How far the main branch has come; nothing if `AGENTS.md` is not to be asked about now.
    pub main: Option<Main>,
    /// Why tasks are blocked, by their issues.
    pub blocked: BTreeMap<Number, Blocker>,
}

/// The progress of the main branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Main {
    pub head: Sha,
    /// Commits since `AGENTS.md` was touched or asked about.
    pub commits: u64,
    /// Whether it has no `AGENTS.md`.
    pub missing: bool,
}

/// The reason why a task is blocked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocker {
    pub because: Option<String>,
    /// The issues that its agent said must be closed first.
    pub waits_for: Vec<Number>,
}

/// A finding that is asked about, with the state of its issues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub finding: Finding,
    /// The state of its issues.
    pub state: String,
}

impl Memory {
    /// The time at which the issue was last seen to change; the time it was written, if it never was.
    pub fn changed_at(&self, issue: &Issue) -> Timestamp {
        let seen = self.seen.get(&issue.number).and_then(|(_, changed)| *changed);
        seen.unwrap_or(issue.created_at).max(issue.created_at)
    }

    /// The head of the main branch when `AGENTS.md` was last asked about.
    pub fn refreshed_at(&self) -> Option<Sha> {
        self.decided.get(AGENTS_MD).and_then(|head| Sha::new(head))
    }

    /// Whether an issue was unblocked so often that only a person does it again.
    pub fn is_tried_enough(&self, issue: Number) -> bool {
        self.unblocked.get(&issue).is_some_and(|times| *times >= UNBLOCKS)
    }

    /// Closes a plan that was carried out, and answers it.
    pub fn settle(&mut self) -> Option<Plan> {
        let asked = self.asked.take();
        self.done.clear();
        let plan = self.plan.take()?;
        let is_asked = |question: &&Question| {
            let about = question.finding.issue();
            plan.deeds.iter().any(|deed| matches!(deed, ForgeChange::Ask { issue, .. } if *issue == about))
        };
        let asked = asked.into_iter().flat_map(|(_, asked)| asked).collect::<Vec<_>>();
        self.people.extend(asked.iter().filter(is_asked).map(|question| question.finding.key()));
        for deed in &plan.deeds {
            if let ForgeChange::Unblock { issue, .. } = deed {
                *self.unblocked.entry(*issue).or_default() += 1;
            }
        }
        self.decided.extend(plan.decided.iter().cloned());
        self.dust.clone_from(&plan.dust);
        Some(plan)
    }

    /// People have said something: what they were asked about is not decided any more.
    pub fn reconsider(&mut self) {
        for key in std::mem::take(&mut self.people) {
            self.decided.remove(&key);
        }
    }

    /// The answer was of no use. What was asked in vain too often is left as it is until it changes.
    pub fn heard_nothing_useful(&mut self) {
        for question in self.asked.take().into_iter().flat_map(|(_, asked)| asked) {
            let key = question.finding.key();
            // The main branch moves on while nobody answers.
            let same = |state: &String| *state == question.state || key == AGENTS_MD;
            let before = self.unanswered.remove(&key).filter(|(state, _)| same(state));
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
        self.unblocked.retain(|issue, _| open.contains(issue));
        self.looked_at = now;
    }
}

/// The findings about issues that changed since they were decided. Without any, no model is asked.
pub fn questions(findings: &[Finding], issues: &[Issue], memory: &Memory) -> Vec<Question> {
    let states: BTreeMap<Number, String> = issues.iter().map(|issue| (issue.number, state(issue))).collect();
    let dust: BTreeSet<Number> = memory.dust.iter().map(|dust| dust.issue).collect();
    findings
        .iter()
        .filter(|finding| !dust.contains(&finding.issue()))
        .filter(
            |finding| !matches!(finding, Finding::Blocked { issue, .. } if memory.is_tried_enough(*issue)),
        )
        .map(|finding| Question { finding: finding.clone(), state: state_of_all(finding, &states) })
        .filter(|question| memory.decided.get(&question.finding.key()) != Some(&question.state))
        .take(QUESTIONS)
        .collect()
}

/// What a finding is about, as far as a decision depends on it.
fn state_of_all(finding: &Finding, states: &BTreeMap<Number, String>) -> String {
    let all: Vec<&str> =
        finding.issues().iter().map(|issue| states.get(issue).map_or("", String::as_str)).collect();
    let all = all.join(" ");
    match finding {
        Finding::AgentsMd { head, .. } => head.to_string(),
        // It is looked at again when something that it waits for is done, or its task is blocked for another reason.
        Finding::Blocked { waits, met, because, .. }
            if because.is_some() || !waits.is_empty() || !met.is_empty() =>
        {
            format!("{all} {}", digest([&format!("{waits:?} {met:?}"), &format!("{because:?}")]))
        }
        Finding::Duplicate { .. }
        | Finding::NoCriteria { .. }
        | Finding::Oversized { .. }
        | Finding::Stale { .. }
        | Finding::Cycle { .. }
        | Finding::StaleDependency { .. }
        | Finding::Blocked { .. }
        | Finding::Small { .. } => all,
    }
}

/// Tells two states of an issue apart: what it says and how it is labelled.
pub(super) fn state(issue: &Issue) -> String {
    digest([&issue.title, &issue.body, &issue.labels.join(",")])
}

fn digest<const N: usize>(parts: [&String; N]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
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
