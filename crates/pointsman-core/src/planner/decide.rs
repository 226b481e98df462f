//! The choice of what is carried out of a plan. Rules have the last word.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::inputs::{hash, is_prediction, is_watched};
use super::{Answer, Proposal, Question, Verdict};
use crate::config::Config;
use crate::forge::Issue;
use crate::gardener::{DUPLICATE, Texts};
use crate::ids::Number;
use crate::labels::ACTION;
use crate::role::FORMULA_PREFIX;
use crate::text::{clean_block, plain_line};
use crate::words;

/// Longest title that is filed.
const TITLE: usize = 120;
/// Longest reason that is passed on, in bytes.
const WHY: usize = 2_000;
/// Longest text of an issue, in bytes.
const TEXT: usize = 6_000;
/// Longest criterion.
const CRITERION: usize = 300;
/// Issues that a new one is compared with, the newest.
const COMPARED: usize = 1_000;

/// Something that is done on the forge. Each can be done twice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "deed", rename_all = "snake_case")]
pub enum ForgeChange {
    /// File an issue about a prediction, then close that.
    Promote {
        prediction: Number,
        why: String,
        issue: NewIssue,
    },
    File {
        issue: NewIssue,
    },
    /// Look at a prediction again later.
    Watch {
        prediction: Number,
        why: String,
    },
    Dismiss {
        prediction: Number,
        why: String,
    },
}

impl ForgeChange {
    /// The prediction that it is about.
    pub fn prediction(&self) -> Option<Number> {
        match self {
            Self::Promote { prediction, .. }
            | Self::Watch { prediction, .. }
            | Self::Dismiss { prediction, .. } => Some(*prediction),
            Self::File { .. } => None,
        }
    }

    /// Its verdict on that, in the word of the answer.
    pub fn verdict(&self) -> Option<&str> {
        match self {
            Self::Promote { issue, .. } => Some(&issue.label),
            Self::Watch { .. } => Some("watch"),
            Self::Dismiss { .. } => Some("dismiss"),
            Self::File { .. } => None,
        }
    }
}

/// An issue that is filed, in words that were cleaned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewIssue {
    pub title: String,
    /// What is to be done and why it matters.
    pub text: String,
    pub criteria: Vec<String>,
    /// What has to be done before.
    pub depends_on: BTreeSet<Number>,
    /// `backlog` or `action`.
    pub label: String,
    /// How the action is to be carried out.
    pub formula: Option<String>,
}

impl NewIssue {
    /// The same for the same words: what is filed under it is not filed again.
    pub fn key(&self) -> String {
        hash([self.title.as_str(), &self.text])
    }
}

/// The deeds that follow from an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub deeds: Vec<ForgeChange>,
    /// What is not, in words.
    pub refused: Vec<String>,
    /// Predictions that stay unreviewed because nobody judged them.
    pub left: Vec<Number>,
    /// Predictions whose promotion was refused in favour of what is filed: they are asked about the next time.
    pub next: Vec<Number>,
}

/// Decides. `question` is what the model was asked: it judges nothing else. `issues` are the open issues as they are now,
/// `formulas` the names of those there are.
pub fn plan(
    answer: &Answer,
    question: &Question,
    issues: &[Issue],
    formulas: &[String],
    config: &Config,
) -> Plan {
    let mut session_files = Decision { question, issues, formulas, plan: Plan::default() };
    let mut judged = BTreeSet::new();
    let (mut wanted, mut verdicts) = (Vec::new(), Vec::new());
    for triage in &answer.triage {
        let prediction = triage.issue;
        let open = match session_files.prediction(prediction) {
            Ok(open) => open,
            Err(why) => {
                session_files.plan.refused.push(why);
                continue;
            }
        };
        if !judged.insert(prediction) {
            session_files.plan.refused.push(words::planner::judged_already(prediction));
            continue;
        }
        let why = clean_block(&triage.why, WHY);
        match &triage.verdict {
            Verdict::Promote(proposal) => wanted.push((Some((prediction, why)), proposal)),
            Verdict::Dismiss => verdicts.push(ForgeChange::Dismiss { prediction, why }),
            // It is so already.
            Verdict::Watch if is_watched(open) => {}
            Verdict::Watch => verdicts.push(ForgeChange::Watch { prediction, why }),
        }
    }
    wanted.extend(answer.issues.iter().map(|proposal| (None, proposal)));
    // Promotions come first among equals, then what was named first: the sort keeps the order.
    wanted.sort_by_key(|(promotion, proposal)| (Reverse(proposal.leverage), promotion.is_none()));
    let limit = usize::try_from(config.limits.planner_issues).unwrap_or(usize::MAX);
    for (promotion, proposal) in wanted {
        session_files.want(promotion, proposal, limit);
    }
    let mut plan = session_files.plan;
    // If nothing is filed, the next time is like this one.
    if plan.deeds.is_empty() {
        plan.next.clear();
    }
    plan.deeds.extend(verdicts);
    let is_left =
        |issue: &&Issue| is_prediction(issue) && !is_watched(issue) && !judged.contains(&issue.number);
    let asked = issues.iter().filter(|issue| question.predictions.contains(&issue.number));
    plan.left = asked.filter(is_left).map(|issue| issue.number).collect();
    plan
}

struct Decision<'d> {
    question: &'d Question,
    issues: &'d [Issue],
    formulas: &'d [String],
    plan: Plan,
}

impl<'d> Decision<'d> {
    /// A prediction that may be judged.
    fn prediction(&self, number: Number) -> Result<&'d Issue, String> {
        if !self.question.predictions.contains(&number) {
            return Err(words::planner::not_asked(number));
        }
        let open = self.issues.iter().find(|open| open.number == number);
        let open = open.ok_or_else(|| words::planner::closed(number))?;
        match is_prediction(open) {
            true => Ok(open),
            false => Err(words::planner::no_longer_a_prediction(number)),
        }
    }

    fn want(&mut self, promotion: Option<(Number, String)>, proposal: &Proposal, limit: usize) {
        let issue = NewIssue {
            title: plain_line(&proposal.title, TITLE),
            text: clean_block(&proposal.text, TEXT),
            criteria: proposal.criteria.iter().map(|one| plain_line(one, CRITERION)).collect(),
            depends_on: proposal.depends_on.iter().copied().collect(),
            label: proposal.label.to_owned(),
            formula: proposal.formula.clone(),
        };
        let full = || words::planner::too_many(limit);
        let refused = match self.check(&issue, promotion.is_some()) {
            Ok(()) => (self.plan.deeds.len() >= limit).then(full),
            Err(why) => Some(why),
        };
        match (refused, promotion) {
            (None, Some((prediction, why))) => {
                self.plan.deeds.push(ForgeChange::Promote { prediction, why, issue });
            }
            (None, None) => self.plan.deeds.push(ForgeChange::File { issue }),
            (Some(why), promotion) => {
                let prediction = promotion.map(|(prediction, _)| prediction);
                self.plan.refused.push(words::planner::not_filed(prediction, &issue, &why));
                self.plan.next.extend(prediction);
            }
        }
    }

    fn check(&self, issue: &NewIssue, is_promotion: bool) -> Result<(), String> {
        if issue.title.is_empty()
            || issue.text.trim().is_empty()
            || issue.criteria.iter().any(String::is_empty)
        {
            return Err(words::planner::NOTHING_LEFT.to_owned());
        }
        let is_open = |wanted: &Number| self.issues.iter().any(|open| open.number == *wanted);
        if let Some(missing) = issue.depends_on.iter().find(|wanted| !is_open(wanted)) {
            return Err(words::planner::dependency_not_open(*missing));
        }
        if let Some(formula) = &issue.formula {
            // Roles are not for issues to call.
            if formula.starts_with(FORMULA_PREFIX)
                || !self.formulas.contains(formula)
                || issue.label != ACTION
            {
                return Err(words::planner::no_such_formula(formula));
            }
        }
        match self.resembles(issue, is_promotion) {
            Some(like) => Err(words::planner::resembles(&like)),
            None => Ok(()),
        }
    }

    /// What a new issue says again: an open one, or one that is going to be filed. A prediction is promoted on its own
    /// merits, whatever else is open, but not beside an issue that says the same.
    fn resembles(&self, issue: &NewIssue, is_promotion: bool) -> Option<String> {
        let newest = &self.issues[self.issues.len().saturating_sub(COMPARED)..];
        let passed_over = if is_promotion { newest.len() } else { 0 };
        let open =
            newest.iter().map(|open| (format!("#{}", open.number), open.title.as_str(), open.body.as_str()));
        let filed = self.plan.deeds.iter().filter_map(|deed| match deed {
            ForgeChange::Promote { issue, .. } | ForgeChange::File { issue } => Some(issue),
            ForgeChange::Watch { .. } | ForgeChange::Dismiss { .. } => None,
        });
        let filed =
            filed.map(|filed| (format!("{:?}", filed.title), filed.title.as_str(), filed.text.as_str()));
        let all: Vec<(String, &str, &str)> = open.chain(filed).collect();
        let texts = all.iter().map(|(_, title, text)| (*title, *text));
        let texts = Texts::new(texts.chain([(issue.title.as_str(), issue.text.as_str())]));
        let place = (passed_over..all.len()).find(|place| texts.alike(all.len(), *place) >= DUPLICATE)?;
        all.into_iter().nth(place).map(|(name, _, _)| name)
    }
}
