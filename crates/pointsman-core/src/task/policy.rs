//! The numbers and switches that `step` decides by: a project's configuration, seen from a task.

use std::time::Duration;

/// Who decides whether a change may land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewMode {
    /// A person, on the forge.
    Human,
    /// A program of the project's own.
    Command,
    /// Nobody: green is enough.
    None,
}

/// What `step` needs to know of the configuration.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether there is a CI at all.
    pub has_ci: bool,
    /// Who reviews.
    pub review: ReviewMode,
    /// No answer from CI for this long is a time-out.
    pub ci_timeout: Duration,
    /// No review for this long is a time-out.
    pub review_timeout: Duration,
    /// People are asked again this often.
    pub escalation_renotify: Duration,
    /// Then the task is blocked.
    pub escalation_timeout: Duration,
    /// A working session that writes no phase for this long is replaced.
    pub session_timeout: Duration,
    /// After the merge the agent has this long to say done.
    pub done_grace: Duration,
    /// The first restart is held back this long from the second crash on; doubles each time.
    pub restart_backoff: Duration,
    /// But never longer than this.
    pub restart_backoff_max: Duration,
    /// CI failures handed to the agent.
    pub ci_fixes: u32,
    /// Change requests handed to the agent.
    pub review_rounds: u32,
    /// Infrastructure failures retried per head.
    pub infra_retries: u32,
    /// Looks at an idle prompt before the session is given up.
    pub idle_looks: u32,
    /// Sessions started because one died.
    pub restarts: u32,
    /// Merge conflicts handed to the agent.
    pub merge_conflicts: u32,
    /// `done` claimed without a merge.
    pub premature_done: u32,
}
