//! Full contexts, used-up budgets and outside trouble: a session stops for a reason of its own, and
//! nothing is lost by it.

use super::{Draft, Refused};
use crate::session::budget::Level;
use crate::session::context::{self, Gauge, Symptom, Urgency};
use crate::session::trouble::OutsideTrouble;
use crate::task::effect::{Effect, Exit, Headline};
use crate::task::state::{EscalationCause, Exhausted, Handoff, Session, State};
use crate::words;

impl Draft<'_> {
    /// Each step up in urgency is acted on once: watch, save, hand over. A worse source is not heard beside a better one.
    pub(super) fn context_measured(&mut self, generation: u32, gauge: Gauge) -> Result<(), Refused> {
        self.is_current(generation)?;
        self.measured(gauge);
        Ok(())
    }

    fn measured(&mut self, gauge: Gauge) {
        let known = self.task.gauge.zip(self.task.gauge_at);
        if !context::replaces(gauge, known, self.now) || context::repeats(gauge, known, self.now) {
            return;
        }
        self.task.gauge = Some(gauge);
        self.task.gauge_at = Some(self.now);
        // A quick agent measures before its start is on record: looked at again when it is.
        if self.task.session == Session::Alive {
            self.heed(gauge);
        }
    }

    /// Symptoms stand in for a measure. A compaction saves the work and says nothing: a message would be typed into the
    /// middle of it.
    pub(super) fn symptom_seen(&mut self, generation: u32, symptom: Symptom) -> Result<(), Refused> {
        self.is_current(generation)?;
        if !self.task.symptoms.contains(&symptom) {
            self.task.symptoms.push(symptom);
        }
        match symptom {
            Symptom::Compacting => self.order(Effect::Checkpoint { why: "before a compaction".to_owned() }),
            Symptom::Slow | Symptom::Warned => {
                if let Some(gauge) = context::from_symptoms(&self.task.symptoms, &self.policy.marks) {
                    self.measured(gauge);
                }
            }
        }
        Ok(())
    }

    /// There is room again: what fills up from here on is acted on anew.
    pub(super) fn context_compacted(&mut self, generation: u32) -> Result<(), Refused> {
        self.is_current(generation)?;
        self.forget_context();
        Ok(())
    }

    pub(super) fn forget_context(&mut self) {
        self.task.gauge = None;
        self.task.gauge_at = None;
        self.task.symptoms.clear();
        self.task.urgency = Urgency::None;
    }

    pub(super) fn heed(&mut self, gauge: Gauge) {
        let urgency = self.policy.marks.urgency(gauge);
        if urgency <= self.task.urgency {
            return;
        }
        self.task.urgency = urgency;
        if !self.wants_an_agent() {
            return;
        }
        match urgency {
            Urgency::None | Urgency::Low => {}
            Urgency::Medium => {
                let (subject, details) = words::message::checkpoint_now(gauge);
                self.tell(Headline::CheckpointNow, subject, details);
                self.order(Effect::Checkpoint { why: "the context fills up".to_owned() });
            }
            Urgency::High => self.ask_to_hand_over(gauge),
        }
    }

    /// Whether anything is expected of the agent in this state, so that a successor makes sense.
    fn wants_an_agent(&self) -> bool {
        matches!(self.task.state, State::Working | State::AwaitingCi | State::AwaitingReview)
    }

    fn ask_to_hand_over(&mut self, gauge: Gauge) {
        if self.task.handoff.is_some() {
            return;
        }
        if self.task.attempts.handoffs >= self.policy.handoffs {
            self.escalate(EscalationCause::Daemon, words::reason::handoffs(self.policy.handoffs));
            return;
        }
        let deadline = self.now.after(self.policy.handoff_timeout);
        self.task.handoff = Some(Handoff { requested_at: self.now, deadline, stuck: false });
        let (subject, details) = words::message::save_and_exit(gauge, self.policy.handoff_timeout);
        self.tell(Headline::SaveAndExit, subject, details);
    }

    /// The predecessor is gone as it was asked to (or was made to): its successor goes on.
    pub(super) fn hand_over(&mut self) {
        self.task.attempts.handoffs += 1;
        self.task.continues = true;
        self.start_session();
    }

    /// A session that does not hand over in time is ended, after a capture of its work.
    pub(super) fn handoff_is_due(&mut self) {
        let Some(handoff) = &mut self.task.handoff else { return };
        if handoff.stuck || handoff.deadline > self.now {
            return;
        }
        handoff.stuck = true;
        self.end_session(Exit::Stuck);
    }

    /// The agent is between two turns.
    pub(super) fn turn_ended(&mut self, generation: u32) -> Result<(), Refused> {
        self.is_current(generation)?;
        if self.ends_exhausted() {
            return Ok(());
        }
        self.order(Effect::Checkpoint { why: "end of a turn".to_owned() });
        Ok(())
    }

    /// The soft mark is a warning; at the hard mark the session ends with its work captured, as soon as
    /// its agent is between two turns. One that waits for CI, for people or for better times is.
    pub(super) fn budget_reached(&mut self, level: Level, what: &str) -> Result<(), Refused> {
        if !self.task.state.spends() {
            return Err(Refused::NotNow(format!("a {} task spends nothing", self.task.state)));
        }
        match level {
            Level::Within => {}
            Level::Soft => self.notify(words::notice::budget(&self.task, what)),
            Level::Hard if self.is_in_a_turn() => {
                let deadline = self.now.after(self.policy.handoff_timeout);
                let what = what.to_owned();
                self.task.exhausted.get_or_insert(Exhausted { what, deadline });
            }
            Level::Hard => self.fail(words::reason::budget(what), Exit::Exhausted),
        }
        Ok(())
    }

    fn is_in_a_turn(&self) -> bool {
        self.task.state == State::Working
            && self.task.session == Session::Alive
            && self.task.parked_until.is_none()
    }

    /// Between two turns: a session whose budget is used up ends here. Says whether it does.
    pub(super) fn ends_exhausted(&mut self) -> bool {
        let Some(exhausted) = self.task.exhausted.take() else { return false };
        // Work that is about to land costs nothing more.
        let ends = self.task.state.spends();
        if ends {
            self.fail(words::reason::budget(&exhausted.what), Exit::Exhausted);
        }
        ends
    }

    /// A turn that goes on and on is cut off.
    pub(super) fn exhaustion_is_due(&mut self) {
        if self.task.exhausted.as_ref().is_some_and(|e| e.deadline <= self.now) {
            self.ends_exhausted();
        }
    }

    /// Outside trouble costs no attempt: the session stays, and is told when to go on. What only a
    /// person can mend is asked of a person as well.
    pub(super) fn park(&mut self, trouble: &OutsideTrouble) {
        self.leave_queue();
        if trouble.needs_a_person() {
            self.escalate(EscalationCause::Daemon, words::reason::parked(trouble));
            return;
        }
        self.enter(State::Working);
        let until = trouble.until.unwrap_or_else(|| self.now.after(self.policy.park));
        self.task.parked_until = Some(until);
        self.task.deadline = None;
        self.task.reason = Some(words::reason::parked(trouble));
    }

    /// The trouble should be over.
    pub(super) fn go_on(&mut self) {
        self.enter(State::Working);
        let (subject, details) = words::message::go_on();
        self.tell(Headline::Answer, subject, details);
    }
}
