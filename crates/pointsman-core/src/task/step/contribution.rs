//! The task's contribution: facts about it are handed to the part, and its reactions are followed here.

use super::{Draft, Refused, state_of};
use crate::ids::Sha;
use crate::part::contribution::{Fact, OwnerFacts, PrFact, QueueOutcome, Reaction};
use crate::part::question::Cause;
use crate::task::effect::{Effect, Exit, Headline};
use crate::task::phase::Phase;
use crate::task::state::State;
use crate::words;

impl Draft<'_> {
    /// A fact about the contribution.
    pub(super) fn contributed(&mut self, fact: &Fact<'_>) -> Result<(), Refused> {
        let policy = self.policy.contribution();
        let around = OwnerFacts { asked: self.asked(), policy: &policy, now: self.now };
        let reactions = self.task.contribution.happened(fact, &around)?;
        self.follow_contribution(reactions);
        Ok(())
    }

    pub(super) fn contribution_time_passed(&mut self) {
        let policy = self.policy.contribution();
        let around = OwnerFacts { asked: self.asked(), policy: &policy, now: self.now };
        let reactions = self.task.contribution.time_passed(&around);
        self.follow_contribution(reactions);
    }

    /// Takes the branch out of the queue if it is in there.
    pub(super) fn leave_queue(&mut self) {
        let mut reactions = Vec::new();
        self.task.contribution.leave_queue(&mut reactions);
        self.follow_contribution(reactions);
    }

    /// Waits for the branch to be on the forge.
    pub(super) fn await_push(&mut self, patience: std::time::Duration) {
        self.task.contribution.await_push(self.now.after(patience));
        self.enter(State::AwaitingCi);
    }

    /// The reason of the question that a person was asked.
    fn asked(&self) -> Option<Cause> {
        self.task.escalation.as_ref().map(|question| question.cause)
    }

    /// Whether a person was asked about the review of this very commit. That an agent hands it in once more answers
    /// nothing, and the reviewer must not be asked again for it.
    pub(super) fn waits_for_reviewer(&self) -> bool {
        self.task.state == State::Escalated && self.asked() == Some(Cause::Review)
    }

    /// The branch is on the forge.
    pub(super) fn branch_synced(&mut self, pushed: &Fact<'_>) -> Result<(), Refused> {
        let head = match pushed {
            Fact::Pushed { head, .. } => *head,
            _ => None,
        };
        match self.task.state {
            State::AwaitingCi | State::AwaitingReview | State::MergeQueue => {}
            State::Escalated if self.waits_for_reviewer() => {
                if head.is_none() || head == self.task.contribution.head() {
                    return Ok(());
                }
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
        self.contributed(pushed)
    }

    pub(super) fn pull_request_observed(&mut self, fact: &PrFact) -> Result<(), Refused> {
        let counts = match fact {
            PrFact::Open => false,
            PrFact::Merged { .. } => !matches!(self.task.state, State::Merged | State::Closed),
            PrFact::Closed => self.task.state.has_session() && self.task.state != State::Merged,
        };
        if counts { self.contributed(&Fact::Observed(fact)) } else { Ok(()) }
    }

    pub(super) fn review_posted(&mut self, review: &Fact<'_>) -> Result<(), Refused> {
        if !self.task.state.has_session() || self.task.state == State::Merged {
            return Err(Refused::NotNow(words::task::refused::takes_no_review(self.task.state)));
        }
        self.contributed(review)
    }

    pub(super) fn queue_reported(&mut self, head: &Sha, outcome: &QueueOutcome) -> Result<(), Refused> {
        if self.task.state == State::Closed {
            return Err(Refused::Stale(words::task::refused::MERGED_ALREADY.to_owned()));
        }
        self.contributed(&Fact::QueueReported { head, outcome })
    }

    pub(super) fn merge_looked(&mut self, merged_as: Option<&Sha>) -> Result<(), Refused> {
        if !self.task.state.has_session() {
            return Err(Refused::NotNow(words::task::refused::waits_for_no_merge(self.task.state)));
        }
        if let Some(sha) = merged_as {
            return self.contributed(&Fact::FoundMerged { sha });
        }
        self.task.premature_done += 1;
        self.tell(Headline::NotMerged, words::message::not_merged(&self.task));
        if self.task.premature_done > self.policy.premature_done {
            self.leave_queue();
            self.escalate(Cause::Daemon, words::reason::PREMATURE_DONE.to_owned());
        }
        Ok(())
    }

    fn follow_contribution(&mut self, reactions: Vec<Reaction>) {
        for reaction in reactions {
            self.react_to_contribution(reaction);
        }
    }

    fn react_to_contribution(&mut self, reaction: Reaction) {
        match reaction {
            Reaction::Push => self.order(Effect::SyncBranch),
            Reaction::Open => self.order(Effect::OpenPullRequest),
            Reaction::Check { sha, run } => self.order(Effect::RunChecks { sha, run }),
            Reaction::RequestReview { sha } => self.order(Effect::RequestReview { sha }),
            Reaction::Enqueue { head } => self.order(Effect::Enqueue { head }),
            Reaction::Dequeue => self.order(Effect::Dequeue),
            Reaction::Record { text } => self.order(Effect::RecordCiResult { text }),
            Reaction::Tell { headline, words } => self.tell(headline, words),
            Reaction::Awaits(what) => self.enter(state_of(what)),
            Reaction::Returned { .. } => self.enter(State::Working),
            Reaction::Exhausted { reason } => self.fail(reason, Exit::Exhausted),
            Reaction::Ask { cause, reason } => self.escalate(cause, reason),
            Reaction::Closed => self.fail(words::reason::PR_CLOSED.to_owned(), Exit::Failed),
            Reaction::Merged { sha } => self.merged(&sha),
        }
    }

    /// The work is on the main branch.
    fn merged(&mut self, sha: &Sha) {
        self.task.session.restart_at = None;
        self.enter(State::Merged);
        if self.task.phase == Some(Phase::Done) || !self.task.session.is_listening() {
            self.finish();
        } else {
            self.tell(Headline::Merged, words::message::merged(sha));
        }
    }
}
