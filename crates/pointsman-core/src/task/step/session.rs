//! Sessions start, end, and are brought back.

use std::time::Duration;

use super::{Draft, Refused};
use crate::task::effect::{Effect, Exit, Opening};
use crate::task::state::{Session, State};
use crate::words;

impl Draft<'_> {
    /// Orders the next generation. The working tree of an earlier one is kept, so only the very
    /// first session of a task finds the issue new.
    pub(super) fn start_session(&mut self) {
        let opening = match (self.task.generation, self.task.continues) {
            (0, _) => Opening::Fresh,
            (_, true) => Opening::Continuation,
            (_, false) => Opening::Recovery,
        };
        self.task.generation += 1;
        self.task.session = Session::Starting;
        self.task.idle_looks = 0;
        self.task.restart_at = None;
        self.task.handoff = None;
        self.task.exhausted = None;
        self.forget_context();
        self.task.parked_until = None;
        self.order(Effect::StartSession { generation: self.task.generation, opening });
    }

    /// Orders the end of the session, if there is one.
    pub(super) fn end_session(&mut self, exit: Exit) {
        self.task.restart_at = None;
        match self.task.session {
            Session::None | Session::Ending => {}
            Session::Starting | Session::Alive => {
                self.task.session = Session::Ending;
                self.order(Effect::EndSession { generation: self.task.generation, exit });
            }
        }
    }

    pub(super) fn session_started(&mut self, generation: u32) -> Result<(), Refused> {
        self.is_current(generation)?;
        if self.task.session == Session::Starting {
            self.task.session = Session::Alive;
            self.task.continues = false;
            if self.task.state == State::Working {
                self.task.deadline = Some(self.now.after(self.policy.session_timeout));
            }
            if let Some(gauge) = self.task.gauge {
                self.heed(gauge);
            }
        }
        Ok(())
    }

    pub(super) fn session_not_started(&mut self, generation: u32, error: &str) -> Result<(), Refused> {
        self.is_current(generation)?;
        // It may have come up before something else went wrong: its end is ordered all the same.
        if self.task.state.has_session() {
            self.fail(words::reason::not_started(error), Exit::Failed);
        }
        Ok(())
    }

    pub(super) fn session_ended(&mut self, generation: u32, tail: &str) -> Result<(), Refused> {
        self.is_current(generation)?;
        self.task.session = Session::None;
        if self.task.diagnosis_due {
            self.task.diagnosis_due = false;
            self.comment_diagnosis(tail);
        }
        let handed_over = self.task.handoff.take().is_some();
        if self.ends_exhausted() {
            return Ok(());
        }
        match self.task.state {
            State::Working | State::AwaitingCi | State::AwaitingReview if handed_over => self.hand_over(),
            State::Working | State::AwaitingCi | State::AwaitingReview => self.bring_back(tail),
            // Nothing to say to an agent at the moment: whoever needs one starts it.
            State::Escalated | State::MergeQueue => {}
            State::Merged => self.finish(),
            State::Backlog
            | State::WaitingDependencies
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Closed => {}
        }
        Ok(())
    }

    /// The first replacement comes at once, the next ones after a growing pause, then we stop.
    fn bring_back(&mut self, tail: &str) {
        self.task.attempts.restarts += 1;
        let restarts = self.task.attempts.restarts;
        if restarts > self.policy.restarts {
            self.fail_without_session(words::reason::crash_loop(self.policy.restarts), tail);
            return;
        }
        let pause = match restarts {
            0 | 1 => Duration::ZERO,
            n => {
                let doubled = 1u32.checked_shl(n - 2).unwrap_or(u32::MAX);
                self.policy.restart_backoff.saturating_mul(doubled).min(self.policy.restart_backoff_max)
            }
        };
        if pause.is_zero() {
            self.start_session();
        } else {
            self.task.restart_at = Some(self.now.after(pause));
        }
        if self.task.state == State::Working {
            self.task.deadline = None;
        }
    }

    pub(super) fn idle_looked(&mut self, generation: u32, at_prompt: bool) -> Result<(), Refused> {
        self.is_current(generation)?;
        let watched = self.task.state == State::Working
            && self.task.session == Session::Alive
            && self.task.phase.is_none();
        if !watched {
            return Err(Refused::NotNow("only a working session without any phase is watched".to_owned()));
        }
        if !at_prompt {
            self.task.idle_looks = 0;
            return Ok(());
        }
        if self.ends_exhausted() {
            return Ok(());
        }
        self.task.idle_looks += 1;
        if self.task.idle_looks >= self.policy.idle_looks {
            self.fail(words::reason::idle_prompt(self.task.idle_looks), Exit::IdlePrompt);
        }
        Ok(())
    }
}
