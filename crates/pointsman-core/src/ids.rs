//! Names and numbers that must not be mixed up.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::role::Role;
use crate::run::RunId;
use crate::vault::ActionId;
use crate::words;

/// An issue or pull request number of a forge.
pub type Number = u64;

/// A project's name: `[a-z0-9][a-z0-9-]{0,62}`, so that it is safe in file and tmux names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProjectName(String);

impl ProjectName {
    /// Takes a name that follows the rule, or nothing.
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = name.bytes();
        let first_ok = bytes.next().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let rest_ok = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        (first_ok && rest_ok && name.len() <= 63).then(|| Self(name.to_owned()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ProjectName {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        Self::new(&name).ok_or_else(|| words::parse::not_a_project_name(&name))
    }
}

impl From<ProjectName> for String {
    fn from(name: ProjectName) -> Self {
        name.0
    }
}

impl fmt::Display for ProjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A full git object id, lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha(String);

impl Sha {
    /// Takes 40 or 64 lower-case hexadecimal digits, or nothing.
    pub fn new(text: &str) -> Option<Self> {
        let hex = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        (hex && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

impl TryFrom<String> for Sha {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::new(&text).ok_or_else(|| words::parse::not_a_sha(&text))
    }
}

impl From<Sha> for String {
    fn from(sha: Sha) -> Self {
        sha.0
    }
}

impl fmt::Display for Sha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of a task: a project and one of its issues.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TaskKey {
    pub project: ProjectName,
    pub issue: Number,
}

impl TaskKey {
    /// The identity of the task's dev sessions, the same across generations: `dev-{project}-{issue}`.
    /// It is the tmux session's name too; the name rule makes it safe there.
    pub fn identity(&self) -> String {
        format!("dev-{}-{}", self.project, self.issue)
    }

    /// The session of one generation: `dev-{project}-{issue}.{generation}`.
    pub fn session(&self, generation: u32) -> String {
        format!("{}.{generation}", self.identity())
    }

    /// Reads a session's name back.
    pub fn parse_session(session: &str) -> Option<(Self, u32)> {
        let (identity, generation) = session.rsplit_once('.')?;
        let (project, issue) = identity.strip_prefix("dev-")?.rsplit_once('-')?;
        let key = Self { project: ProjectName::new(project)?, issue: issue.parse().ok()? };
        Some((key, generation.parse().ok()?))
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.project, self.issue)
    }
}

/// The key of a run: a project, the role whose formula it follows, and its number among the project's runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    pub project: ProjectName,
    pub role: Role,
    pub id: RunId,
}

impl RunKey {
    /// The identity of the run's sessions, the same across generations: `planner-shop-7`.
    pub fn identity(&self) -> String {
        format!("{}-{}-{}", self.role, self.project, self.id)
    }

    /// The session of one generation: `planner-shop-7.1`.
    pub fn session(&self, generation: u32) -> String {
        format!("{}.{generation}", self.identity())
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identity())
    }
}

/// The key of what a role remembers of a project.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RoleKey {
    pub project: ProjectName,
    pub role: Role,
}

impl fmt::Display for RoleKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.project, self.role)
    }
}

/// The key of a vault action: a project and the action's name in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ActionKey {
    pub project: ProjectName,
    pub id: ActionId,
}

impl fmt::Display for ActionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/vault/{}", self.project, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::{ProjectName, Sha, TaskKey};

    #[test]
    fn a_project_name_is_safe_everywhere_it_is_used() {
        for good in ["a", "0", "shop", "a-b", "harb2"] {
            assert!(ProjectName::new(good).is_some(), "{good}");
        }
        for bad in ["", "-a", "A", "a_b", "a.b", "a b", "a/b", "$(id)", "é", &"a".repeat(64)] {
            assert!(ProjectName::new(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn a_session_name_reads_back_even_if_the_project_has_dashes_and_digits() {
        let key = TaskKey { project: ProjectName::new("a-1-b2").unwrap(), issue: 7 };
        assert_eq!(TaskKey::parse_session(&key.session(3)), Some((key, 3)));
        assert_eq!(TaskKey::parse_session("dev-a.1"), None);
        assert_eq!(TaskKey::parse_session("review-a-1.1"), None);
    }

    #[test]
    fn a_sha_is_full_and_lower_case() {
        assert!(Sha::new(&"a".repeat(40)).is_some());
        assert!(Sha::new(&"A".repeat(40)).is_none());
        assert!(Sha::new("abc").is_none());
    }
}
