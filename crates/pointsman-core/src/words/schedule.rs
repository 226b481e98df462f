//! Reasons why a scheduled run did not begin, as `pointsman schedule` shows them.

pub const MISSED: &str = "it was missed while no daemon was running";
pub const STILL_RUNNING: &str = "the previous run is still in progress";
pub const NOTHING_CHANGED: &str = "nothing has changed since the last run";

/// The money or tokens of a day are spent.
pub fn budget(budget: &str) -> String {
    format!("a budget is used up: {budget}")
}

/// A session more would be too much for the machine.
pub fn short_of_memory(free: u64, least: u64) -> String {
    format!("only {free} MB of memory are free, less than {least} MB")
}
