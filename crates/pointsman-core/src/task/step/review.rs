//! Reactions to a review. A review is bound to a commit.

use super::{Draft, Refused};
use crate::ids::Sha;
use crate::task::effect::{Exit, Headline};
use crate::task::event::ReviewVerdict;
use crate::task::state::{Ci, EscalationCause, Review, State};
use crate::words;

impl Draft<'_> {
    pub(super) fn review_posted(
        &mut self,
        sha: &Sha,
        verdict: ReviewVerdict,
        by: &str,
        body: &str,
    ) -> Result<(), Refused> {
        if self.task.head.as_ref() != Some(sha) {
            return Err(Refused::Stale(words::task::not_the_head(sha)));
        }
        if !self.task.state.has_session() || self.task.state == State::Merged {
            return Err(Refused::NotNow(words::task::refused::takes_no_review(self.task.state)));
        }
        match verdict {
            ReviewVerdict::Approve => self.approved(sha, by, body),
            ReviewVerdict::RequestChanges => self.changes_requested(sha, by, body),
            ReviewVerdict::Discuss => {
                self.leave_queue();
                self.escalate(EscalationCause::Review, words::reason::discuss(by, body));
            }
        }
        Ok(())
    }

    fn approved(&mut self, sha: &Sha, by: &str, body: &str) {
        self.task.review = Review::Approved { sha: sha.clone(), by: by.to_owned() };
        let agent_asked = self.task.escalation.as_ref().is_some_and(|e| e.cause == EscalationCause::Agent);
        // Approved before CI was done, or while the agent waits for an answer: remembered, and acted
        // on when that is settled.
        if self.task.state == State::MergeQueue || agent_asked {
            return;
        }
        if !self.needs_no_ci(sha) {
            // The head was handed in while there was no CI, and there is one now.
            if self.task.ci == Ci::None && self.task.state == State::AwaitingReview {
                self.run_checks(sha.clone());
            }
            return;
        }
        self.tell(Headline::Approved, words::message::approved(sha, by, body));
        self.green(sha);
    }

    fn changes_requested(&mut self, sha: &Sha, by: &str, body: &str) {
        let same_round = matches!(&self.task.review, Review::ChangesRequested { sha: s, .. } if s == sha);
        self.task.review =
            Review::ChangesRequested { sha: sha.clone(), by: by.to_owned(), body: body.to_owned() };
        if !same_round {
            self.task.attempts.review_rounds += 1;
        }
        if self.task.attempts.review_rounds > self.policy.review_rounds {
            self.fail(words::reason::review_exhausted(self.policy.review_rounds), Exit::Exhausted);
            return;
        }
        self.leave_queue();
        let agent_asked = self.task.escalation.as_ref().is_some_and(|e| e.cause == EscalationCause::Agent);
        if !agent_asked {
            self.enter(State::Working);
        }
        self.tell(Headline::ChangesRequested, words::message::changes_requested(sha, by, body));
    }
}
