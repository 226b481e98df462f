//! The model's answer: lines of three kinds, and nothing else.
//!
//! ```text
//! ACTION: {"issue": 12, "do": "duplicate", "of": 7, "why": "…"}
//! ACTION: {"issue": 12, "do": "criteria", "text": "- [ ] …"}
//! ACTION: {"issue": 12, "do": "underspecified", "why": "…"}
//! ACTION: {"issue": 12, "do": "unblock", "why": "…"}
//! ACTION: {"issue": 12, "do": "keep", "why": "…"}
//! DUST: {"issue": 12, "group": "docs", "title": "…", "reason": "…"}
//! ESCALATE: {"issue": 12, "question": "…"}
//! ```

use serde::{Deserialize, Serialize};

use crate::ids::Number;
use crate::json::read_as;
use crate::words;

/// Lines of one answer.
const LINES: usize = 200;
/// Characters of one line.
const LINE: usize = 8000;

/// A line of the gardener's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerLine {
    Action {
        issue: Number,
        action: Action,
    },
    /// Too small for an issue of its own.
    Dust(DustLine),
    /// A person has to decide.
    Escalate(Escalate),
}

/// Something to do about an issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Close it: another one says the same.
    Duplicate {
        of: Number,
        why: String,
    },
    /// Say when it is done.
    Criteria {
        text: String,
    },
    /// Mark it as too large or too vague.
    Underspecified {
        why: String,
    },
    Unblock {
        why: String,
    },
    /// Leave it as it is.
    Keep {
        why: String,
    },
}

/// An issue that is too small to stand alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DustLine {
    pub issue: Number,
    /// With what it belongs together: a file, a part.
    pub group: String,
    /// What is to be done.
    pub title: String,
    pub reason: String,
}

/// A question for a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Escalate {
    pub issue: Number,
    /// What is to be decided.
    pub question: String,
}

/// An action as it is written: all fields that an action may have.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    issue: Number,
    r#do: String,
    of: Option<Number>,
    text: Option<String>,
    why: Option<String>,
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub lines: Vec<AnswerLine>,
}

/// An answer that cannot be used, and why. Nothing of it is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable(pub String);

impl std::fmt::Display for Unusable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Answer {
    /// Reads the result of a run: an object with `lines`, a list of texts.
    pub fn of_result(result: Option<&serde_json::Value>) -> Result<Self, Unusable> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Result {
            lines: Vec<String>,
        }
        let Some(result) = result else { return Err(Unusable(words::answer::NO_RESULT.to_owned())) };
        let read: Result = serde_json::from_value(result.clone())
            .map_err(|error| Unusable(words::answer::not_a("list of lines", error)))?;
        Self::read(read.lines.iter().map(String::as_str))
    }

    /// Reads lines. One that is of no kind spoils the answer: whoever wrote it did not understand the question.
    pub fn read<'l>(lines: impl IntoIterator<Item = &'l str>) -> Result<Self, Unusable> {
        let mut read = Vec::new();
        for (place, line) in lines.into_iter().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            if place >= LINES {
                return Err(Unusable(words::answer::more_than(LINES, "lines")));
            }
            if line.chars().count() > LINE {
                return Err(Unusable(words::answer::line_too_long(place + 1, LINE)));
            }
            let parsed = one(line).map_err(|why| Unusable(words::answer::at("line", place + 1, why)))?;
            read.push(parsed);
        }
        Ok(Self { lines: read })
    }
}

fn one(line: &str) -> Result<AnswerLine, String> {
    let json = |error: serde_json::Error| error.to_string();
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("ACTION:") {
        let written: Written = read_as(rest.trim()).map_err(json)?;
        let issue = written.issue;
        return action(written).map(|action| AnswerLine::Action { issue, action });
    }
    if let Some(rest) = line.strip_prefix("DUST:") {
        return read_as(rest.trim()).map(AnswerLine::Dust).map_err(json);
    }
    // The colon is missing in older formulas.
    if let Some(rest) = line.strip_prefix("ESCALATE") {
        let rest = rest.strip_prefix(':').unwrap_or(rest);
        return read_as(rest.trim()).map(AnswerLine::Escalate).map_err(json);
    }
    Err(words::answer::UNKNOWN_LINE.to_owned())
}

fn action(written: Written) -> Result<Action, String> {
    let Written { r#do, of, text, why, .. } = written;
    match (r#do.as_str(), of, text, why) {
        ("duplicate", Some(of), None, Some(why)) => Ok(Action::Duplicate { of, why }),
        ("criteria", None, Some(text), None) => Ok(Action::Criteria { text }),
        ("underspecified", None, None, Some(why)) => Ok(Action::Underspecified { why }),
        ("unblock", None, None, Some(why)) => Ok(Action::Unblock { why }),
        ("keep", None, None, Some(why)) => Ok(Action::Keep { why }),
        ("duplicate" | "criteria" | "underspecified" | "unblock" | "keep", ..) => {
            Err(words::answer::wrong_fields(&r#do))
        }
        _ => Err(words::answer::UNKNOWN_ACTION.to_owned()),
    }
}
