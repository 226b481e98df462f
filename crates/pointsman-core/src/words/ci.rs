//! CI: reasons why a red result is not the fault of the code, what stands in for a log that we do not have, and the
//! warning of a project without CI.

use crate::config::Config;
use crate::forge::{Check, CheckState};
use crate::text::clean_line;

pub const KILLED_BY_EXIT: &str = "exit 137 (killed, often because memory ran out)";
pub const KILLED_BY_SIGNAL: &str = "signal 9 (killed, often because memory ran out)";
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

/// The words of a CI outside about each check, and the end of the last log that was kept.
pub fn outside_log(checks: &[Check], log_end: &str) -> String {
    let line = |check: &Check| {
        let state = match check.state {
            CheckState::Success => "passed",
            CheckState::Failure => "failed",
            CheckState::Pending => "pending",
        };
        let details = clean_line(&check.details, 500);
        format!("{state:<8} {}\n         {details}", clean_line(&check.name, 200)).trim_end().to_owned()
    };
    let mut lines: Vec<String> = checks.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("The forge has no check for this commit yet.".to_owned());
    }
    if !log_end.trim().is_empty() {
        lines.push(format!("\nThe end of the last log that was kept:\n{log_end}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::outside_log;
    use crate::forge::{Check, CheckState};

    #[test]
    fn every_check_has_its_line_and_says_where_there_is_more() {
        let check = |name: &str, state, details: &str| Check {
            name: name.to_owned(),
            state,
            details: details.to_owned(),
        };
        let checks = [
            check("build", CheckState::Success, ""),
            check("test\n", CheckState::Failure, "2 failed https://ci.example.org/7"),
        ];
        let text = outside_log(&checks, "boom");
        assert!(
            text.starts_with("passed   build\nfailed   test\n         2 failed https://ci.example.org/7"),
            "{text}"
        );
        assert!(text.ends_with("that was kept:\nboom"), "{text}");
        assert!(outside_log(&[], "").contains("no check"));
    }
}
