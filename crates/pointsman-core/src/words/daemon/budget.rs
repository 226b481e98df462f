//! The part of a budget that is used.

/// A budget that a sentence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    Task,
    RoleOnTask,
    Session,
    Day,
    RoleOnDay,
}

/// An amount, with the budget that it was taken from. Without a limit that counts, nothing was spent.
pub fn spent(amount: Option<&str>, whose: Whose) -> String {
    let whose = match whose {
        Whose::Task => "for this task",
        Whose::RoleOnTask => "by its role for this task",
        Whose::Session => "by this session",
        Whose::Day => "today",
        Whose::RoleOnDay => "by its role today",
    };
    format!("{} spent {whose}", amount.unwrap_or("nothing"))
}
