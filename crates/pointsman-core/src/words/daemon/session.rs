//! Reasons why a session does not start, and sentences about phase files that say too little.

use std::fmt::Display;
use std::path::Path;

/// A launch file without a command.
pub fn no_program() -> &'static str {
    "an agent needs a program"
}

/// A parent process that has ended, so that nobody would end the program with it.
pub fn parent_is_gone() -> &'static str {
    "the process that should keep the session is gone"
}

/// A program that the system does not start.
pub fn cannot_start(program: &str, error: impl Display) -> String {
    format!("cannot start {program}: {error}")
}

/// On the terminal: the files of the session before this one are there, but not committed.
pub fn nothing_committed(why: impl Display) -> String {
    format!("pointsman: nothing was committed for the session before this one: {why}")
}

/// A session that did not live until it was first looked for.
pub fn gone_at_once() -> &'static str {
    "the session was gone as soon as it was started"
}

/// A phase file that somebody else has put something in place of.
pub fn phase_file_unusable(file: &Path, why: impl Display) -> String {
    format!("{} cannot be used: {why}", file.display())
}

/// A program that is not on the path.
pub fn program_not_found(program: &str) -> String {
    format!("the agent program {program} is not found")
}

/// A dev agent's program that is not on the path, and what to do.
pub fn agent_not_found(program: &str) -> String {
    format!("{}: install it, or set [agent] command in pointsman.toml", program_not_found(program))
}

/// The first line of a phase file that names no phase.
pub fn no_phase(line: &str) -> String {
    format!("`{line}` is no phase")
}

/// A session that asks for a person or gives up without saying why.
pub fn no_reason_given() -> &'static str {
    "no reason was given"
}
