//! The numbers and switches that `step` decides by: a project's configuration, seen from a task.

use std::time::Duration;

use crate::config;
use crate::part::session;

/// The judge of whether a change may land.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewMode {
    /// A person, on the forge.
    Human,
    /// A program of the project's own.
    Command,
    None,
}

/// The part of the configuration that `step` needs.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether there is a CI at all.
    pub has_ci: bool,
    pub review: ReviewMode,
    /// No answer from CI for this long is a time-out.
    pub ci_timeout: Duration,
    /// No review for this long is a time-out.
    pub review_timeout: Duration,
    /// People are asked again this often.
    pub escalation_renotify: Duration,
    /// Then the task is blocked.
    pub escalation_timeout: Duration,
    pub queue_timeout: Duration,
    /// A working session that writes no phase for this long is replaced.
    pub session_timeout: Duration,
    /// After the merge the agent has this long to say done.
    pub done_grace: Duration,
    /// CI failures handed to the agent.
    pub ci_fixes: u32,
    /// Change requests handed to the agent.
    pub review_rounds: u32,
    /// Infrastructure failures retried per head.
    pub infra_retries: u32,
    /// Merge conflicts handed to the agent.
    pub merge_conflicts: u32,
    /// `done` claimed without a merge.
    pub premature_done: u32,
    /// The numbers for its sessions.
    pub session: session::Policy,
}

impl Policy {
    /// The policy of a project, by its configuration.
    pub fn new(config: &config::Config) -> Self {
        let (timing, limits) = (&config.timing, &config.limits);
        let review = match config.review.mode {
            config::ReviewMode::None => ReviewMode::None,
            config::ReviewMode::Human => ReviewMode::Human,
            config::ReviewMode::Agent => ReviewMode::Command,
        };
        Self {
            has_ci: config.ci.kind.tests_commits(),
            review,
            ci_timeout: timing.ci_timeout.into(),
            review_timeout: timing.review_timeout.into(),
            escalation_renotify: timing.escalation_renotify.into(),
            escalation_timeout: timing.escalation_timeout.into(),
            queue_timeout: timing.queue_timeout.into(),
            session_timeout: timing.session_timeout.into(),
            done_grace: timing.done_grace.into(),
            ci_fixes: limits.ci_fixes,
            review_rounds: limits.review_rounds,
            infra_retries: limits.infra_retries,
            merge_conflicts: limits.merge_conflicts,
            premature_done: limits.premature_done,
            session: session::Policy::new(config),
        }
    }
}
