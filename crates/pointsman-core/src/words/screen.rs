//! Texts on the inbox screen.

use crate::ids::Sha;
use crate::part::contribution::ReviewVerdict;
use crate::review::comments::Handled;
use crate::text::clean_line;

/// The keys, the most useful first: a narrow terminal shows as many as fit.
pub const KEYS: &str = "a approve  r request changes  e answer  s skip  Tab next view  j/k move  Space scroll  f start afresh  t attach  o open in a browser  h allow host  d dismiss  n new since last look  q quit";

pub const LIST: &str = "Needs you";
pub const EMPTY: &str = "Nothing needs you.";
pub const NO_DIFF: &str = "There is no diff.";
pub const NO_LOG: &str = "There is no CI log.";
pub const NO_FINDINGS: &str = "Nobody has reviewed it.";
pub const NO_SESSION: &str = "No session has worked on it.";
pub const CANCELLED: &str = "Cancelled: you wrote nothing.";
pub const CONFIRM: &str = "Press y to confirm, any other key to cancel.";

/// An act waits for a yes.
pub fn confirm(what: &str, question: u64) -> String {
    format!("{what} question {question}? {CONFIRM}")
}

/// The question cannot be settled in this way.
pub fn not_this_way(what: &str, question: u64) -> String {
    format!("question {question} cannot be settled this way: {what} does not apply to it")
}

/// The question has no issue that a session could work on.
pub fn no_issue(question: u64) -> String {
    format!("question {question} does not belong to an issue")
}

/// The question is about no host.
pub fn no_hosts(question: u64) -> String {
    format!("question {question} asks for no host")
}

/// The forge of the project has no pages.
pub fn no_page(command: &str) -> String {
    format!("This forge has no web pages. To read it: {command}")
}

/// The commit that a diff begins at.
pub fn since(sha: Option<&Sha>) -> String {
    match sha {
        Some(sha) => format!("Since you looked at {}:", sha.short()),
        None => "This is your first look at it: everything is new.".to_owned(),
    }
}

/// The branch is where the person saw it last.
pub fn nothing_since(sha: &Sha) -> String {
    format!("Nothing changed since you looked at {}.", sha.short())
}

/// A comment on a line, and what became of it.
pub fn line_comment(handled: Handled, file: &str, line: u64, text: &str) -> String {
    format!("{:<9}  {}:{line}  {}", handled.name(), clean_line(file, 200), clean_line(text, 400))
}

/// The browser was started.
pub fn opened(link: &str) -> String {
    format!("Opened {link}")
}

/// The browser could not be started, or ended with an error.
pub fn not_opened(link: &str, program: &str, error: &str) -> String {
    format!("{program} did not open {link}: {error}. Set BROWSER to another program.")
}

pub const COMMENT_ON_LINES: &str =
    "# Below is the change. What you write under a line of it is a comment on that line.\n";

/// The first lines of the file in a person's editor. Lines that begin with `#` are left out.
pub fn template(what: &str, subject: &str) -> String {
    format!(
        "\n# {what}\n# {subject}\n# Lines that begin with # are ignored. Leave the rest empty to cancel.\n"
    )
}

pub const REQUEST_CHANGES: &str = "What has to change? The agent reads this text.";
pub const ANSWER: &str = "Your answer. Whoever asked the question reads it.";

/// The task begins anew.
pub fn afresh(issue: u64) -> String {
    format!("#{issue} starts over from today's main; `pointsman rescue list` lists its old work.")
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

/// The files that the issue does not speak of come first.
pub fn outside(paths: &[String]) -> String {
    format!("Outside of the paths that the issue names, and shown first: {}", super::review::few_paths(paths))
}
