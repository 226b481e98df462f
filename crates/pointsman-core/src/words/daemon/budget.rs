//! The part of a budget that is used.

use crate::ids::Number;
use crate::role::Role;

/// A budget that a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendingScope {
    Task,
    RoleOnTask,
    Issue,
    RoleOnIssue,
    Session,
    Day,
    RoleOnDay,
}

/// An amount, with the budget that it was taken from. Without a limit that counts, nothing was spent.
pub fn spent(amount: Option<&str>, whose: SpendingScope) -> String {
    format!("{} spent {}", amount.unwrap_or("nothing"), whose.words())
}

impl SpendingScope {
    fn words(self) -> &'static str {
        match self {
            Self::Task => "for this task",
            Self::RoleOnTask => "by its role for this task",
            Self::Issue => "on this issue by all its sessions",
            Self::RoleOnIssue => "by its role on this issue",
            Self::Session => "by this session",
            Self::Day => "today",
            Self::RoleOnDay => "by its role today",
        }
    }

    /// The budget as a question names it: "the budget of the task on issue #3".
    pub fn of(self, role: Role, issue: Option<Number>, day: &str) -> String {
        let issue = issue.map(|issue| format!(" #{issue}")).unwrap_or_default();
        match self {
            Self::Task => format!("of the task on issue{issue}"),
            Self::RoleOnTask => format!("of the role {role} for the task on issue{issue}"),
            Self::Issue => format!("of issue{issue}, for all its sessions together,"),
            Self::RoleOnIssue => format!("of the role {role} for issue{issue}"),
            Self::Session => format!("of a session of the role {role} on issue{issue}"),
            Self::Day => format!("of the day {day}, for all roles together,"),
            Self::RoleOnDay => format!("of the role {role} for the day {day}"),
        }
    }
}

/// The unit of time in which nobody knew what was spent.
pub const OF_SILENT_SESSIONS: &str = "of sessions that tell nothing";
