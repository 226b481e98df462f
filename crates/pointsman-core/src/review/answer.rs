//! The result that a reviewer writes. It is outside text: whatever is not exactly as it must be makes it unusable.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::ReviewVerdict;
use crate::words;

/// The longest reason, in characters.
const REASON_CHARS: usize = 1000;
/// The longest text, in bytes.
const MARKDOWN_BYTES: usize = 40 << 10;
/// The most findings.
const FINDINGS: usize = 100;
/// The longest finding, in characters.
const FINDING_CHARS: usize = 2000;
/// The longest path, in bytes.
const PATH_BYTES: usize = 500;
/// The most follow-ups that are read; fewer are filed.
const FOLLOW_UPS: usize = 50;
/// The longest title of a follow-up, in characters.
const TITLE_CHARS: usize = 200;
/// The longest text of a follow-up, in bytes.
const BODY_BYTES: usize = 10 << 10;

/// A reviewer's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub verdict: Verdict,
    pub verdict_reason: String,
    /// All of it, for people.
    #[serde(default)]
    pub review_markdown: String,
    /// What it found, by file and line.
    #[serde(default)]
    pub findings: Vec<Finding>,
    /// What was wrong before this change.
    #[serde(default)]
    pub followups: Vec<FollowUp>,
}

/// The decision of a reviewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    Approve,
    RequestChanges,
    Discuss,
}

impl Verdict {
    /// In the words of a forge.
    pub fn plain(self) -> ReviewVerdict {
        match self {
            Self::Approve => ReviewVerdict::Approve,
            Self::RequestChanges => ReviewVerdict::RequestChanges,
            Self::Discuss => ReviewVerdict::Discuss,
        }
    }
}

/// Something about a line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    pub file: String,
    /// Which line; none for all of it.
    #[serde(default)]
    pub line: Option<u32>,
    pub text: String,
}

/// Something that was wrong before, and deserves an issue of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FollowUp {
    pub title: String,
    #[serde(default)]
    pub body: String,
}

impl Answer {
    /// Reads a result; a sentence about what is wrong if it cannot be used.
    pub fn read(result: Option<&Value>) -> Result<Self, String> {
        let Some(result) = result else { return Err(words::answer::NO_RESULT.to_owned()) };
        let answer: Self =
            serde_json::from_value(result.clone()).map_err(|error| words::answer::not_a("review", error))?;
        match answer.lacks() {
            Some(lack) => Err(words::answer::not_a("review", lack)),
            None => Ok(answer),
        }
    }

    /// The first thing that is wrong with it, if anything is.
    fn lacks(&self) -> Option<String> {
        let too_long = |text: &str, chars: usize| text.chars().count() > chars;
        if self.verdict_reason.trim().is_empty() {
            return Some(words::answer::NO_VERDICT_REASON.to_owned());
        }
        if too_long(&self.verdict_reason, REASON_CHARS) {
            return Some(words::answer::field_too_long("verdict_reason", REASON_CHARS, "characters"));
        }
        if self.review_markdown.len() > MARKDOWN_BYTES {
            return Some(words::answer::field_too_long("review_markdown", MARKDOWN_BYTES, "bytes"));
        }
        if self.findings.len() > FINDINGS {
            return Some(words::answer::more_than(FINDINGS, "findings"));
        }
        if self.followups.len() > FOLLOW_UPS {
            return Some(words::answer::more_than(FOLLOW_UPS, "follow-ups"));
        }
        for finding in &self.findings {
            if !is_path(&finding.file) {
                return Some(words::answer::not_a_path(&finding.file));
            }
            if finding.text.trim().is_empty() || too_long(&finding.text, FINDING_CHARS) {
                return Some(words::answer::length("a finding", FINDING_CHARS, "characters"));
            }
        }
        for followup in &self.followups {
            if followup.title.trim().is_empty() || too_long(&followup.title, TITLE_CHARS) {
                return Some(words::answer::follow_up_title(TITLE_CHARS));
            }
            if followup.body.len() > BODY_BYTES {
                return Some(words::answer::field_too_long("a follow-up", BODY_BYTES, "bytes"));
            }
        }
        None
    }
}

/// Whether this can be a file of a repository, and nothing else.
fn is_path(path: &str) -> bool {
    !path.is_empty()
        && path.len() <= PATH_BYTES
        && !path.starts_with('/')
        && !path.contains(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".." | ".git"))
}
