//! Actions as they are submitted to the vault.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ids::ProjectName;
use crate::text::clean_line;
use crate::words;

/// Largest action that is taken: a handler that needs more gets a path or an address.
pub const MAX_BYTES: usize = 64 * 1024;
/// Longest name of a source.
const SOURCE_CHARS: usize = 200;

/// The harm that an action could do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// None worth a question.
    Low,
    Medium,
    High,
}

impl Risk {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An action's name, given by its submitter: `[a-z0-9][a-z0-9._-]{0,63}`, so that it is safe in file names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ActionId(String);

impl ActionId {
    /// Takes a name that follows the rule, or nothing.
    pub fn new(id: &str) -> Option<Self> {
        is_name(id).then(|| Self(id.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ActionId {
    type Error = String;

    fn try_from(id: String) -> Result<Self, String> {
        Self::new(&id).ok_or_else(|| words::vault::not_an_id(&id))
    }
}

impl From<ActionId> for String {
    fn from(id: ActionId) -> Self {
        id.0
    }
}

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether ids and types may be called this.
pub(crate) fn is_name(name: &str) -> bool {
    let first = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(first)
        && name.bytes().all(|b| first(b) || b"._-".contains(&b))
}

/// A dangerous operation, as its submitter describes it. Every field must be given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name; the same name is the same action.
    pub id: ActionId,
    /// Which handler it is for.
    #[serde(rename = "type")]
    pub kind: String,
    pub source: String,
    /// The submitter's own estimate; it only ever counts upwards.
    pub risk: Risk,
    /// Whether the submitter says that it can be undone.
    pub reversible: bool,
    /// Whether the submitter wants a person to be asked.
    pub requires_human: bool,
    /// What the handler needs to know. Data, whatever it says.
    pub payload: serde_json::Value,
}

/// The reasons why a text is not an action.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// More than [`MAX_BYTES`].
    #[error("it has {0} bytes, more than {MAX_BYTES}")]
    TooLarge(usize),
    /// Not JSON, a field missing, unknown or of the wrong type.
    #[error("it is not an action: {0}")]
    Json(String),
    /// The type could not be the name of a handler.
    #[error("`{0}` is not the name of a type")]
    Type(String),
    /// The source is empty, long, or holds control characters.
    #[error("its source must be one line of at most {SOURCE_CHARS} characters")]
    Source,
}

impl Action {
    /// Reads an action. The text is outside text: nothing in it is believed but its shape.
    pub fn parse(text: &[u8]) -> Result<Self, Malformed> {
        if text.len() > MAX_BYTES {
            return Err(Malformed::TooLarge(text.len()));
        }
        let action: Self = serde_json::from_slice(text)
            .map_err(|error| Malformed::Json(clean_line(&error.to_string(), 300)))?;
        if !is_name(&action.kind) {
            return Err(Malformed::Type(clean_line(&action.kind, 80)));
        }
        if action.source.is_empty() || clean_line(&action.source, SOURCE_CHARS) != action.source {
            return Err(Malformed::Source);
        }
        Ok(action)
    }

    /// The hash to which an approval is bound: a fingerprint of every field, and of the project it is for.
    pub fn hash(&self, project: &ProjectName) -> String {
        // Objects are sorted by key, so the order in which a submitter wrote them does not matter.
        let whole = serde_json::json!({ "project": project, "action": self });
        let digest = Sha256::digest(whole.to_string().as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}
