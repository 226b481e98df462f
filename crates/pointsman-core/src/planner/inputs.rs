//! The inputs of a plan, and whether any of them is new.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Plan;
use crate::deed::Deeds;
use crate::forge::Issue;
use crate::ids::{Number, Sha};
use crate::labels::{BACKLOG, IN_PROGRESS, UNREVIEWED, VISION, WATCHED, has};
use crate::role_memory::Obstacle;
use crate::run::RunId;
use crate::time::Timestamp;
use crate::value::Done;

/// What the planner itself keeps in the repository.
pub const OWN: &str = "planner/";
/// Its memory across runs.
pub const MEMORY: &str = "planner/MEMORY.md";
/// The files a plan is made from. Its own memory is no news to it.
pub const DOCUMENTS: [&str; 3] = ["VISION.md", "RESOURCES.md", MEMORY];
/// Predictions of one run: what is left waits for the next.
const PREDICTIONS: usize = 30;
/// So often the same is asked if no answer is of any use. Each time costs a session.
const TRIES: u32 = 2;
/// A prediction that was judged, or left without a verdict, is looked at again after four weeks.
const AGAIN: Duration = Duration::from_secs(28 * 86_400);

/// A file of the main branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub path: &'static str,
    /// What it says, as far as it is shown.
    pub text: String,
}

/// The facts from which a plan is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanInputs {
    pub issues: Vec<Issue>,
    /// The files that are there.
    pub documents: Vec<Document>,
    /// Where the main branch stands.
    pub main: Option<Sha>,
    /// What landed since the last plan, a line for each commit. Nothing if only the planner itself did.
    pub landed: Vec<String>,
    /// The formulas there are, each with what it is for.
    pub formulas: Vec<(String, String)>,
}

/// The facts of the last plan, to tell what is new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SeenInputs {
    /// Where the main branch stood.
    pub main: Option<Sha>,
    /// A fingerprint of the files and of the formulas' names.
    pub documents: String,
    /// The state of each open issue. Empty for one that the planner itself has filed or labelled since: however it is
    /// found next, that is no news.
    pub issues: BTreeMap<Number, String>,
    /// When each prediction was asked about last.
    pub asked_at: BTreeMap<Number, Timestamp>,
}

impl SeenInputs {
    /// Tells two questions apart; when they were asked does not matter.
    fn fingerprint(&self) -> String {
        let main = self.main.as_ref().map_or("", Sha::as_str);
        let numbers: Vec<String> = self.issues.keys().map(ToString::to_string).collect();
        let issues = numbers.iter().zip(self.issues.values()).flat_map(|(number, state)| [number, state]);
        hash([main, &self.documents].into_iter().chain(issues.map(String::as_str)))
    }
}

/// The question that a planner's session gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The predictions that are to be judged.
    pub predictions: Vec<Number>,
    /// What is known from then on.
    pub known: SeenInputs,
}

/// The planner's memory between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub looked_at: Timestamp,
    /// What the last plan was made from.
    pub known: SeenInputs,
    /// The run that was asked, and what it was asked.
    pub asked: Option<(RunId, Question)>,
    /// What is being done of its answer.
    pub plan: Option<Plan>,
    /// What of that is done, in the order of its deeds.
    pub done: Vec<Done>,
    /// What of that is on its way.
    #[serde(skip_serializing_if = "Deeds::is_empty")]
    pub deeds: Deeds,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hindered: Option<Obstacle>,
    /// A fingerprint of what was asked last and not answered, and how often.
    pub unanswered: Option<(String, u32)>,
}

impl Memory {
    /// Takes in what is there now.
    pub fn see(&mut self, issues: &[Issue], now: Timestamp) {
        self.looked_at = now;
        for issue in issues {
            if let Some(known) = self.known.issues.get_mut(&issue.number).filter(|known| known.is_empty()) {
                *known = fingerprint_of(issue);
            }
        }
    }

    /// The answer was of no use. What was asked in vain too often counts as known until it changes.
    pub fn heard_nothing_useful(&mut self) {
        let Some((_, question)) = self.asked.take() else { return };
        let asked = question.known.fingerprint();
        let before = self.unanswered.take().filter(|(state, _)| *state == asked);
        let times = before.map_or(1, |(_, times)| times + 1);
        if times >= TRIES {
            self.known = question.known;
        } else {
            self.unanswered = Some((asked, times));
        }
    }

    /// The plan was carried out: what it was made from is known, and what it changed is no news.
    pub fn settle(&mut self) -> Option<Plan> {
        let (_, question) = self.asked.take()?;
        let plan = self.plan.take()?;
        self.known = question.known;
        self.unanswered = None;
        let done = std::mem::take(&mut self.done);
        let ours = plan
            .deeds
            .iter()
            .filter_map(super::ForgeChange::prediction)
            .chain(done.iter().filter_map(|one| one.filed));
        for issue in ours {
            self.known.issues.insert(issue, String::new());
        }
        for issue in &plan.next {
            self.known.issues.remove(issue);
        }
        Some(plan)
    }
}

/// Whether there is something to plan for: without a goal there are no gaps.
pub fn has_goal(facts: &PlanInputs) -> bool {
    let vision = |document: &Document| document.path == "VISION.md" && !document.text.trim().is_empty();
    facts.documents.iter().any(vision) || facts.issues.iter().any(|issue| has(&issue.labels, VISION))
}

/// Finds the question: none if nothing is new, and none without either a prediction or a goal.
pub fn question(facts: &PlanInputs, memory: &Memory, now: Timestamp) -> Option<Question> {
    let known = &memory.known;
    let state = |issue: &Issue| known.issues.get(&issue.number);
    let has_changed = |issue: &Issue| state(issue).is_some_and(|state| !is_same(state, issue));
    let is_old = |issue: &Issue| {
        let since = known.asked_at.get(&issue.number).copied().unwrap_or(issue.created_at);
        is_prediction(issue) && now.since(since) >= AGAIN
    };
    let is_news = |issue: &Issue| {
        let is_unknown = state(issue).is_none() && !is_watched(issue);
        is_unknown || has_changed(issue) || is_old(issue)
    };
    let is_asked = |issue: &&Issue| is_prediction(issue) && (!is_watched(issue) || is_news(issue));
    let predictions: Vec<Number> =
        facts.issues.iter().filter(is_asked).map(|issue| issue.number).take(PREDICTIONS).collect();
    let documents = fingerprint(facts);
    let news = !facts.landed.is_empty() || documents != known.documents || facts.issues.iter().any(is_news);
    if !news || (predictions.is_empty() && !has_goal(facts)) {
        return None;
    }
    let waits = |issue: &&Issue| is_asked(issue) && !predictions.contains(&issue.number);
    let shown = facts.issues.iter().filter(|issue| !waits(issue));
    let asked_at = |issue: &Issue| {
        let at = if predictions.contains(&issue.number) {
            Some(now)
        } else {
            known.asked_at.get(&issue.number).copied()
        };
        at.map(|at| (issue.number, at))
    };
    Some(Question {
        known: SeenInputs {
            main: facts.main.clone(),
            documents,
            asked_at: facts.issues.iter().filter_map(asked_at).collect(),
            issues: shown.map(|issue| (issue.number, fingerprint_of(issue))).collect(),
        },
        predictions,
    })
}

/// Whether the planner may judge it: it is a prediction, and nobody's.
pub(super) fn is_prediction(issue: &Issue) -> bool {
    let labelled = has(&issue.labels, UNREVIEWED) || has(&issue.labels, WATCHED);
    labelled && issue.assignee.is_none() && !has(&issue.labels, IN_PROGRESS)
}

/// Whether it was judged: there is nothing to do but to watch it.
pub(super) fn is_watched(issue: &Issue) -> bool {
    is_prediction(issue) && !has(&issue.labels, UNREVIEWED)
}

/// Whether an issue is as it was, as far as a plan depends on it. That a person watches a prediction is no news.
fn is_same(known: &str, issue: &Issue) -> bool {
    let mut unreviewed = issue.clone();
    unreviewed.labels = vec![UNREVIEWED.to_owned()];
    known == fingerprint_of(issue) || (is_watched(issue) && known == fingerprint_of(&unreviewed))
}

/// Tells two states of an issue apart, as far as a plan depends on it: of a prediction what it says, of another issue its
/// title and its labels. That somebody has begun to work on it is no news; what landed is.
fn fingerprint_of(issue: &Issue) -> String {
    if is_prediction(issue) {
        let watched = if is_watched(issue) { WATCHED } else { UNREVIEWED };
        return hash([watched, &issue.title, &issue.body]);
    }
    let labels = issue.labels.iter().map(String::as_str);
    let labels: Vec<&str> = labels.filter(|label| ![BACKLOG, IN_PROGRESS].contains(label)).collect();
    hash([issue.title.as_str(), &labels.join(",")])
}

fn fingerprint(facts: &PlanInputs) -> String {
    let files = facts.documents.iter().filter(|document| document.path != MEMORY);
    let files = files.flat_map(|document| [document.path, &document.text]);
    hash(files.chain(facts.formulas.iter().map(|(name, _)| name.as_str())))
}

pub(super) fn hash<'t>(parts: impl IntoIterator<Item = &'t str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.len().to_be_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
