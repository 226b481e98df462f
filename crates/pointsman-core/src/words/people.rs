//! Sentences about people and their accounts.

use crate::text::clean_line;

pub const NOT_A_NAME: &str = "a person's name is one line of at most 255 bytes";

pub const NOT_AN_ACCOUNT: &str = "the name of an account is one line of at most 255 bytes";

/// An account stands with two people.
pub fn account_is_taken(account: &str, owner: &str) -> String {
    format!("`{}` already belongs to {}", clean_line(account, 100), clean_line(owner, 100))
}

/// More approvals are asked for than there are people.
pub fn too_few(key: &str, value: &str, wanted: u32, named: u32) -> String {
    let people = match named {
        0 => "nobody".to_owned(),
        1 => "one person".to_owned(),
        n => format!("{n} people"),
    };
    format!(
        "{key} = {value} cannot be met: [people] of the machine's file names {people}. Name at least {wanted} there"
    )
}

/// A person of a project's configuration is not among those of the machine.
pub fn not_named(person: &str) -> String {
    format!(
        "vault.people names {}, who is not in [people] of the machine's file. Use the names that stand there",
        clean_line(person, 100)
    )
}

/// Some of the people who have to approve have done so.
pub fn approved_so_far(by: &[String], needed: usize) -> String {
    let names: Vec<String> = by.iter().map(|name| clean_line(name, 100)).collect();
    format!("{} of {needed} approvals: {}", by.len(), names.join(", "))
}

/// Somebody decides who is not among the people of this machine.
pub fn not_listed(name: &str) -> String {
    format!(
        "{} is not in [people] of the machine's file, so this is not yours to decide",
        clean_line(name, 100)
    )
}
