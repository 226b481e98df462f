//! Reasons why files that a role handed in have to wait or are not wanted.

/// A pull request that has to wait until the forge accepts its branch.
pub fn not_opened_yet(why: &str) -> String {
    format!("it is not opened yet: {why}")
}

/// An entry that left the merge queue and did not say why.
pub fn no_reason() -> &'static str {
    "it gave no reason"
}

/// The reason of an entry that nobody wants to land any more.
pub fn not_wanted() -> &'static str {
    "its pull request is closed, or not approved any more"
}

/// A run whose changes cannot be told from what was there before it.
pub fn no_base() -> &'static str {
    "the commit that the run began from is not recorded"
}
