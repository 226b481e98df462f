//! The subject of a notice.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::Number;
use crate::role::{FORMULA_PREFIX, Role};
use crate::vault::{ActionId, is_name};
use crate::words;

/// One task, one agent, one dangerous action: each is told in a thread of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Topic {
    /// A task, by its issue.
    Task(Number),
    /// An agent that works by a formula, by its name: `supervisor`, `gardener`.
    Agent(String),
    /// An action in the vault.
    Vault(ActionId),
    /// Nothing in particular: the room itself.
    Room,
}

impl Topic {
    /// The thread of a role.
    pub fn of_role(role: Role) -> Self {
        Self::Agent(role.as_str().to_owned())
    }

    /// The agent that carries out a formula: `run-supervisor` is the supervisor's.
    pub fn of_formula(formula: &str) -> Self {
        Self::Agent(formula.strip_prefix(FORMULA_PREFIX).unwrap_or(formula).to_owned())
    }

    /// The issue, if it is a task.
    pub fn issue(&self) -> Option<Number> {
        match self {
            Self::Task(issue) => Some(*issue),
            Self::Agent(_) | Self::Vault(_) | Self::Room => None,
        }
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(issue) => write!(f, "task/{issue}"),
            Self::Agent(name) => write!(f, "agent/{name}"),
            Self::Vault(id) => write!(f, "vault/{id}"),
            Self::Room => f.write_str("room"),
        }
    }
}

impl From<Topic> for String {
    fn from(topic: Topic) -> Self {
        topic.to_string()
    }
}

impl TryFrom<String> for Topic {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || match text.split_once('/') {
            None if text == "room" => Some(Self::Room),
            Some(("task", issue)) => issue.parse().ok().map(Self::Task),
            Some(("agent", name)) => is_name(name).then(|| Self::Agent(name.to_owned())),
            Some(("vault", id)) => ActionId::try_from(id.to_owned()).ok().map(Self::Vault),
            None | Some(_) => None,
        };
        read().ok_or_else(|| words::parse::not_a_topic(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::Topic;

    #[test]
    fn a_topic_reads_back() {
        for text in ["task/3", "agent/supervisor", "vault/deploy-17", "room"] {
            assert_eq!(Topic::try_from(text.to_owned()).unwrap().to_string(), text);
        }
        for text in ["", "task/", "task/x", "agent/../x", "vault/", "lobby"] {
            assert!(Topic::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert_eq!(Topic::of_formula("run-supervisor").to_string(), "agent/supervisor");
        assert_eq!(Topic::of_formula("tidy").to_string(), "agent/tidy");
    }
}
