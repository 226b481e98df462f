//! A session's condition, for people who ask about it, and its own next steps, for the session that takes over.

use super::{rough, span};
use crate::ids::Number;
use crate::session::liveness::{DEATHS_NEEDED, Evidence, Probe, Rules};
use crate::session::work::WorkPhase;
use crate::time::Timestamp;

/// No set-up ever ran for a task.
pub fn no_setup_log(issue: Number) -> String {
    format!("no set-up has run for the working tree of issue {issue}; `[tree] setup` may be empty")
}

/// A program that failed without saying why.
pub const UNNAMED_ERROR: &str = "an error that it did not name";
/// A program that was ended by a signal.
pub const KILLED: &str = "killed";

/// A program that ended before it was through.
pub fn ended_early(code: i32) -> String {
    format!("exit code {code} without a result")
}

/// The evidence on which a session is believed to be alive or dead, a line each.
pub fn evidence(evidence: &Evidence, rules: &Rules, now: Timestamp) -> Vec<String> {
    let word = |sighting| match sighting {
        Probe::There => "is there",
        Probe::Gone => "is gone",
        Probe::Unseen => "could not be looked at",
    };
    let mut lines = vec![
        format!("the process (pid and start time) {}", word(evidence.process)),
        match evidence.terminal {
            Some(terminal) => format!("its terminal {}", word(terminal)),
            None => "it has no terminal: that process is its keeper, which runs its turns".to_owned(),
        },
        format!("last seen alive {} ago", rough(now.since(evidence.last_seen))),
    ];
    if evidence.times_gone > 0 {
        lines.push(format!("found gone {} of the {DEATHS_NEEDED} times a death needs", evidence.times_gone));
    }
    if evidence.times_stale > 0 {
        lines.push(format!("found stale {} of {} times", evidence.times_stale, rules.stale_looks));
    }
    if now.since(evidence.started_at) <= rules.start_grace {
        let grace = span(rules.start_grace);
        lines.push(format!("it started less than {grace} ago, which is too early to call it dead"));
    }
    lines
}

/// The next step of a session that takes over in this phase of the work.
pub fn resume(phase: WorkPhase) -> String {
    let next = match phase {
        WorkPhase::Investigation => "read the issue and the code it is about",
        WorkPhase::Planning => "finish the plan, then change the code",
        WorkPhase::Implementation => "read git diff, then continue changing the code",
        WorkPhase::Testing => "run the tests and see what fails",
        WorkPhase::Completion => "check that everything is committed and pushed, then write the phase",
        WorkPhase::Merged => "nothing: the work is on the main branch",
    };
    let skip = match phase {
        WorkPhase::Investigation | WorkPhase::Merged => "",
        WorkPhase::Planning | WorkPhase::Implementation | WorkPhase::Testing | WorkPhase::Completion => {
            " Everything before that has been done; do not repeat it."
        }
    };
    format!("Resume from phase: {phase}. Next: {next}.{skip}")
}
