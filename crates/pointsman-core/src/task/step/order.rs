//! Orders from people and from the scheduler.

use super::{Draft, Refused};
use crate::ids::Sha;
use crate::part::session::Stage;
use crate::task::effect::{Effect, Exit, Opening};
use crate::task::event::Order;
use crate::task::state::{Given, State};
use crate::words;

impl Draft<'_> {
    pub(super) fn ordered(&mut self, order: Order) -> Result<(), Refused> {
        match order {
            Order::Begin => self.begin_if_ready(),
            Order::Start => self.start_now(),
            Order::Pause => self.pause(),
            Order::Resume => self.resume(),
            Order::Stop => self.stop(),
            Order::Restart => self.restart(),
            Order::RestartFresh => {
                self.restart()?;
                self.forget_work();
                self.task.claimed = true;
                self.task.session.anew = true;
                self.task.given = None;
                Ok(())
            }
        }
    }

    fn begin_if_ready(&mut self) -> Result<(), Refused> {
        if self.task.state != State::Backlog || !self.task.ready {
            return Err(Refused::NotNow(words::task::refused::not_ready(self.task.state)));
        }
        self.begin();
        Ok(())
    }

    fn begin(&mut self) {
        self.forget_work();
        self.task.ready = false;
        self.task.claims += 1;
        self.claim();
    }

    /// The session follows when the claim is on the issue. One that is still on its way out belongs
    /// to an earlier generation from here on.
    fn claim(&mut self) {
        self.enter(State::Working);
        self.task.session.stage = Stage::None;
        self.task.claimed = true;
        self.order(Effect::ClaimIssue);
    }

    fn start_now(&mut self) -> Result<(), Refused> {
        match self.task.state {
            State::Backlog | State::WaitingDependencies | State::Blocked | State::Refused => {
                self.begin();
                Ok(())
            }
            State::Paused => self.resume(),
            State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated => Err(Refused::NotNow(words::task::refused::under_way(self.task.state))),
            State::Merged | State::Closed => {
                Err(Refused::NotNow(words::task::refused::over(self.task.state)))
            }
        }
    }

    fn pause(&mut self) -> Result<(), Refused> {
        match self.task.state {
            State::Paused => Err(Refused::NotNow(words::task::refused::PAUSED_ALREADY.to_owned())),
            State::Merged | State::Closed => {
                Err(Refused::NotNow(words::task::refused::cannot_be_paused(self.task.state)))
            }
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Blocked
            | State::Refused => {
                self.leave_queue();
                self.end_session(Exit::Stopped);
                self.task.handed_in =
                    matches!(self.task.state, State::AwaitingCi | State::AwaitingReview | State::MergeQueue);
                self.enter(State::Paused);
                self.task.ready = false;
                self.task.reason = Some(words::reason::PAUSED.to_owned());
                Ok(())
            }
        }
    }

    fn resume(&mut self) -> Result<(), Refused> {
        if self.task.state != State::Paused {
            return Err(Refused::NotNow(words::task::refused::not_paused(
                self.task.state,
                self.task.key.issue,
            )));
        }
        if let Some(by) = &self.task.taken_by {
            // Their commits would be left out without a word.
            return Err(Refused::NotNow(words::task::refused::taken(by, self.task.key.issue)));
        }
        if self.task.session.generation == 0 && !self.task.claimed {
            // Never begun: the next look at the issue tells whether it is ready.
            self.enter(State::Backlog);
        } else {
            self.claim();
        }
        Ok(())
    }

    /// A person takes the work over. The session ends as if the task was paused, after a capture of its work.
    pub(super) fn taken(&mut self, by: &str) -> Result<(), Refused> {
        let issue = self.task.key.issue;
        match (&self.task.taken_by, self.task.state) {
            // Asked again, after an answer that got lost.
            (Some(other), _) if other == by => return Ok(()),
            (Some(other), _) => {
                return Err(Refused::NotNow(words::task::refused::taken_by_another(other, issue)));
            }
            (None, State::Merged | State::Closed) => {
                return Err(Refused::NotNow(words::task::refused::over(self.task.state)));
            }
            (
                None,
                State::Backlog
                | State::WaitingDependencies
                | State::Working
                | State::AwaitingCi
                | State::AwaitingReview
                | State::MergeQueue
                | State::Escalated
                | State::Blocked
                | State::Refused
                | State::Paused,
            ) => {}
        }
        if self.task.session.generation == 0 {
            return Err(Refused::NotNow(words::task::refused::nothing_to_take(issue)));
        }
        match self.task.state {
            State::Paused => {}
            // What was used up counts no more, as with a start.
            State::Backlog | State::WaitingDependencies | State::Blocked | State::Refused => {
                self.forget_work();
                self.task.claims += 1;
                self.pause()?;
            }
            State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Merged
            | State::Closed => self.pause()?,
        }
        self.task.reason = Some(words::reason::taken(by));
        self.task.taken_by = Some(by.to_owned());
        Ok(())
    }

    /// A person gives the work back. What they made of it is not handed in before the agent says so.
    pub(super) fn given(&mut self, by: &str, head: &Sha) -> Result<(), Refused> {
        if self.task.taken_by.is_none() {
            return Err(Refused::NotNow(words::task::refused::not_taken(self.task.key.issue)));
        }
        self.task.given = Some(Given { by: by.to_owned(), head: head.clone() });
        self.task.handed_in = false;
        self.task.session.continues = false;
        self.task.session.anew = false;
        self.task.session.opening = Some(Opening::Given);
        self.claim();
        Ok(())
    }

    fn restart(&mut self) -> Result<(), Refused> {
        match self.task.state {
            State::Backlog | State::WaitingDependencies | State::Blocked | State::Refused => {
                self.begin();
                Ok(())
            }
            State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Paused => {
                self.leave_queue();
                self.end_session(Exit::Stopped);
                self.claim();
                Ok(())
            }
            State::Merged | State::Closed => {
                Err(Refused::NotNow(words::task::refused::over(self.task.state)))
            }
        }
    }

    fn stop(&mut self) -> Result<(), Refused> {
        match self.task.state {
            State::Merged | State::Closed => {
                Err(Refused::NotNow(words::task::refused::cannot_be_stopped(self.task.state)))
            }
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Blocked
            | State::Refused
            | State::Paused => {
                self.fail(words::reason::STOPPED.to_owned(), Exit::Stopped);
                Ok(())
            }
        }
    }
}
