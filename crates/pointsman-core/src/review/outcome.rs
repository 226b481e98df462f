//! The outcome of an answer. Facts can make it more careful, never less.

use std::collections::BTreeSet;

use super::answer::{Answer, FollowUp, Verdict};
use super::facts::Facts;
use crate::config::{Config, ReviewMode, RiskWhen};
use crate::forge::Issue;
use crate::task::ReviewVerdict;
use crate::words;

/// The review that is posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub verdict: ReviewVerdict,
    /// Why a person must decide although the reviewer approves.
    pub needs_person: Option<String>,
}

/// Weighs a reviewer's answer against the facts: an approval of what needs a person is a question to one.
///
/// Where the risk decides who looks, so is an approval with findings, if the project's rules name them.
pub fn outcome(answer: &Answer, facts: &Facts, config: &Config) -> Outcome {
    let by_findings = config.review.mode == ReviewMode::Risk
        && config.risk.rules.iter().any(|rule| rule.when == RiskWhen::Findings);
    let findings =
        (by_findings && !answer.findings.is_empty()).then(|| words::risk::findings(answer.findings.len()));
    let all: Vec<String> = facts.needs_person().into_iter().chain(findings).collect();
    let needs_person = (!all.is_empty()).then(|| all.join("; "));
    match (answer.verdict, &needs_person) {
        (Verdict::Approve, Some(_)) => Outcome { verdict: ReviewVerdict::Discuss, needs_person },
        (verdict, _) => Outcome { verdict: verdict.plain(), needs_person: None },
    }
}

/// The follow-ups that are filed: as many as the project wants at most, and none that is open as an issue already.
pub fn follow_ups<'a>(answer: &'a Answer, open: &[Issue], limit: usize) -> Vec<&'a FollowUp> {
    let mut known: BTreeSet<String> = open.iter().map(|issue| plain(&issue.title)).collect();
    let new = answer.followups.iter().filter(|followup| known.insert(plain(&followup.title)));
    new.take(limit).collect()
}

/// A title without what people write differently each time.
fn plain(title: &str) -> String {
    let words = title.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}
