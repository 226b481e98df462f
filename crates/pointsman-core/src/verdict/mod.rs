//! The cause of a failed CI run: the code, or the infrastructure.
//!
//! An infrastructure failure is retried and does not count as an attempt of the agent. A failure of the code goes to
//! the agent with its log. These count as infrastructure: a clone or git step that exits with 128, any exit with 137,
//! and network time-outs in the log. `patterns.rs` has the phrases. The daemon fetches logs and retries.

use crate::words;

mod checks;
mod patterns;
mod steps;

pub use checks::of_checks;
pub use steps::{FailedStep, of_steps};

use std::fmt;

use serde::{Deserialize, Serialize};

/// How much of a log's end is looked at: what broke a step is near its end, and logs can be huge.
pub const LOG_TAIL_BYTES: usize = 64 * 1024;

/// The kind of a failure. `Display` prints `infra <reason>` or `code`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "class", rename_all = "snake_case")]
pub enum Class {
    /// The machinery failed; trying again may help and nothing is held against the change.
    Infra {
        /// Why we think so, one line.
        reason: String,
    },
    Code,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Infra { reason } => write!(f, "infra {reason}"),
            Self::Code => f.write_str("code"),
        }
    }
}

/// Classifies a failed step by its name, how it ended and its log.
///
/// It is asked about failures only: for a step that exited with 0 the answer is [`Class::Code`] and
/// means nothing. In doubt the answer is `Code`, because a fault that is blamed on the machinery is
/// hidden from the agent that could repair it.
pub fn classify(step: &str, exit: Option<i32>, signal: Option<i32>, log: &str) -> Class {
    if exit == Some(0) {
        return Class::Code;
    }
    let reason = if exit == Some(137) {
        Some(words::ci::KILLED_BY_EXIT.to_owned())
    } else if signal == Some(9) {
        Some(words::ci::KILLED_BY_SIGNAL.to_owned())
    } else if exit == Some(128) && is_git_step(step) {
        Some(words::ci::REPOSITORY_UNREACHABLE.to_owned())
    } else {
        patterns::network_timeout(tail(log)).map(words::ci::network_timeout)
    };
    match reason {
        Some(reason) => Class::Infra { reason },
        None => Class::Code,
    }
}

/// Whether the step's name says that it fetches the repository.
fn is_git_step(step: &str) -> bool {
    let step = step.to_ascii_lowercase();
    step.contains("clone") || step.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "git")
}

/// The last [`LOG_TAIL_BYTES`] of the log, from a character's start.
fn tail(log: &str) -> &str {
    let mut from = log.len().saturating_sub(LOG_TAIL_BYTES);
    while !log.is_char_boundary(from) {
        from += 1;
    }
    &log[from..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `(step, exit, signal, log, expected)`
    type Case = (&'static str, Option<i32>, Option<i32>, &'static str, &'static str);

    #[test]
    fn exits_and_signals() {
        let cases: &[Case] = &[
            ("clone", Some(128), None, "", "infra"),
            ("git", Some(128), None, "", "infra"),
            ("git-fetch", Some(128), None, "", "infra"),
            ("Git Clone", Some(128), None, "", "infra"),
            ("gitclone", Some(128), None, "", "infra"),
            ("clone", Some(1), None, "", "code"),
            ("test", Some(128), None, "", "code"),
            ("gitleaks", Some(128), None, "", "code"),
            ("digit-tests", Some(128), None, "", "code"),
            ("test", Some(137), None, "", "infra"),
            ("clone", Some(137), None, "", "infra"),
            ("", Some(137), None, "", "infra"),
            ("test", None, Some(9), "", "infra"),
            ("test", None, Some(11), "", "code"),
            ("test", Some(139), None, "", "code"),
            ("test", Some(143), None, "", "code"),
            ("test", Some(124), None, "", "code"),
            ("test", Some(1), None, "", "code"),
            ("test", None, None, "", "code"),
            ("clone", Some(0), None, "connection timed out", "code"),
        ];
        for (step, exit, signal, log, expected) in cases {
            let class = classify(step, *exit, *signal, log).to_string();
            let kind = class.split(' ').next().unwrap();
            assert_eq!(kind, *expected, "{step:?} {exit:?} {signal:?} {log:?}: {class}");
        }
    }

    #[test]
    fn the_verdict_reads_as_scripts_expect_it() {
        let infra = classify("build", Some(1), None, "npm ERR! code ETIMEDOUT\n");
        assert_eq!(infra.to_string(), "infra time-out in the log (etimedout)");
        assert_eq!(classify("build", Some(1), None, "error[E0308]").to_string(), "code");
        assert_eq!(
            classify("clone", Some(128), None, "").to_string(),
            "infra exit 128 of a git step (repository not reachable)"
        );
    }

    #[test]
    fn only_the_end_of_a_log_counts() {
        let early = format!("connection timed out\n{}", "é".repeat(LOG_TAIL_BYTES));
        assert_eq!(classify("test", Some(1), None, &early), Class::Code);
        let late = format!("{}\nconnection timed out", "é".repeat(LOG_TAIL_BYTES));
        assert!(matches!(classify("test", Some(1), None, &late), Class::Infra { .. }));
    }

    proptest! {
        #[test]
        fn any_log_gets_a_one_line_verdict(step in ".{0,20}", exit in any::<Option<i32>>(), log in "(?s).{0,400}") {
            let verdict = classify(&step, exit, None, &log).to_string();
            prop_assert!(verdict == "code" || verdict.starts_with("infra "));
            prop_assert!(!verdict.chars().any(char::is_control));
        }
    }
}
