//! Reactions to CI, and what they cost.

use super::{Draft, Refused};
use crate::ids::Sha;
use crate::task::effect::{Effect, Exit, Headline};
use crate::task::event::CiVerdict;
use crate::task::policy::ReviewMode;
use crate::task::state::{Ci, EscalationCause, Review, State};
use crate::words;

impl Draft<'_> {
    pub(super) fn run_checks(&mut self, sha: Sha) {
        self.enter(State::AwaitingCi);
        self.task.ci_run += 1;
        let run = self.task.ci_run;
        self.task.ci = Ci::Pending { sha: sha.clone(), run };
        self.order(Effect::RunChecks { sha, run });
    }

    /// A runner was free: only now does the clock of the time-out start.
    pub(super) fn checks_started(&mut self, sha: &Sha) -> Result<(), Refused> {
        if self.task.state != State::AwaitingCi
            || !matches!(&self.task.ci, Ci::Pending { sha: s, .. } if s == sha)
        {
            return Err(Refused::Stale(words::task::ci_not_awaited(sha, None)));
        }
        self.task.deadline = Some(self.now.after(self.policy.ci_timeout));
        Ok(())
    }

    pub(super) fn checks_finished(
        &mut self,
        sha: &Sha,
        run: u32,
        verdict: &CiVerdict,
    ) -> Result<(), Refused> {
        let expected = match &self.task.ci {
            Ci::Pending { sha: s, run: r } => s == sha && *r == run,
            // A late answer is still an answer.
            Ci::TimedOut { sha: s } => s == sha && run == self.task.ci_run,
            Ci::None | Ci::Passed { .. } | Ci::Failed { .. } => false,
        };
        if !expected {
            return Err(Refused::Stale(words::task::ci_not_awaited(sha, Some(run))));
        }
        self.order(Effect::RecordCiResult { text: words::message::ci_result(sha, verdict) });
        let decides = match self.task.state {
            State::AwaitingCi => true,
            State::Escalated => self.task.escalation.as_ref().is_some_and(|e| e.cause == EscalationCause::Ci),
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingReview
            | State::MergeQueue
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Merged
            | State::Closed => false,
        };
        self.task.ci_log_end = match verdict {
            CiVerdict::Passed => String::new(),
            CiVerdict::Failed { log, .. } | CiVerdict::Infra { log, .. } | CiVerdict::TimedOut { log } => {
                words::notice::log_end(log)
            }
        };
        match verdict {
            CiVerdict::Passed => {
                self.task.ci = Ci::Passed { sha: sha.clone() };
                if decides {
                    self.tell(Headline::CiPassed, words::message::ci_passed(sha, self.policy.review));
                    self.green(sha);
                }
            }
            CiVerdict::Failed { summary, log } => {
                self.task.ci = Ci::Failed { sha: sha.clone(), infra: false, summary: summary.clone() };
                if decides {
                    self.hand_back_red(summary.clone(), words::message::ci_failed(sha, summary, log));
                }
            }
            CiVerdict::Infra { reason, .. } => {
                self.task.ci = Ci::Failed { sha: sha.clone(), infra: true, summary: reason.clone() };
                if decides {
                    self.infra_trouble(sha, reason);
                }
            }
            CiVerdict::TimedOut { .. } => {
                if decides {
                    self.ci_timed_out(sha.clone());
                } else {
                    self.task.ci = Ci::TimedOut { sha: sha.clone() };
                }
            }
        }
        Ok(())
    }

    /// Whether CI has nothing to say about this commit any more: it passed, or there is no CI. Without CI nothing is
    /// recorded, so that nobody reads that CI passed.
    pub(super) fn needs_no_ci(&self, head: &Sha) -> bool {
        !self.policy.has_ci || self.task.ci.passed(head)
    }

    /// The head is green: on to the reviewer, or to the merge queue if there is nobody to ask.
    pub(super) fn green(&mut self, head: &Sha) {
        let approved = matches!(&self.task.review, Review::Approved { sha, .. } if sha == head);
        if self.policy.review == ReviewMode::None || approved {
            self.enter(State::MergeQueue);
            self.order(Effect::Enqueue { head: head.clone() });
        } else if self.task.state != State::AwaitingReview {
            self.enter(State::AwaitingReview);
            self.order(Effect::RequestReview { sha: head.clone() });
        }
    }

    /// The agent has something to fix, as often as it is allowed to.
    pub(super) fn hand_back_red(&mut self, summary: String, words: (String, String)) {
        self.task.attempts.ci_fixes += 1;
        if self.task.attempts.ci_fixes > self.policy.ci_fixes {
            self.fail(words::reason::ci_exhausted(self.policy.ci_fixes, &summary), Exit::Exhausted);
            return;
        }
        self.enter(State::Working);
        self.tell(Headline::CiFailed, words);
    }

    /// Neither red nor green: tried again without costing a fix, then a person is asked. The agent
    /// cannot mend infrastructure.
    fn infra_trouble(&mut self, sha: &Sha, reason: &str) {
        if self.task.attempts.infra_retries < self.policy.infra_retries {
            self.task.attempts.infra_retries += 1;
            self.run_checks(sha.clone());
        } else {
            self.escalate(EscalationCause::Ci, words::reason::infra(reason));
        }
    }

    pub(super) fn ci_timed_out(&mut self, sha: Sha) {
        let words = words::message::ci_timeout(&sha, self.policy.ci_timeout);
        self.task.ci = Ci::TimedOut { sha };
        self.tell(Headline::CiTimeout, words);
        self.escalate(EscalationCause::Ci, words::reason::ci_timeout(self.policy.ci_timeout));
    }
}
