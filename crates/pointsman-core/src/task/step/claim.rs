//! Phases the agent claims. A claim only asks us to look; the facts decide.

use super::{Draft, Refused};
use crate::ids::Sha;
use crate::part::session::Stage;
use crate::session::trouble::OutsideTrouble;
use crate::task::effect::{Effect, Exit, Headline};
use crate::task::event::PrFact;
use crate::task::phase::{Phase, Refusal};
use crate::task::state::{Ci, EscalationCause, Review, State};
use crate::words;

impl Draft<'_> {
    pub(super) fn phase_claimed(
        &mut self,
        generation: u32,
        phase: Phase,
        reason: Option<&str>,
        refusal: Option<&Refusal>,
    ) -> Result<(), Refused> {
        self.task.session.is_current(generation)?;
        if self.task.state == State::Paused {
            // Said while the session was on its way out: looked into when the task goes on.
            self.task.phase = Some(phase);
            self.task.handed_in = matches!(phase, Phase::AwaitingCi | Phase::AwaitingReview);
            return Ok(());
        }
        if !self.task.state.has_session() {
            return Err(Refused::NotNow(words::task::refused::takes_no_phase(self.task.state)));
        }
        self.task.phase = Some(phase);
        self.task.session.idle_looks = 0;
        self.task.session.parked_until = None;
        if self.task.state == State::Merged {
            // On the main branch already: whatever the agent claims now, there is nothing left to do.
            if matches!(phase, Phase::Done | Phase::Failed) {
                self.finish();
            }
            return Ok(());
        }
        self.react(phase, reason, refusal);
        if self.ends_exhausted() {
            return Ok(());
        }
        if self.task.session.stage == Stage::Alive {
            self.order(Effect::Checkpoint { why: format!("phase {phase}") });
        }
        Ok(())
    }

    fn react(&mut self, phase: Phase, reason: Option<&str>, refusal: Option<&Refusal>) {
        match phase {
            Phase::AwaitingCi | Phase::AwaitingReview => {
                if matches!(self.task.state, State::Working | State::Escalated) && !self.waits_for_reviewer()
                {
                    self.await_ci();
                }
                self.order(Effect::SyncBranch);
            }
            Phase::Escalate => {
                let reason = reason.unwrap_or(words::reason::NONE_GIVEN);
                self.leave_queue();
                self.escalate(EscalationCause::Agent, reason.to_owned());
            }
            Phase::Done => {
                if self.task.state == State::Working {
                    self.enter(State::Working);
                }
                self.order(Effect::VerifyMerge);
            }
            Phase::Failed => match (refusal, reason.and_then(|r| OutsideTrouble::parse(r, self.now))) {
                (Some(refusal), _) => self.refuse(refusal.clone()),
                (None, Some(trouble)) => self.park(&trouble),
                (None, None) => {
                    let reason = reason.unwrap_or(words::reason::NONE_GIVEN);
                    self.fail(words::reason::agent_failed(reason), Exit::Failed);
                }
            },
        }
    }

    fn await_ci(&mut self) {
        self.enter(State::AwaitingCi);
        // CI has its own clock; bringing the branch to a forge that is down may take longer.
        self.task.deadline = Some(self.now.after(self.policy.session_timeout));
    }

    /// Whether a person was asked about the review of this very commit. That an agent hands it in once more answers
    /// nothing, and the reviewer must not be asked again for it.
    fn waits_for_reviewer(&self) -> bool {
        self.task.state == State::Escalated
            && self.task.escalation.as_ref().is_some_and(|e| e.cause == EscalationCause::Review)
    }

    pub(super) fn phase_rejected(&mut self, generation: u32, why: &str) -> Result<(), Refused> {
        self.task.session.is_current(generation)?;
        let reason = words::reason::phase_rejected(why);
        self.notify(words::notice::phase_rejected(&self.task, &reason));
        self.task.reason = Some(reason);
        Ok(())
    }

    /// The branch is on the forge as `head`: everything about it is decided here.
    pub(super) fn branch_synced(&mut self, head: Option<&Sha>) -> Result<(), Refused> {
        match self.task.state {
            State::AwaitingCi | State::AwaitingReview | State::MergeQueue => {}
            State::Escalated if self.waits_for_reviewer() => {
                if head.is_none() || head == self.task.head.as_ref() {
                    return Ok(());
                }
                self.await_ci();
            }
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::Escalated
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Merged
            | State::Closed => {
                return Err(Refused::NotNow(words::task::refused::waits_for_no_branch(self.task.state)));
            }
        }
        let Some(head) = head else {
            self.leave_queue();
            self.hand_back_red(words::reason::NOTHING_PUSHED.to_owned(), words::message::nothing_pushed());
            return Ok(());
        };
        if self.task.head.as_ref() != Some(head) {
            self.leave_queue();
            self.task.head = Some(head.clone());
            self.task.ci = Ci::None;
            self.task.attempts.infra_retries = 0;
            // An approval is bound to a commit: any push voids it.
            self.task.review = Review::None;
        } else if self.task.state == State::MergeQueue {
            return Ok(());
        } else if matches!(&self.task.review, Review::ChangesRequested { sha, .. } if sha == head) {
            // Nothing was pushed since the reviewer wanted changes: the agent still has them to make.
            self.enter(State::Working);
            return Ok(());
        }
        if self.task.pr.is_none() {
            self.order(Effect::OpenPullRequest);
        }
        let head = head.clone();
        if self.needs_no_ci(&head) {
            self.green(&head);
        } else if !matches!(&self.task.ci, Ci::Pending { sha, .. } if *sha == head) {
            self.run_checks(head);
        }
        Ok(())
    }

    pub(super) fn head_moved(&mut self) -> Result<(), Refused> {
        match self.task.state {
            State::AwaitingCi | State::AwaitingReview | State::MergeQueue => {
                self.order(Effect::SyncBranch);
                Ok(())
            }
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::Escalated
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Merged
            | State::Closed => Err(Refused::NotNow(words::task::refused::NO_CLAIM.to_owned())),
        }
    }

    pub(super) fn pull_request_observed(&mut self, fact: &PrFact) {
        if matches!(self.task.state, State::Merged | State::Closed) {
            return;
        }
        match fact {
            PrFact::Open => {}
            PrFact::Merged { sha } => self.merged(sha.clone()),
            PrFact::Closed => {
                if self.task.state.has_session() {
                    self.fail(words::reason::PR_CLOSED.to_owned(), Exit::Failed);
                }
            }
        }
    }

    pub(super) fn merge_looked(&mut self, merged_as: Option<&Sha>) -> Result<(), Refused> {
        if !self.task.state.has_session() {
            return Err(Refused::NotNow(words::task::refused::waits_for_no_merge(self.task.state)));
        }
        if let Some(sha) = merged_as {
            if self.task.state != State::Merged {
                self.merged(sha.clone());
            }
            return Ok(());
        }
        self.task.attempts.premature_done += 1;
        self.tell(Headline::NotMerged, words::message::not_merged(&self.task));
        if self.task.attempts.premature_done > self.policy.premature_done {
            self.leave_queue();
            self.escalate(EscalationCause::Daemon, words::reason::PREMATURE_DONE.to_owned());
        }
        Ok(())
    }
}
