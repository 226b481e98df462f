//! Reasons why a red CI is not the fault of the code, and what stands in for a log that we do not have.

pub const KILLED_BY_EXIT: &str = "exit 137 (killed, often for want of memory)";
pub const KILLED_BY_SIGNAL: &str = "signal 9 (killed, often for want of memory)";
pub const REPOSITORY_UNREACHABLE: &str = "exit 128 of a git step (repository not reachable)";
/// The forge knows that a check of another CI failed, and nothing else.
pub const LOG_ELSEWHERE: &str = "The CI that reported it has the log.";

/// The network did not answer in time; `phrase` is how the log says it.
pub fn network_timeout(phrase: &str) -> String {
    format!("time-out in the log ({phrase})")
}
