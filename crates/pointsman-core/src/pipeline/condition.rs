//! Conditions of edges: `outcome=success && context.tests=green`, and the harness's `pass`, `fail` and `partial`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::words::pipeline::Sentence;

/// The longest condition that is read, in clauses.
const MAX_CLAUSES: usize = 32;

/// The end of a node's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Success,
    /// Enough to go on, with something left out.
    PartialSuccess,
    /// Not yet: once more, if there are tries left.
    Retry,
    Fail,
}

impl Verdict {
    pub const ALL: [Self; 4] = [Self::Success, Self::PartialSuccess, Self::Retry, Self::Fail];

    /// The name that files and scripts use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::PartialSuccess => "partial_success",
            Self::Retry => "retry",
            Self::Fail => "fail",
        }
    }

    /// Whether a goal gate is content with it.
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Success | Self::PartialSuccess)
    }
}

/// Facts that a condition is about.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    pub verdict: Verdict,
    pub preferred_label: Option<&'a str>,
    pub context: &'a BTreeMap<String, String>,
}

/// Clauses that must all hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub clauses: Vec<Clause>,
}

/// A comparison of one fact with one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clause {
    pub key: Key,
    /// `=` if it must be this value, `!=` if it must not.
    pub equal: bool,
    pub value: String,
}

/// The left side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Key {
    Outcome,
    PreferredLabel,
    /// Without the `context.` in front. A value that nobody set is empty.
    Context(String),
}

/// A mistake in a condition, with the byte at which it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub at: usize,
    pub message: String,
}

impl Condition {
    /// Reads a condition. An empty one is no condition.
    pub fn parse(text: &str) -> Result<Option<Self>, Error> {
        if text.trim().is_empty() {
            return Ok(None);
        }
        let mut clauses = Vec::new();
        let mut at = 0;
        for part in text.split("&&") {
            if clauses.len() == MAX_CLAUSES {
                return Err(Error {
                    at,
                    message: Sentence::TooManyClauses(MAX_CLAUSES.to_string()).to_string(),
                });
            }
            let start = at + (part.len() - part.trim_start().len());
            clauses.push(clause(part.trim()).map_err(|message| Error { at: start, message })?);
            at += part.len() + "&&".len();
        }
        Ok(Some(Self { clauses }))
    }

    /// Whether all of it holds.
    pub fn holds(&self, facts: &Facts<'_>) -> bool {
        self.clauses.iter().all(|clause| clause.holds(facts))
    }

    /// Whether it could hold after this verdict, whatever the context says.
    pub fn allows(&self, verdict: Verdict) -> bool {
        self.clauses
            .iter()
            .filter(|clause| clause.key == Key::Outcome)
            .all(|clause| clause.compares(verdict.as_str()))
    }
}

impl Clause {
    fn holds(&self, facts: &Facts<'_>) -> bool {
        match &self.key {
            Key::Outcome => self.compares(facts.verdict.as_str()),
            Key::PreferredLabel => self.compares(facts.preferred_label.unwrap_or_default()),
            Key::Context(name) => self.compares(facts.context.get(name).map_or("", String::as_str)),
        }
    }

    fn compares(&self, actual: &str) -> bool {
        (actual == self.value) == self.equal
    }
}

fn clause(text: &str) -> Result<Clause, String> {
    let word =
        |verdict: Verdict| Clause { key: Key::Outcome, equal: true, value: verdict.as_str().to_owned() };
    match text {
        "" => return Err(Sentence::ClauseMissingBeside.to_string()),
        "pass" => return Ok(word(Verdict::Success)),
        "fail" => return Ok(word(Verdict::Fail)),
        "partial" => return Ok(word(Verdict::PartialSuccess)),
        _ => {}
    }
    let (key, equal, value) = match (text.split_once("!="), text.split_once('=')) {
        (Some((key, value)), _) => (key, false, value),
        (None, Some((key, value))) => (key, true, value),
        (None, None) => {
            return Err(Sentence::NoCondition(text.to_string()).to_string());
        }
    };
    let (name, value) = (key.trim(), unquoted(value.trim()));
    if value.contains(['=', '!', '|', '<', '>']) {
        return Err(Sentence::NoConditionValue(value.to_string()).to_string());
    }
    let key = match name {
        "outcome" => {
            if !Verdict::ALL.iter().any(|verdict| verdict.as_str() == value) {
                let known: Vec<&str> = Verdict::ALL.iter().map(|verdict| verdict.as_str()).collect();
                return Err(
                    Sentence::UnknownOutcome(value.to_string(), known.join(", ").to_string()).to_string()
                );
            }
            Key::Outcome
        }
        "preferred_label" => Key::PreferredLabel,
        _ => match name.strip_prefix("context.") {
            Some(path) if path.split('.').all(is_identifier) => Key::Context(path.to_owned()),
            Some(_) | None => {
                return Err(Sentence::UnknownConditionKey(name.to_string()).to_string());
            }
        },
    };
    Ok(Clause { key, equal, value: value.to_owned() })
}

fn unquoted(text: &str) -> &str {
    let inner = ['"', '\''].into_iter().find_map(|q| text.strip_prefix(q)?.strip_suffix(q));
    inner.unwrap_or(text)
}

pub(super) fn is_identifier(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
