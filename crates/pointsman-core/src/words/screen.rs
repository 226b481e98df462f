//! To people, on the screen of the inbox.

use crate::part::contribution::ReviewVerdict;

/// The keys, the most useful first: a narrow terminal shows as many as fit.
pub const KEYS: &str = "a approve  r request changes  e answer  s skip  Tab next view  j/k move  Space scroll  f start afresh  t attach  d dismiss  q quit";

pub const LIST: &str = "Needs you";
pub const EMPTY: &str = "Nothing waits for a person.";
pub const NO_DIFF: &str = "There is no change to look at.";
pub const NO_LOG: &str = "There is no log of CI.";
pub const NO_FINDINGS: &str = "Nobody has reviewed it.";
pub const NO_SESSION: &str = "No session has worked on it.";
pub const CANCELLED: &str = "Nothing was written, so nothing was done.";
pub const CONFIRM: &str = "Press y to do it, any other key to leave it.";

/// An act waits for a yes.
pub fn confirm(what: &str, question: u64) -> String {
    format!("{what} question {question}? {CONFIRM}")
}

/// The question cannot be settled in this way.
pub fn not_this_way(what: &str, question: u64) -> String {
    format!("question {question} takes no such answer: {what} does not settle it")
}

/// The question has no issue that a session could work on.
pub fn no_issue(question: u64) -> String {
    format!("question {question} is about no issue")
}

/// The first lines of the file in a person's editor. Lines that begin with `#` are left out.
pub fn template(what: &str, subject: &str) -> String {
    format!(
        "\n# {what}\n# {subject}\n# Lines that begin with # are left out. Leave the rest empty to cancel.\n"
    )
}

pub const REQUEST_CHANGES: &str = "What has to change? The agent reads it.";
pub const ANSWER: &str = "Your answer. Whoever asked reads it.";

/// The task begins anew.
pub fn afresh(issue: u64) -> String {
    format!("#{issue} begins anew from today's main; its old work is in `pointsman rescue list`.")
}

/// A review of a commit.
pub fn review(by: &str, verdict: ReviewVerdict, commit: &str, body: &str) -> String {
    let did = match verdict {
        ReviewVerdict::Approve => "approved",
        ReviewVerdict::RequestChanges => "requested changes to",
        ReviewVerdict::Discuss => "commented on",
    };
    format!("{by} {did} {commit}\n{body}\n")
}
