//! Reactions to the merge queue, and to a merge however it came about.

use super::{Draft, Refused};
use crate::ids::Sha;
use crate::task::effect::{Effect, Headline};
use crate::task::event::QueueOutcome;
use crate::task::phase::Phase;
use crate::task::state::{Ci, EscalationCause, State};
use crate::words;

impl Draft<'_> {
    pub(super) fn queue_reported(&mut self, head: &Sha, outcome: &QueueOutcome) -> Result<(), Refused> {
        if let QueueOutcome::Landed { sha } = outcome {
            // It is on the main branch, whatever was ordered meanwhile: facts decide.
            if matches!(self.task.state, State::Merged | State::Closed) {
                return Err(Refused::Stale(words::task::refused::MERGED_ALREADY.to_owned()));
            }
            self.merged(sha.clone());
            return Ok(());
        }
        if self.task.state != State::MergeQueue || self.task.head.as_ref() != Some(head) {
            return Err(Refused::Stale(words::task::not_in_queue(head)));
        }
        match outcome {
            QueueOutcome::Landed { .. } => {}
            QueueOutcome::Conflict { files, with } => {
                self.task.attempts.merge_conflicts += 1;
                self.enter(State::Working);
                self.tell(Headline::MergeConflict, words::message::merge_conflict(files, with.as_deref()));
                if self.task.attempts.merge_conflicts > self.policy.merge_conflicts {
                    self.escalate(EscalationCause::Daemon, words::reason::conflicts(files));
                }
            }
            QueueOutcome::Red { summary, log } => {
                self.task.ci = Ci::Failed { sha: head.clone(), infra: false, summary: summary.clone() };
                self.task.ci_log_end = words::notice::log_end(log);
                self.hand_back_red(summary.clone(), words::message::queue_red(head, summary, log));
            }
            QueueOutcome::Infra { reason, log } => {
                self.task.ci_log_end = words::notice::log_end(log);
                self.escalate(EscalationCause::Ci, words::reason::infra(reason));
            }
            QueueOutcome::Stale { .. } => {
                self.enter(State::AwaitingCi);
                self.order(Effect::SyncBranch);
            }
        }
        Ok(())
    }

    /// The work is on the main branch.
    pub(super) fn merged(&mut self, sha: Sha) {
        self.leave_queue();
        self.task.merged_as = Some(sha.clone());
        self.task.session.restart_at = None;
        self.enter(State::Merged);
        if self.task.phase == Some(Phase::Done) || !self.task.session.is_listening() {
            self.finish();
        } else {
            self.tell(Headline::Merged, words::message::merged(&sha));
        }
    }

    /// Takes the branch out of the queue if it is in there.
    pub(super) fn leave_queue(&mut self) {
        if self.task.state == State::MergeQueue {
            self.order(Effect::Dequeue);
        }
    }
}
