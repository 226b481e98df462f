//! Reasons why a session does not start, and sentences about phase files that say too little.

use std::fmt::Display;
use std::path::Path;

use crate::config::PortRange;
use crate::ids::Number;

/// A launch file without a command.
pub fn no_program() -> &'static str {
    "an agent needs a program"
}

/// A parent process that has ended, so that nobody would end the program with it.
pub fn parent_is_gone() -> &'static str {
    "the process that keeps the session has ended"
}

/// A program that the system does not start.
pub fn cannot_start(program: &str, error: impl Display) -> String {
    format!("cannot start {program}: {error}")
}

/// On the terminal: the files of the session before this one are there, but not committed.
pub fn nothing_committed(why: impl Display) -> String {
    format!("pointsman: the previous session's work was not committed: {why}")
}

/// The end of a set-up, with the hosts that its sandbox refused.
pub fn setup_ended(end: impl Display, refused: &[String]) -> String {
    match refused {
        [] => end.to_string(),
        hosts => format!(
            "{end}; its sandbox refused {}; if it needs them, list them in sandbox.ci_hosts",
            hosts.join(", ")
        ),
    }
}

/// All ports of the range are taken.
pub fn no_free_ports(range: PortRange) -> String {
    format!("no ports in {range} are free: other tasks or programs use them")
}

/// A session that did not live until it was first looked for.
pub fn gone_at_once() -> &'static str {
    "the session ended as soon as it had started"
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

/// The reason why a program of an agent cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramTrouble<'p> {
    Missing,
    /// It is in the person's checkout, and not on the main branch that trees are made from.
    OnlyInCheckout,
    /// It is on the main branch by now, and not in this task's tree.
    TreeIsOlder,
    NotExecutable(&'p Path),
    NotExecutableInTree,
    /// Its first line names a program that is not there.
    NoInterpreter(&'p Path, &'p str),
}

/// The trouble with an agent's program, and the remedy.
pub fn program_trouble(program: &str, trouble: &ProgramTrouble<'_>, main: &str, issue: Number) -> String {
    let again = format!("then run `pointsman task restart {issue} --fresh`");
    match trouble {
        ProgramTrouble::Missing => agent_not_found(program),
        ProgramTrouble::OnlyInCheckout => format!(
            "the agent program {program} is in your checkout but not on {main} of the forge, where agents start from. \
             Commit it and run `pointsman sync`; {again}"
        ),
        ProgramTrouble::TreeIsOlder => format!(
            "the agent program {program} is on {main}, but the tree of this task is older. To start over from the \
                current {main}, run `pointsman task restart {issue} --fresh`"
        ),
        ProgramTrouble::NotExecutable(path) => program_not_executable(path),
        ProgramTrouble::NotExecutableInTree => format!(
            "the agent program {program} is on {main} but not executable. Run `chmod +x {program}`, commit it, and run \
             `pointsman sync`; {again}"
        ),
        ProgramTrouble::NoInterpreter(path, interpreter) => no_interpreter(path, interpreter),
    }
}

/// A file that is there and that nobody may run.
pub fn program_not_executable(path: &Path) -> String {
    format!("the agent program {} is not executable; run `chmod +x {}`", path.display(), path.display())
}

/// A script whose interpreter is not there.
pub fn no_interpreter(path: &Path, interpreter: &str) -> String {
    format!(
        "the agent program {} cannot run: its first line names {interpreter}, which is not installed",
        path.display()
    )
}

/// A linked worktree, whose branch is in our own repository.
pub fn linked_is_kept() -> &'static str {
    "a task with a linked worktree cannot start over; first set dev.worktree to \"private\""
}

/// The first line of a phase file that names no phase.
pub fn no_phase(line: &str) -> String {
    format!("`{line}` is not a phase")
}
