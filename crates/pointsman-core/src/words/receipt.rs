//! The sentences of a receipt.

use crate::review::ReceiptLine;
use crate::text::clean_line;

/// Longest text of others in a line.
const QUOTE_CHARS: usize = 160;

pub const SETUP_RAN: &str = "the set-up ran before the session began";
pub const SETUP_FAILED: &str = "the set-up of the working tree failed";
pub const NO_SETUP: &str = "no session began after a set-up";
pub const CI_PASSED: &str = "CI passed";
pub const CI_RUNS: &str = "CI is expected to answer";
pub const CI_TIMED_OUT: &str = "CI gave no result in time";
pub const NO_CI: &str = "this project has no CI";
pub const CI_NOT_RUN: &str = "CI did not run on the current head";
pub const NOBODY_REVIEWS: &str = "this project has no reviews";
pub const NOT_REVIEWED: &str = "nobody has reviewed the current head";
pub const NO_GATE: &str = "this project has no gate";
pub const GATE_NOT_RUN: &str = "the gate runs in the merge queue";
pub const GATE_PASSED: &str = "the merge queue tested it on top of main";
pub const GATE_FAILED: &str = "the tests fail on top of main";
pub const GATE_RUNS: &str = "the merge queue tests it on top of main";

/// A text of somebody else.
pub fn quoted(text: &str) -> String {
    clean_line(text, QUOTE_CHARS)
}

/// CI could not say anything about the code.
pub fn ci_infra(reason: &str) -> String {
    format!("CI could not run: {}", clean_line(reason, QUOTE_CHARS))
}

/// The head was approved by these people, or by the review agent.
pub fn approved(by: &str) -> String {
    format!("approved by {}", clean_line(by, QUOTE_CHARS))
}

/// A reviewer wants changes before the head may land.
pub fn changes_requested(by: &str) -> String {
    format!("{} requested changes", clean_line(by, QUOTE_CHARS))
}

/// A line as people read it.
pub fn line(line: &ReceiptLine) -> String {
    let at = line.sha.as_ref().map(|sha| format!(" on {}", sha.short())).unwrap_or_default();
    format!("{} {}{at}: {}", line.step.as_str(), line.result.word(), line.text)
}
