//! Deadlines. Every state that costs something has one, and a way out.

use super::Draft;
use crate::part::question::Due;
use crate::part::session::Stage;
use crate::task::effect::Exit;
use crate::task::state::State;
use crate::words;

impl Draft<'_> {
    pub(super) fn time_passed(&mut self) {
        self.session_time_passed();
        self.contribution_time_passed();
        let due = match &self.task.escalation {
            Some(question) => question.due(self.now),
            None if self.task.deadline.is_some_and(|at| at <= self.now) => Due::Expiry,
            None => Due::Nothing,
        };
        match due {
            Due::Nothing => {}
            Due::Reminder => self.notify_again(),
            Due::Expiry => {
                self.task.deadline = None;
                self.deadline_passed();
            }
        }
    }

    /// The deadline of a question is a person's, and stays where it is.
    pub(super) fn time_skipped(&mut self, by_ms: i64) {
        self.task.session.skip(by_ms);
        self.task.contribution.skip(by_ms);
        if self.task.escalation.is_none() {
            self.task.deadline = self.task.deadline.map(|at| at.moved(by_ms));
        }
    }

    fn deadline_passed(&mut self) {
        match self.task.state {
            State::Working => match self.task.session.stage {
                // No phase for the whole session time-out: replaced, with its work kept.
                Stage::Starting | Stage::Alive => self.end_session(Exit::IdleTimeout),
                Stage::None | Stage::Ending => {}
            },
            State::Escalated => {
                let reason = self.task.reason.clone().unwrap_or_default();
                let timeout = self.policy.escalation_timeout;
                self.fail(words::reason::nobody_answered(timeout, &reason), Exit::EscalationTimeout);
            }
            State::Merged => self.finish(),
            // Their clock is the contribution's.
            State::AwaitingCi | State::AwaitingReview | State::MergeQueue => {}
            // Only a session that could not be ended makes these wait for a time.
            State::Backlog
            | State::WaitingDependencies
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Closed => self.end_session(Exit::Stopped),
        }
    }
}
