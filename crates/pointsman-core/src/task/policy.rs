//! The numbers and switches that `step` decides by: a project's configuration, seen from a task.

use std::time::Duration;

use crate::config;
use crate::part::contribution::{self, Approvals, ReviewMode};
use crate::part::question;
use crate::part::session;

/// The part of the configuration that `step` needs.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Whether there is a CI at all.
    pub has_ci: bool,
    pub review: ReviewMode,
    pub approvals: Approvals,
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
    /// Whether a person has to accept a plan before any work is taken.
    pub plan: bool,
    /// The numbers for its sessions.
    pub session: session::Policy,
}

impl Policy {
    /// The numbers for questions.
    pub fn question(&self) -> question::Policy {
        question::Policy { remind: self.escalation_renotify, timeout: self.escalation_timeout }
    }

    /// The numbers for its contribution.
    pub fn contribution(&self) -> contribution::Policy {
        contribution::Policy {
            has_ci: self.has_ci,
            review: self.review,
            approvals: self.approvals,
            ci_timeout: self.ci_timeout,
            review_timeout: self.review_timeout,
            queue_timeout: self.queue_timeout,
            ci_fixes: self.ci_fixes,
            review_rounds: self.review_rounds,
            infra_retries: self.infra_retries,
            merge_conflicts: self.merge_conflicts,
        }
    }

    /// The policy of a project, by its configuration.
    pub fn new(config: &config::Config) -> Self {
        let (timing, limits) = (&config.timing, &config.limits);
        let contribution = contribution::Policy::new(config);
        Self {
            has_ci: contribution.has_ci,
            review: contribution.review,
            approvals: contribution.approvals,
            ci_timeout: contribution.ci_timeout,
            review_timeout: contribution.review_timeout,
            escalation_renotify: timing.escalation_renotify.into(),
            escalation_timeout: timing.escalation_timeout.into(),
            queue_timeout: contribution.queue_timeout,
            session_timeout: timing.session_timeout.into(),
            done_grace: timing.done_grace.into(),
            ci_fixes: contribution.ci_fixes,
            review_rounds: contribution.review_rounds,
            infra_retries: contribution.infra_retries,
            merge_conflicts: contribution.merge_conflicts,
            premature_done: limits.premature_done,
            plan: config.dev.plan,
            session: session::Policy::new(config),
        }
    }
}
