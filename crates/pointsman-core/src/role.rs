//! The roles: who works in a project, and everything in which one role differs from another.
//!
//! Call sites ask what a role does ([`Role::hands_in`], [`Role::looks_by_rules`]) and never what it is called, so that a new
//! role is a variant here, and the compiler names the rest. What the roles decide belongs to their own rooms.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::config::{Span, Timing};
use crate::role_memory::Memory;
use crate::snapshot::Snapshot;
use crate::{action, gardener, health, planner, predictor};

/// The formula of a role has its word behind this prefix: `run-planner`.
pub const FORMULA_PREFIX: &str = "run-";

/// The kind of work that a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Implements issues.
    Dev,
    /// Reviews pull requests.
    Review,
    /// Grooms the backlog.
    Gardener,
    /// Watches the health of the machine and of the project.
    Supervisor,
    /// Judges predictions and names gaps.
    Planner,
    /// Files what figures foretell.
    Predictor,
    /// Carries out issues labelled `action`, and every formula that is no role's own.
    Action,
    /// Looks at dangerous actions before they are fired.
    Vault,
}

/// A word that names no role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no role {0:?}: it is one of {list}", list = Role::ALL.map(Role::as_str).join(", "))]
pub struct UnknownRole(pub String);

/// The occasion for a role's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// An issue labelled `backlog` becomes a task.
    Issue,
    PullRequest,
    /// An issue labelled `action`, or a person's order.
    Order,
    VaultAction,
    /// The time that its schedule names.
    Time,
}

/// The files that a role's session may hand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandsIn {
    /// `AGENTS.md` of any folder: it steers other agents.
    Guides,
    /// The role's own memory and journal, in a folder of its name.
    Notes,
}

impl Role {
    /// Every role, in the order in which people are shown them.
    pub const ALL: [Self; 8] = [
        Self::Dev,
        Self::Review,
        Self::Gardener,
        Self::Supervisor,
        Self::Planner,
        Self::Predictor,
        Self::Action,
        Self::Vault,
    ];

    /// The word in files, names of sessions, the configuration and the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Review => "review",
            Self::Gardener => "gardener",
            Self::Supervisor => "supervisor",
            Self::Planner => "planner",
            Self::Predictor => "predictor",
            Self::Action => "action",
            Self::Vault => "vault",
        }
    }

    /// The name of the formula that its sessions follow.
    pub const fn formula(self) -> &'static str {
        match self {
            Self::Dev => "run-dev",
            Self::Review => "run-review",
            Self::Gardener => "run-gardener",
            Self::Supervisor => "run-supervisor",
            Self::Planner => "run-planner",
            Self::Predictor => "run-predictor",
            Self::Action => "run-action",
            Self::Vault => "run-vault",
        }
    }

    /// The role whose sessions follow a formula. A project's own formulas are actions, whatever they are called.
    pub fn of_formula(formula: &str) -> Self {
        Self::ALL.into_iter().find(|role| role.formula() == formula).unwrap_or(Self::Action)
    }

    /// The role of a session or an identity by its name: `planner-shop-7.1`.
    pub fn of_session(session: &str) -> Result<Self, UnknownRole> {
        session.split('-').next().unwrap_or(session).parse()
    }

    /// The occasion for its work.
    pub const fn occasion(self) -> Occasion {
        match self {
            Self::Dev => Occasion::Issue,
            Self::Review => Occasion::PullRequest,
            Self::Gardener | Self::Supervisor | Self::Planner | Self::Predictor => Occasion::Time,
            Self::Action => Occasion::Order,
            Self::Vault => Occasion::VaultAction,
        }
    }

    /// Whether its schedule makes it work. Issues, pull requests and vault actions come to the others by themselves.
    pub fn works_by_timetable(self) -> bool {
        self.occasion() == Occasion::Time
    }

    /// Whether code looks first when its time has come, and begins a session only for what needs judgement.
    pub const fn looks_by_rules(self) -> bool {
        match self {
            Self::Gardener | Self::Supervisor | Self::Planner | Self::Predictor => true,
            Self::Dev | Self::Review | Self::Action | Self::Vault => false,
        }
    }

    /// Whether its sessions may submit actions to the vault. One that looks at an action could be the cause of the next look.
    pub const fn submits_to_vault(self) -> bool {
        match self {
            Self::Dev
            | Self::Review
            | Self::Gardener
            | Self::Supervisor
            | Self::Planner
            | Self::Predictor
            | Self::Action => true,
            Self::Vault => false,
        }
    }

    /// The files that its sessions may hand in as a pull request.
    pub const fn hands_in(self) -> Option<HandsIn> {
        match self {
            Self::Gardener => Some(HandsIn::Guides),
            Self::Planner => Some(HandsIn::Notes),
            Self::Dev | Self::Review | Self::Supervisor | Self::Predictor | Self::Action | Self::Vault => {
                None
            }
        }
    }

    /// The roles that may hand in files.
    pub fn handing_in() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|role| role.hands_in().is_some())
    }

    /// The kinds of entries in the log that carry the lines of its own journal; none if it keeps no journal.
    pub const fn journal_kinds(self) -> &'static [&'static str] {
        match self {
            Self::Gardener => &["gardener_looked", "gardener_groomed"],
            Self::Supervisor => &["supervisor_looked", "supervisor_judged", "supervisor_heard"],
            Self::Planner => &["planner_looked", "planner_planned"],
            Self::Predictor => &["predictor_filed"],
            Self::Dev | Self::Review | Self::Action | Self::Vault => &[],
        }
    }

    /// The role whose journal an entry of the log belongs to, by the entry's kind.
    pub fn of_entry(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.journal_kinds().contains(&kind))
    }

    /// Whether the answer of its sessions to the formula that we ship can be used.
    pub fn check_answer(self, result: Option<&serde_json::Value>) -> Result<(), String> {
        match self {
            Self::Gardener => gardener::Answer::of_result(result).map(drop).map_err(|unusable| unusable.0),
            Self::Planner => planner::Answer::of_result(result).map(drop).map_err(|unusable| unusable.0),
            // Theirs are read with what they are about, or not at all.
            Self::Dev | Self::Review | Self::Supervisor | Self::Predictor | Self::Action | Self::Vault => {
                Ok(())
            }
        }
    }

    /// A sentence if what the role remembers of a project cannot be read.
    pub fn check_memory(self, version: u32, text: &str) -> Result<(), String> {
        match self {
            Self::Gardener => gardener::Memory::read(version, text).map(drop),
            Self::Planner => planner::Memory::read(version, text).map(drop),
            Self::Predictor => predictor::Memory::read(version, text).map(drop),
            Self::Supervisor => health::Memory::read(version, text).map(drop),
            Self::Action => action::Memory::read(version, text).map(drop),
            Self::Dev | Self::Review | Self::Vault => Ok(()),
        }
    }

    /// The memory of the role in a project in which it has not done anything yet.
    pub fn new_memory(self) -> Memory {
        match self {
            Self::Gardener => Memory::Gardener(Box::default()),
            Self::Planner => Memory::Planner(Box::default()),
            Self::Predictor => Memory::Predictor(Box::default()),
            Self::Action => Memory::Action(Box::default()),
            Self::Supervisor => Memory::Supervisor(Box::default()),
            Self::Dev | Self::Review | Self::Vault => Memory::Nothing,
        }
    }

    /// Whether it writes lines of its own into the log.
    pub const fn keeps_journal(self) -> bool {
        !self.journal_kinds().is_empty()
    }

    /// Whether the issues that it files are predictions. What becomes of each then says whether the role is worth asking;
    /// the work of other roles is counted when it is done, and one mistake among it is no noise.
    pub const fn predicts(self) -> bool {
        match self {
            Self::Predictor => true,
            Self::Dev
            | Self::Review
            | Self::Gardener
            | Self::Supervisor
            | Self::Planner
            | Self::Action
            | Self::Vault => false,
        }
    }

    /// The results that the log tells of it, by name; what is not in the list nobody knows.
    pub const fn results(self) -> &'static [&'static str] {
        match self {
            Self::Dev => &["reverted"],
            Self::Gardener => {
                &["merged", "reverted", "dismissed", "false_alarms", "filed", "closed", "landed"]
            }
            Self::Planner => &["merged", "reverted", "dismissed", "filed", "landed"],
            Self::Predictor => &["dismissed", "false_alarms", "filed", "promoted", "watched"],
            Self::Supervisor => &["false_alarms"],
            Self::Review | Self::Action | Self::Vault => &[],
        }
    }

    /// The longest time that one of its runs may take.
    pub const fn lifetime(self, timing: &Timing) -> Span {
        match self {
            Self::Supervisor => timing.supervisor_session,
            Self::Action => timing.action_max_lifetime,
            Self::Vault => timing.vault_look,
            Self::Dev | Self::Review | Self::Gardener | Self::Planner | Self::Predictor => {
                timing.session_timeout
            }
        }
    }

    /// The time after which a run is given up whose session shows no sign of life. Most roles have only their lifetime.
    pub const fn idle_limit(self, timing: &Timing) -> Option<Span> {
        match self {
            Self::Action => Some(timing.action_idle_timeout),
            Self::Dev
            | Self::Review
            | Self::Gardener
            | Self::Supervisor
            | Self::Planner
            | Self::Predictor
            | Self::Vault => None,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(word: &str) -> Result<Self, UnknownRole> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == word);
        found.ok_or_else(|| UnknownRole(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::{FORMULA_PREFIX, Role};
    use crate::formula::shipped;

    #[test]
    fn a_role_is_the_same_word_everywhere() {
        for role in Role::ALL {
            let word = role.as_str();
            assert_eq!(serde_json::to_value(role).unwrap(), word);
            assert_eq!(serde_json::from_value::<Role>(word.into()).unwrap(), role);
            assert_eq!((word.parse(), role.to_string()), (Ok(role), word.to_owned()));
            assert_eq!(role.formula(), format!("{FORMULA_PREFIX}{word}"));
            assert!(shipped(role.formula()).is_some(), "{word} has no formula");
            assert_eq!(
                (Role::of_formula(role.formula()), Role::of_session(role.formula()).ok()),
                (role, None)
            );
            assert_eq!(Role::of_session(&format!("{word}-shop-7.1")), Ok(role));
        }
        assert_eq!(Role::of_formula("tidy"), Role::Action, "a project's own formula is an action");
        assert_eq!(Role::of_formula("run-tests"), Role::Action);
    }

    #[test]
    fn a_word_that_names_no_role_is_an_error_that_lists_them() {
        for word in ["", "Dev", "gardner", "run-dev"] {
            let error = word.parse::<Role>().unwrap_err().to_string();
            for role in Role::ALL {
                assert!(error.contains(role.as_str()), "{error} does not name {role}");
            }
            assert!(serde_json::from_value::<Role>(word.into()).is_err(), "{word:?}");
        }
    }

    #[test]
    fn an_entry_of_the_log_is_in_one_journal_at_most() {
        for role in Role::ALL {
            for kind in role.journal_kinds() {
                assert_eq!(Role::of_entry(kind), Some(role), "{kind}");
            }
            assert_eq!(role.keeps_journal(), role.looks_by_rules(), "{role}");
        }
        for kind in ["vault_looked", "schedule_looked", "gardener", "planner_"] {
            assert_eq!(Role::of_entry(kind), None, "{kind}");
        }
    }
}
