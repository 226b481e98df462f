//! Words that are commands. Everything else is something that somebody said.

use serde::{Deserialize, Serialize};

use crate::text::clean_line;

/// Longest word or reason that is kept.
const WORDS: usize = 300;

/// A command, as it was typed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    Approve {
        /// Although it may have been fired before.
        again: bool,
        /// Its name or the beginning of its hash, if one was given.
        which: Option<String>,
    },
    Reject {
        reason: String,
    },
    Kill,
    Pause,
    /// Go on with the task.
    Resume,
    /// What does not go on?
    Stuck,
    Status,
    Help,
    /// Say no more about a warning.
    Ignore {
        /// Which: `disk`.
        what: String,
    },
    /// Something after a `!` that is no command.
    Unknown {
        word: String,
    },
}

impl Command {
    /// Reads a text that is nothing but a command.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.lines().count() != 1 {
            return None;
        }
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split_whitespace().collect();
        let last = |word: &str| word.trim_end_matches(['.', '!', '?']).to_owned();
        match words.as_slice() {
            ["approve"] => Some(Self::Approve { again: false, which: None }),
            ["approve", "again"] => Some(Self::Approve { again: true, which: None }),
            ["approve", which] if is_reference(which) => {
                Some(Self::Approve { again: false, which: Some((*which).to_owned()) })
            }
            ["approve", which, "again"] if is_reference(which) => {
                Some(Self::Approve { again: true, which: Some((*which).to_owned()) })
            }
            ["reject" | "reject:" | "reject,", ..] => {
                let reason = text["reject".len()..].trim_start_matches([':', ',', ' ']);
                Some(Self::Reject { reason: clean_line(reason, WORDS) })
            }
            ["kill", "that" | "the" | "this", agent] if last(agent) == "agent" => Some(Self::Kill),
            ["what's" | "what’s" | "whats", stuck] if last(stuck) == "stuck" => Some(Self::Stuck),
            ["what", "is", stuck] if last(stuck) == "stuck" => Some(Self::Stuck),
            ["ignore", what @ .., warning]
                if matches!(last(warning).as_str(), "warning" | "warnings") && !what.is_empty() =>
            {
                let named = what.strip_prefix(&["the"]).unwrap_or(what);
                (!named.is_empty()).then(|| Self::Ignore { what: clean_line(&named.join(" "), WORDS) })
            }
            ["pointsman" | "pointsman:", word] => Self::named(word),
            [word] => word.strip_prefix('!').filter(|word| !word.is_empty()).map(|word| {
                Self::named(word).unwrap_or_else(|| Self::Unknown { word: clean_line(word, WORDS) })
            }),
            _ => None,
        }
    }

    fn named(word: &str) -> Option<Self> {
        match word {
            "kill" | "stop" => Some(Self::Kill),
            "pause" => Some(Self::Pause),
            "resume" => Some(Self::Resume),
            "stuck" => Some(Self::Stuck),
            "status" => Some(Self::Status),
            "help" => Some(Self::Help),
            _ => None,
        }
    }
}

/// Whether a word can be an action's name or the beginning of a hash.
fn is_reference(word: &str) -> bool {
    word != "again" && crate::vault::is_name(word)
}
