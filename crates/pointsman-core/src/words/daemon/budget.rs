//! The part of a budget that is used.

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
    let whose = match whose {
        SpendingScope::Task => "for this task",
        SpendingScope::RoleOnTask => "by its role for this task",
        SpendingScope::Issue => "on this issue by all its sessions",
        SpendingScope::RoleOnIssue => "by its role on this issue",
        SpendingScope::Session => "by this session",
        SpendingScope::Day => "today",
        SpendingScope::RoleOnDay => "by its role today",
    };
    format!("{} spent {whose}", amount.unwrap_or("nothing"))
}

/// The unit of time in which nobody knew what was spent.
pub const OF_SILENT_SESSIONS: &str = "of sessions that tell nothing";
