//! The task's session: facts about it are handed to the part, and its reactions are followed here.

use super::{Draft, Refused};
use crate::part::question::Cause;
use crate::part::session::{Fact, OwnerFacts, Reaction};
use crate::session::budget::Level;
use crate::session::trouble::OutsideTrouble;
use crate::task::effect::{Effect, Exit, Opening};
use crate::task::phase::Phase;
use crate::task::state::State;
use crate::time::Timestamp;
use crate::words;

impl<'a> Draft<'a> {
    /// A fact about the session of `generation`.
    pub(super) fn session_fact(&mut self, generation: u32, fact: &Fact<'_>) -> Result<(), Refused> {
        let around = self.around();
        let reactions = self.task.session.happened(generation, fact, &around)?;
        let tail = match fact {
            Fact::Ended { tail } => tail,
            Fact::Started
            | Fact::NotStarted { .. }
            | Fact::IdleLooked { .. }
            | Fact::ContextMeasured(_)
            | Fact::SymptomSeen(_)
            | Fact::ContextCompacted
            | Fact::TurnEnded
            | Fact::TurnFailed { .. }
            | Fact::DialogSeen { .. }
            | Fact::HooksSilent { .. } => "",
        };
        self.follow(reactions, tail);
        Ok(())
    }

    pub(super) fn budget_reached(
        &mut self,
        level: Level,
        what: &str,
        until: Option<Timestamp>,
    ) -> Result<(), Refused> {
        let around = self.around();
        let reactions = self.task.session.budget_reached(level, what, until, &around)?;
        self.follow(reactions, "");
        Ok(())
    }

    pub(super) fn unacknowledged(&mut self, message: i64, headline: &str) -> Result<(), Refused> {
        let demand = self.task.state.demand();
        let reaction = self.task.session.message_unacknowledged(message, headline, demand)?;
        self.follow(vec![reaction], "");
        Ok(())
    }

    /// Nobody presses a key for a person: a person is asked, and sees what the terminal shows.
    pub(super) fn dialog_seen(&mut self, generation: u32, what: &str, picture: &str) -> Result<(), Refused> {
        self.session_fact(generation, &Fact::DialogSeen { what })?;
        self.show("dialog", picture);
        Ok(())
    }

    pub(super) fn hooks_silent(
        &mut self,
        generation: u32,
        required: bool,
        picture: &str,
    ) -> Result<(), Refused> {
        let asks = required && self.task.state.demand().may_ask();
        self.session_fact(generation, &Fact::HooksSilent { required })?;
        if asks {
            self.show("hooks", picture);
        }
        Ok(())
    }

    /// What the agent said at the end of a turn, for people who read along.
    pub(super) fn response_given(&mut self, generation: u32, text: &str) -> Result<(), Refused> {
        self.task.session.is_current(generation)?;
        self.notify(words::notice::response(&self.task, text));
        Ok(())
    }

    /// Parks the work because of trouble outside. What only a person can mend is asked of a person as well.
    pub(super) fn park(&mut self, trouble: &OutsideTrouble) {
        let reaction = self.task.session.park(trouble, &self.policy.session, self.now);
        self.follow(vec![reaction], "");
    }

    /// Orders the next generation.
    pub(super) fn start_session(&mut self) {
        let mut reactions = Vec::new();
        self.task.session.start(&mut reactions);
        self.follow(reactions, "");
    }

    /// Orders the end of the session, if there is one.
    pub(super) fn end_session(&mut self, exit: Exit) {
        let mut reactions = Vec::new();
        self.task.session.end(exit, &mut reactions);
        self.follow(reactions, "");
    }

    /// Between two turns: a session whose budget is used up ends here. Says whether it does.
    pub(super) fn ends_exhausted(&mut self) -> bool {
        let mut reactions = Vec::new();
        let ends = self.task.session.ends_exhausted(self.task.state.demand(), &mut reactions);
        self.follow(reactions, "");
        ends
    }

    pub(super) fn session_time_passed(&mut self) {
        let around = self.around();
        let reactions = self.task.session.time_passed(&around);
        self.follow(reactions, "");
    }

    /// The tree could not be set up. That is no fault of the agent: it costs no attempt and no restart, and a person is asked.
    pub(super) fn setup_failed(
        &mut self,
        generation: u32,
        opening: Opening,
        error: &str,
        log: &str,
    ) -> Result<(), Refused> {
        self.task.session.not_set_up(generation, opening)?;
        self.task.setup_failures += 1;
        if self.task.state.demand().may_ask() {
            self.leave_queue();
            self.escalate(Cause::Setup, words::reason::setup_failed(error));
            if let Some(asked) = &mut self.task.escalation {
                asked.body = words::question::setup_failed(&asked.subject, self.task.setup_failures, log);
            }
        }
        Ok(())
    }

    pub(super) fn setup_retried(&mut self) -> Result<(), Refused> {
        if self.task.escalation.as_ref().is_none_or(|asked| asked.cause != Cause::Setup) {
            return Err(Refused::NotNow(words::task::refused::nobody_asked(self.task.state)));
        }
        self.enter(State::Working);
        self.start_session();
        Ok(())
    }

    fn around(&self) -> OwnerFacts<'a> {
        OwnerFacts {
            demand: self.task.state.demand(),
            has_phase: self.task.phase.is_some(),
            is_final: matches!(self.task.phase, Some(Phase::Done | Phase::Failed)),
            policy: &self.policy.session,
            now: self.now,
        }
    }

    fn show(&mut self, kind: &str, picture: &str) {
        if !picture.trim().is_empty() {
            self.comment(kind, words::comment::picture(picture));
        }
    }

    /// Passes orders on and draws the task's conclusions. `tail` is what the session's terminal showed last, if it is gone.
    pub(super) fn follow(&mut self, reactions: Vec<Reaction>, tail: &str) {
        for reaction in reactions {
            self.react_to_session(reaction, tail);
        }
    }

    fn react_to_session(&mut self, reaction: Reaction, tail: &str) {
        let generation = self.task.session.generation;
        match reaction {
            Reaction::Start { opening } => {
                // Its tree may have to be set up first, and the forge may be away: its clock begins when it is up.
                if self.task.state == State::Working {
                    self.task.deadline = None;
                }
                self.order(Effect::StartSession { generation, opening });
            }
            Reaction::End { exit } => self.order(Effect::EndSession { generation, exit }),
            Reaction::Checkpoint { why } => self.order(Effect::Checkpoint { why: why.to_owned() }),
            Reaction::Tell { headline, subject, details } => {
                self.order(Effect::Deliver { generation, headline, subject, details });
            }
            Reaction::CameUp => {
                if self.task.state == State::Working {
                    self.task.deadline = Some(self.now.after(self.policy.session_timeout));
                }
            }
            Reaction::Gone => {
                if std::mem::take(&mut self.task.diagnosis_due) {
                    self.comment_diagnosis(tail);
                }
                if self.task.state == State::Merged {
                    self.finish();
                }
            }
            // The clock of a silent session stands still until the next one is up.
            Reaction::Replaced => {
                if self.task.state == State::Working {
                    self.task.deadline = None;
                }
            }
            Reaction::CrashLoop { reason } => self.fail_without_session(reason, tail),
            Reaction::Fail { reason, exit } => self.fail(reason, exit),
            Reaction::Ask { reason } => {
                self.leave_queue();
                self.escalate(Cause::Daemon, reason);
            }
            Reaction::Park { until, reason } => {
                self.leave_queue();
                self.enter(State::Working);
                self.task.session.parked_until = Some(until);
                self.task.deadline = None;
                self.task.reason = Some(reason);
            }
            Reaction::Unparked => {
                self.enter(State::Working);
                self.tell(crate::task::Headline::Answer, words::message::go_on());
            }
            Reaction::BudgetWarning { what } => self.notify(words::notice::budget(&self.task, &what)),
            Reaction::HooksSilent => self.notify(words::notice::hooks_silent(&self.task)),
            Reaction::Remind => {
                self.tell(crate::task::Headline::WritePhase, words::message::no_phase(&self.task));
            }
        }
    }
}
