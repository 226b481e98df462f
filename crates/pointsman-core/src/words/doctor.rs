//! Sentences of `doctor` and `agent check` about the way of a task in a copy.

use std::path::Path;

/// The title of the issue in the copy.
pub const ISSUE: &str = "Try the way of a task";

/// The issue for a program that follows a script.
pub const SCRIPT: &str = "```text\nrehearsal:begin\nwrite pointsman-check ok\\n\ncommit Try the way of a task\npush\n\
    phase awaiting_ci\nexpect CI\nphase awaiting_review\nexpect Merged\nphase done\nrehearsal:end\n```\n";

/// The issue for an agent with a model.
pub const FOR_AGENTS: &str = "This checks your surroundings in a throw-away copy of the project. Do exactly this and nothing else:\n\n\
    1. Create a file `pointsman-check` with the text `ok` and commit it.\n\
    2. Run `git push origin HEAD`.\n\
    3. Write the line `PHASE:awaiting_ci` to the file that `$PHASE_FILE` names, and end your turn.\n\n\
    When you are told that CI passed, write the line `PHASE:awaiting_review` to that file and end your turn.\n";

/// Progress: the copy is being made.
pub const TRYING: &str = "Running a task in a copy of the project …";
/// Progress: CI runs in the copy.
pub const RUNNING_CI: &str = "The branch is pushed. Running CI on it …";
/// Progress: a real agent works.
pub const AGENT_WORKS: &str =
    "Your agent is working on an issue in a copy of the project. This uses a few tokens …";
/// Progress: the session is stopped and resumed.
pub const AGENT_STOPS: &str = "Stopping the session and resuming it …";

/// The whole way was not tried.
pub const NOT_TRIED: &str = "the task in a copy was skipped, because a check above failed";
/// The advice for that.
pub const NOT_TRIED_FIX: &str = "fix that first, then run `pointsman doctor` again";
/// The advice if the copy cannot be made or its daemon does not start.
pub const COPY_FIX: &str = "try `pointsman demo`, which does the same without your project; if it works, the \
    problem is in the repository or pointsman.toml";

/// The daemon of the copy ended or hangs.
pub fn copy_not_ready(last_line: &str) -> String {
    format!("the daemon of the copy did not start: {last_line}")
}

/// A tree and a session in it.
pub fn session_works(seconds: f64, inside: bool) -> String {
    let place = if inside { "inside the sandbox" } else { "without a sandbox" };
    format!("a session got a working tree of main and pushed a branch, {place}, after {seconds:.1} s")
}

/// A message there, an answer back.
pub fn message_works(seconds: f64) -> String {
    format!("a message reached the session and was answered after {seconds:.1} s")
}

/// CI is green.
pub fn ci_is_green(command: &str) -> String {
    format!("{command} is green on main")
}

/// CI is red.
pub fn ci_is_red(command: &str, last_line: &str) -> String {
    format!("{command} is red on main; its last line: {last_line}")
}

/// The advice for a red CI.
pub const CI_IS_RED_FIX: &str = "no branch lands until CI is green. Fix main and run `pointsman sync`, or let the \
    first issue fix it. If CI needs a host, run `pointsman sandbox learn`";

/// There is no CI on this machine to run.
pub const CI_ELSEWHERE: &str = "CI does not run on this machine, so it was not tried";
/// There is no CI at all.
pub const NO_CI: &str = "there is no CI, so whatever is pushed and approved lands untested";
/// The advice for that.
pub const NO_CI_FIX: &str = "set [ci] command in pointsman.toml";

/// The branch landed.
pub const LANDED: &str = "the branch landed on main of the copy";

/// The way ended early.
pub fn stuck(state: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("the task in the copy is {state}: {reason}"),
        None => format!("the task in the copy is still {state} after the time limit"),
    }
}

/// The advice for that.
pub const STUCK_FIX: &str = "your own tasks would stop there as well";

/// The agent program is in the checkout only.
pub fn only_in_checkout(program: &str, main: &str) -> String {
    format!(
        "the agent program {program} is in your checkout but not on {main} of the forge, where agents start from"
    )
}

/// The agent program is on main without its executable bit.
pub fn not_executable_on_main(program: &str, main: &str) -> String {
    format!("the agent program {program} is on {main} of the forge, but not executable there")
}

/// The advice for a program that main lacks.
pub fn commit_it(program: &str) -> String {
    format!("run `chmod +x {program}`, commit it and run `pointsman sync`")
}

/// The advice for a file that nobody may run. One that is in the checkout has to reach main as well.
pub fn make_executable(program: &str, path: &Path) -> String {
    match program.contains('/') && !program.starts_with('/') {
        true => commit_it(program),
        false => format!("chmod +x {}", path.display()),
    }
}

/// Everybody who lands needs this.
pub fn main_can_be_pushed(path: &Path) -> String {
    format!("{} can be written, so branches can land", path.display())
}

/// Landing would fail.
pub fn main_cannot_be_pushed(path: &Path, error: &str) -> String {
    format!("{} cannot be written, so nothing can land: {error}", path.display())
}

/// The results of `agent check`, by what was looked at.
pub mod agent {
    /// The session runs.
    pub fn started(program: &str, inside: bool) -> String {
        let place = if inside { "inside the sandbox" } else { "without a sandbox" };
        format!("{program} started {place}")
    }

    /// The first prompt was understood.
    pub const PROMPT: &str = "it read its first prompt, pushed a branch and wrote a phase";
    pub const NO_PROMPT: &str = "it did not write a phase";
    pub const HOOK: &str = "its hooks report to the daemon";
    pub const NO_HOOK: &str = "none of its hooks has reported";
    pub const HOOK_FIX: &str = "`pointsman doctor` names settings that turn hooks off";
    pub const NO_HOOKS_NEEDED: &str = "this kind of agent has no hooks";
    pub const MESSAGE: &str = "it acknowledged a message";
    pub const ANSWERED: &str = "it answered a message with a phase; it does not acknowledge (pointsman ack)";
    pub const NO_MESSAGE: &str = "it did not answer the message that CI passed";
    pub const STOPPED: &str = "it ended when its session was stopped";
    pub const NOT_STOPPED: &str = "its session did not end when it was stopped";
    pub const RESUMED: &str = "a new session continued in the same tree";
    pub const NOT_RESUMED: &str = "no new session started when the task was resumed";
    pub const NO_TOKENS: &str = "it did not report its tokens, so budgets are not enforced";
    pub const NO_TOKENS_KNOWN: &str =
        "this kind of agent does not report its tokens, so budgets are not enforced";
    pub const FIX: &str =
        "run it by hand in a clone to see what it prints, then run `pointsman agent check` again";

    /// The tokens it reported.
    pub fn tokens(tokens: u64) -> String {
        format!("it used {tokens} tokens")
    }

    /// A step that could not be tried.
    pub const NOT_REACHED: &str = "skipped, because an earlier step failed";
}
