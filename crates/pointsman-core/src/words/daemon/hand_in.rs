//! Reasons why files that a role handed in have to wait or are not wanted.

/// A pull request that has to wait until the forge accepts its branch.
pub fn not_opened_yet(why: &str) -> String {
    format!("it is not opened yet: {why}")
}

/// A run whose changes cannot be told from what was there before it.
pub fn no_base() -> &'static str {
    "the commit that the run started from is not recorded"
}
