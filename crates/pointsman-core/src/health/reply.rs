//! The meaning of people's answers to the supervisor.

use super::{Finding, Kind, Memory};
use crate::chat::{Command, Reply};
use crate::config::Config;
use crate::ids::Number;
use crate::time::Timestamp;

/// The response to a person's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A warning is not told until then.
    Ignore {
        kind: Kind,
        until: Timestamp,
    },
    /// The task's session is ended; its work is kept.
    Stop {
        issue: Number,
    },
    /// There is nobody or more than one who could be meant.
    WhichAgent {
        issues: Vec<Number>,
    },
    /// There is no such warning.
    WhichWarning,
    /// It is said how things stand.
    Tell,
    NoCommand,
}

/// Decides. `has_session` tells whether a task of the project has a session that could be ended; nothing else ever is.
pub fn hear(
    reply: &Reply,
    memory: &Memory,
    has_session: impl Fn(Number) -> bool,
    config: &Config,
    now: Timestamp,
) -> Verdict {
    let Reply::Command { command } = reply else { return Verdict::NoCommand };
    match command {
        Command::Ignore { what } => match Kind::parse(what) {
            Some(kind) => Verdict::Ignore { kind, until: now.after(config.health.ignore_for.duration()) },
            None => Verdict::WhichWarning,
        },
        Command::Kill => {
            // "That agent" is the one that the last report was about.
            let told = memory.findings.iter().filter(|finding| memory.told.contains(&finding.key()));
            let mut issues: Vec<Number> =
                told.filter_map(Finding::task).filter(|issue| has_session(*issue)).collect();
            issues.sort_unstable();
            issues.dedup();
            match issues.as_slice() {
                [only] => Verdict::Stop { issue: *only },
                _ => Verdict::WhichAgent { issues },
            }
        }
        Command::Stuck | Command::Status | Command::Help => Verdict::Tell,
        Command::Approve { .. }
        | Command::Reject { .. }
        | Command::Pause
        | Command::Resume
        | Command::Unknown { .. } => Verdict::NoCommand,
    }
}
