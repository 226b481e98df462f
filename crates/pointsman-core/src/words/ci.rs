//! CI: reasons why a red result is not the fault of the code, what stands in for a log that we do not have, and the
//! warning of a project without CI.

use crate::config::Config;

pub const KILLED_BY_EXIT: &str = "exit 137 (killed, often for want of memory)";
pub const KILLED_BY_SIGNAL: &str = "signal 9 (killed, often for want of memory)";
pub const REPOSITORY_UNREACHABLE: &str = "exit 128 of a git step (repository not reachable)";
/// The forge knows that a check of another CI failed, and nothing else.
pub const LOG_ELSEWHERE: &str = "The CI that reported it has the log.";

/// The sentence that nobody may miss in a project without CI: in `init`, in `status`, and in every review.
pub fn off(config: &Config) -> String {
    match config.gate() {
        Some(gate) => format!(
            "CI is off: this change is not tested before its review. Only the gate of the merge queue tests it ({}).",
            crate::text::clean_line(&gate.join(" "), 200)
        ),
        None => OFF.to_owned(),
    }
}

const OFF: &str = "CI is off: nothing tests a change before it lands. To turn CI on, set `kind = \"command\"` and \
                   `command` under [ci] in pointsman.toml.";

/// The network did not answer in time; `phrase` is how the log says it.
pub fn network_timeout(phrase: &str) -> String {
    format!("time-out in the log ({phrase})")
}
