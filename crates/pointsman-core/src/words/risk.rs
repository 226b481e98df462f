//! The reasons why a change is in its class of risk, and the people whom the class needs.

use crate::config::{RiskClass, RiskReviewer};
use crate::review::{Record, Risk};
use crate::text::clean_line;

/// Longest reason of a review agent that is quoted.
const QUOTE_CHARS: usize = 300;

pub const UNREADABLE: &str = "its changes could not be read, so no rule can tell";
pub const TOO_MANY_FILES: &str = "the change has too many files for their history to be read";
pub const NO_RECORD: &str = "the history of these files could not be read";
/// Why a change of the low class is shown to a person.
pub const SAMPLED: &str = "it was drawn: a share of the changes of the low class is shown to people";

/// Files that a rule names.
pub fn paths(paths: &[String]) -> String {
    format!("it changes {}", super::review::few_paths(paths))
}

/// Files outside of those that a rule names.
pub fn other_paths(paths: &[String]) -> String {
    format!("it changes more than files of little risk ({})", super::review::few_paths(paths))
}

/// Files that say what the project depends on.
pub fn dependencies(paths: &[String]) -> String {
    format!("it changes dependencies ({})", super::review::few_paths(paths))
}

/// Files that get other rights, or give them.
pub fn permissions(paths: &[String]) -> String {
    format!("it changes permissions ({})", super::review::few_paths(paths))
}

/// Files whose content is not text.
pub fn opaque(paths: &[String]) -> String {
    format!(
        "it changes files that are not text, which no rule can judge ({})",
        super::review::few_paths(paths)
    )
}

/// A change that is larger than a rule allows.
pub fn lines(lines: usize, limit: u32) -> String {
    format!("it changes {lines} lines, more than {limit}")
}

/// Tests that the change removes or switches off.
pub fn fewer_tests(sentences: &[String]) -> String {
    format!("it has fewer tests ({})", super::review::few_paths(sentences))
}

/// Work of agents in these files that was taken back.
pub fn reverted(record: Record) -> String {
    format!("{} of {} earlier changes by agents in these files were reverted", record.reverted, record.landed)
}

/// Files in which agents have landed little so far.
pub fn unproven(record: Record, limit: u32) -> String {
    format!(
        "agents have landed {} of the {limit} changes in these files that the rule asks for",
        record.landed
    )
}

/// The review agent approves, and names this many things.
pub fn findings(count: usize) -> String {
    match count {
        1 => "the reviewer found one thing".to_owned(),
        count => format!("the reviewer found {count} things"),
    }
}

/// The review agent approves with findings, or does not decide.
pub fn found(gist: &str) -> String {
    format!("the review agent found something: {}", clean_line(gist, QUOTE_CHARS))
}

/// Whom a change needs, in a few words.
pub fn needs(reviewer: RiskReviewer) -> &'static str {
    match reviewer {
        RiskReviewer::Nobody => "needs nobody's review",
        RiskReviewer::Agent => "needs the review agent",
        RiskReviewer::Person => "needs a person's review",
        RiskReviewer::TwoPeople => "needs the review of two people",
    }
}

/// The class with whom it needs, in one line.
pub fn class_line(class: RiskClass, reviewer: RiskReviewer) -> String {
    format!("risk {class}: {}", needs(reviewer))
}

/// The risk of a change with whom it needs, as in [`lines_of`].
pub fn judged(risk: &Risk, needs: RiskReviewer) -> Vec<String> {
    lines_of(risk.class, needs, risk.sampled, &risk.reasons)
}

/// The risk of a change, a line for its class and one for each reason.
pub fn lines_of(class: RiskClass, needs: RiskReviewer, sampled: bool, reasons: &[String]) -> Vec<String> {
    let sampled = sampled.then(|| SAMPLED.to_owned());
    let reasons = sampled.into_iter().chain(reasons.iter().cloned());
    std::iter::once(class_line(class, needs))
        .chain(reasons.map(|why| clean_line(&why, QUOTE_CHARS * 2)))
        .collect()
}
