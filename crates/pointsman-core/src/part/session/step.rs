//! The reaction of a session to facts and to time.

use std::time::Duration;

use super::{Context, Demand, Exhausted, Fact, Handoff, Policy, Reaction, Session, Stage};
use crate::hook;
use crate::session::budget::Level;
use crate::session::context::{self, Gauge, Symptom, Urgency};
use crate::session::trouble::OutsideTrouble;
use crate::task::{Exit, Headline, Opening};
use crate::time::Timestamp;
use crate::words;
use crate::workflow::Refused;

/// The facts that the rules look at beside the session itself.
#[derive(Clone, Copy, Debug)]
pub struct OwnerFacts<'a> {
    pub demand: Demand,
    /// Whether the agent has written a phase in this claim: then its silence at a prompt is explained.
    pub has_phase: bool,
    /// Whether the agent's last phase ended its work: an error after it takes nothing back.
    pub is_final: bool,
    pub policy: &'a Policy,
    pub now: Timestamp,
}

impl Session {
    /// Takes in a fact about the session of `generation`.
    pub fn happened(
        &mut self,
        generation: u32,
        fact: &Fact<'_>,
        around: &OwnerFacts<'_>,
    ) -> Result<Vec<Reaction>, Refused> {
        let mut out = Vec::new();
        self.is_current(generation)?;
        match fact {
            Fact::Started => self.started(around, &mut out),
            Fact::NotStarted { error } => {
                // It may have come up before something else went wrong: its end is ordered all the same.
                if around.demand.allows_session() {
                    out.push(Reaction::Fail {
                        reason: words::reason::not_started(error),
                        exit: Exit::Failed,
                    });
                }
            }
            Fact::Ended { .. } => self.ended(around, &mut out),
            Fact::IdleLooked { at_prompt } => self.idle_looked(*at_prompt, around, &mut out)?,
            Fact::ContextMeasured(gauge) => self.measured(*gauge, around, &mut out),
            Fact::SymptomSeen(symptom) => self.symptom_seen(*symptom, around, &mut out),
            Fact::ContextCompacted => self.context = Context::default(),
            Fact::TurnEnded => {
                if !self.ends_exhausted(around.demand, &mut out) {
                    out.push(Reaction::Checkpoint { why: words::reason::END_OF_TURN });
                }
            }
            Fact::TurnFailed { error, details, until } => {
                self.turn_failed(error, details, *until, around, &mut out)?;
            }
            Fact::DialogSeen { what } => {
                can_ask(around.demand)?;
                out.push(Reaction::Ask { reason: words::reason::dialog(what) });
            }
            Fact::HooksSilent { required } => {
                // A session that cannot be heard cannot be supervised, unless the project does without hooks.
                let asks = *required && around.demand.may_ask();
                out.push(if asks {
                    Reaction::Ask { reason: words::reason::HOOKS_SILENT.to_owned() }
                } else {
                    Reaction::HooksSilent
                });
            }
        }
        Ok(out)
    }

    /// Everything that is due. The owner's own deadline comes after it.
    pub fn time_passed(&mut self, around: &OwnerFacts<'_>) -> Vec<Reaction> {
        let mut out = Vec::new();
        let now = around.now;
        if self.restart_at.is_some_and(|at| at <= now) {
            self.start(&mut out);
        }
        if self.parked_until.is_some_and(|at| at <= now) {
            self.idle_looks = 0;
            out.push(Reaction::Unparked);
        }
        if let Some(handoff) = self.handoff.as_mut().filter(|h| !h.stuck && h.deadline <= now) {
            handoff.stuck = true;
            self.end(Exit::Stuck, &mut out);
        }
        if self.exhausted.as_ref().is_some_and(|exhausted| exhausted.deadline <= now) {
            self.ends_exhausted(around.demand, &mut out);
        }
        out
    }

    /// Orders the next generation. The working tree of an earlier one is kept, so only the very first session finds its
    /// work new.
    pub fn start(&mut self, out: &mut Vec<Reaction>) {
        let owed = self.opening.take();
        let opening = match (self.generation, self.continues) {
            (0, _) => Opening::Fresh,
            _ if self.anew => Opening::Anew,
            (_, true) => Opening::Continuation,
            (_, false) => owed.unwrap_or(Opening::Recovery),
        };
        self.anew = false;
        self.generation += 1;
        self.stage = Stage::Starting;
        self.idle_looks = 0;
        self.reminded = false;
        self.restart_at = None;
        self.handoff = None;
        self.exhausted = None;
        self.context = Context::default();
        self.parked_until = None;
        self.waits_for_budget = false;
        out.push(Reaction::Start { opening });
    }

    /// Its tree could not be set up: the present generation never starts, and the next one opens as it would have.
    pub fn not_set_up(&mut self, generation: u32, opening: Opening) -> Result<(), Refused> {
        self.is_current(generation)?;
        match self.stage {
            Stage::Starting => {
                (self.stage, self.opening) = (Stage::None, Some(opening));
                Ok(())
            }
            // Its end is ordered, and comes.
            Stage::None | Stage::Alive | Stage::Ending => {
                Err(Refused::NotNow(words::reason::NOT_SET_UP.to_owned()))
            }
        }
    }

    /// Orders the end of the session, if there is one.
    pub fn end(&mut self, exit: Exit, out: &mut Vec<Reaction>) {
        self.restart_at = None;
        if self.is_listening() {
            self.stage = Stage::Ending;
            out.push(Reaction::End { exit });
        }
    }

    /// Says something to the agent. Without a live session one is started first; a session that is on its way out, or
    /// held back by the crash-loop breaker, learns it from its successor's prompt.
    pub fn tell(
        &mut self,
        headline: Headline,
        (subject, details): (String, String),
        out: &mut Vec<Reaction>,
    ) {
        if self.stage == Stage::None && self.restart_at.is_none() {
            self.start(out);
        }
        out.push(Reaction::Tell { headline, subject, details });
    }

    /// The session could not be ended: for all we know it is still there.
    pub fn could_not_be_ended(&mut self) {
        if self.stage == Stage::Ending {
            self.stage = Stage::Alive;
        }
    }

    /// Parks the session, or has a person asked if waiting alone will not help. It costs no attempt.
    pub fn park(&self, trouble: &OutsideTrouble, policy: &Policy, now: Timestamp) -> Reaction {
        let reason = words::reason::parked(trouble);
        if trouble.needs_a_person() {
            return Reaction::Ask { reason };
        }
        Reaction::Park { until: trouble.until.unwrap_or_else(|| now.after(policy.park)), reason }
    }

    /// Between two turns: a session whose budget is used up ends here. Says whether it does.
    pub fn ends_exhausted(&mut self, demand: Demand, out: &mut Vec<Reaction>) -> bool {
        let Some(exhausted) = self.exhausted.take() else { return false };
        let reason = words::reason::budget(&exhausted.what);
        match exhausted.until {
            _ if !demand.spends() => return false,
            None => out.push(Reaction::Fail { reason, exit: Exit::Exhausted }),
            Some(until) => self.park_for_budget(until, reason, out),
        }
        true
    }

    /// The session goes, because even a parked one could be made to spend. Its successor comes with the new budget.
    fn park_for_budget(&mut self, until: Timestamp, reason: String, out: &mut Vec<Reaction>) {
        self.waits_for_budget = true;
        out.push(Reaction::Park { until, reason });
        self.end(Exit::Exhausted, out);
    }

    /// Refuses what an earlier generation says.
    pub fn is_current(&self, generation: u32) -> Result<(), Refused> {
        if generation == self.generation && self.stage != Stage::None {
            return Ok(());
        }
        Err(Refused::Stale(words::reason::old_generation(generation, self.generation)))
    }

    fn started(&mut self, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        if self.stage != Stage::Starting {
            return;
        }
        self.stage = Stage::Alive;
        self.continues = false;
        out.push(Reaction::CameUp);
        // A quick agent measures before its start is on record.
        if let Some(gauge) = self.context.gauge {
            self.heed(gauge, around, out);
        }
    }

    fn ended(&mut self, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        self.stage = Stage::None;
        out.push(Reaction::Gone);
        let handed_over = self.handoff.take().is_some();
        if self.ends_exhausted(around.demand, out) || !around.demand.wants_agent() || self.waits_for_budget {
            return;
        }
        if handed_over {
            self.handoffs += 1;
            self.continues = true;
            self.start(out);
        } else {
            self.bring_back(around, out);
        }
    }

    /// The first replacement comes at once, the next ones after a growing pause, then we stop.
    fn bring_back(&mut self, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        self.restarts += 1;
        if self.restarts > around.policy.restarts {
            out.push(Reaction::CrashLoop { reason: words::reason::crash_loop(around.policy.restarts) });
            return;
        }
        let pause = restart_pause(self.restarts, around.policy);
        if pause.is_zero() {
            self.start(out);
        } else {
            self.restart_at = Some(around.now.after(pause));
        }
        out.push(Reaction::Replaced);
    }

    fn idle_looked(
        &mut self,
        at_prompt: bool,
        around: &OwnerFacts<'_>,
        out: &mut Vec<Reaction>,
    ) -> Result<(), Refused> {
        if self.waits_to_hand_over(around.demand) {
            self.idle_before_handing_over(at_prompt, around, out);
            return Ok(());
        }
        let watched = around.demand == Demand::Work && self.stage == Stage::Alive;
        // A session that is parked, or about to hand over, has a reason to sit at its prompt, and a deadline of its own. One
        // that has handed in before and was reminded is left to the deadline of its work.
        if !watched || self.may_be_idle() || (around.has_phase && self.reminded) {
            return Err(Refused::NotNow(words::reason::NOT_WATCHED.to_owned()));
        }
        if !at_prompt {
            self.idle_looks = 0;
            return Ok(());
        }
        if self.ends_exhausted(around.demand, out) {
            return Ok(());
        }
        self.idle_looks += 1;
        if self.idle_looks < around.policy.idle_looks {
            return Ok(());
        }
        if !self.reminded {
            // Agents forget it more often than they have nothing to say.
            self.reminded = true;
            self.idle_looks = 0;
            out.push(Reaction::Remind);
        } else {
            let reason = words::reason::idle_prompt(self.idle_looks);
            out.push(Reaction::Fail { reason, exit: Exit::IdlePrompt });
        }
        Ok(())
    }

    /// It was told to save its work and exit, and sits at its prompt: not every agent finds the way out by itself. We end
    /// it, and its successor goes on.
    fn idle_before_handing_over(
        &mut self,
        at_prompt: bool,
        around: &OwnerFacts<'_>,
        out: &mut Vec<Reaction>,
    ) {
        self.idle_looks = if at_prompt { self.idle_looks + 1 } else { 0 };
        if self.idle_looks >= around.policy.idle_looks {
            self.idle_looks = 0;
            self.end(Exit::Handoff, out);
        }
    }

    /// Whether it was asked to hand over and has only to exit. Looks count once it has read the request.
    pub fn waits_to_hand_over(&self, demand: Demand) -> bool {
        let asked = self.handoff.is_some_and(|handoff| !handoff.stuck);
        asked && self.stage == Stage::Alive && self.parked_until.is_none() && demand.wants_agent()
    }

    /// Whether the session waits for something that is not its agent's turn to do.
    pub fn may_be_idle(&self) -> bool {
        self.parked_until.is_some() || self.handoff.is_some()
    }

    /// A worse source is not heard beside a better one.
    fn measured(&mut self, gauge: Gauge, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        let known = self.context.gauge.zip(self.context.measured_at);
        if !context::replaces(gauge, known, around.now) || context::repeats(gauge, known, around.now) {
            return;
        }
        self.context.gauge = Some(gauge);
        self.context.measured_at = Some(around.now);
        if self.stage == Stage::Alive {
            self.heed(gauge, around, out);
        }
    }

    /// Symptoms stand in for a measurement. A compaction saves the work and says nothing: a message would be typed into
    /// the middle of it.
    fn symptom_seen(&mut self, symptom: Symptom, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        if !self.context.symptoms.contains(&symptom) {
            self.context.symptoms.push(symptom);
        }
        match symptom {
            Symptom::Compacting => out.push(Reaction::Checkpoint { why: words::reason::BEFORE_COMPACTION }),
            Symptom::Slow | Symptom::Warned => {
                let marks = &around.policy.marks;
                if let Some(gauge) = context::from_symptoms(&self.context.symptoms, marks) {
                    self.measured(gauge, around, out);
                }
            }
        }
    }

    /// Each step up in urgency is acted on once: watch, save, hand over.
    fn heed(&mut self, gauge: Gauge, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        let urgency = around.policy.marks.urgency(gauge);
        if urgency <= self.context.urgency {
            return;
        }
        self.context.urgency = urgency;
        if !around.demand.wants_agent() {
            return;
        }
        match urgency {
            Urgency::None | Urgency::Low => {}
            Urgency::Medium => {
                self.tell(Headline::CheckpointNow, words::message::checkpoint_now(gauge), out);
                out.push(Reaction::Checkpoint { why: words::reason::CONTEXT_FILLS_UP });
            }
            Urgency::High => self.ask_to_hand_over(gauge, around, out),
        }
    }

    fn ask_to_hand_over(&mut self, gauge: Gauge, around: &OwnerFacts<'_>, out: &mut Vec<Reaction>) {
        if self.handoff.is_some() {
            return;
        }
        if self.handoffs >= around.policy.handoffs {
            out.push(Reaction::Ask { reason: words::reason::handoffs(around.policy.handoffs) });
            return;
        }
        let timeout = around.policy.handoff_timeout;
        let deadline = around.now.after(timeout);
        self.idle_looks = 0;
        self.handoff = Some(Handoff { requested_at: around.now, deadline, stuck: false });
        self.tell(Headline::SaveAndExit, words::message::save_and_exit(gauge, timeout), out);
    }

    /// A turn that its service cut off. It never counts against a phase that ends the work, nor while nothing is expected
    /// of the agent.
    fn turn_failed(
        &self,
        error: &str,
        details: &str,
        until: Option<Timestamp>,
        around: &OwnerFacts<'_>,
        out: &mut Vec<Reaction>,
    ) -> Result<(), Refused> {
        if around.is_final {
            return Err(Refused::NotNow(words::reason::FINAL_PHASE_STANDS.to_owned()));
        }
        if around.demand != Demand::Work {
            return Err(Refused::NotNow(words::reason::NOTHING_EXPECTED.to_owned()));
        }
        out.push(match hook::trouble(error, details) {
            Some(kind) => {
                self.park(&OutsideTrouble::told(kind, until, around.now), around.policy, around.now)
            }
            None => Reaction::Ask { reason: words::reason::turn_failed(error, details) },
        });
        Ok(())
    }

    /// The first mark is a warning. At the second the session ends with its work captured: at the end of its turn if that
    /// has just come, else at once, so that no more is spent than by the calls that are under way.
    pub fn budget_reached(
        &mut self,
        level: Level,
        what: &str,
        until: Option<Timestamp>,
        around: &OwnerFacts<'_>,
    ) -> Result<Vec<Reaction>, Refused> {
        let mut out = Vec::new();
        if !around.demand.spends() {
            return Err(Refused::NotNow(words::reason::NOTHING_SPENT.to_owned()));
        }
        let in_a_turn =
            around.demand == Demand::Work && self.stage == Stage::Alive && self.parked_until.is_none();
        match level {
            Level::Within => {}
            Level::Soft => out.push(Reaction::BudgetWarning { what: what.to_owned() }),
            Level::Hard if in_a_turn => {
                // At once, whatever becomes of the clock.
                let deadline = Timestamp::default();
                self.exhausted.get_or_insert(Exhausted { what: what.to_owned(), deadline, until });
            }
            Level::Hard => match until {
                None => {
                    out.push(Reaction::Fail { reason: words::reason::budget(what), exit: Exit::Exhausted });
                }
                Some(until) if around.demand == Demand::Work && self.parked_until.is_none() => {
                    self.park_for_budget(until, words::reason::budget(what), &mut out);
                }
                // It spends nothing while it waits: the mark is told again when it is to work.
                Some(_) => return Err(Refused::NotNow(words::reason::NOTHING_SPENT.to_owned())),
            },
        }
        Ok(out)
    }

    /// A person has given more: a session that waits for it is due at once.
    pub fn budget_granted(&mut self, now: Timestamp) -> Result<(), Refused> {
        if !self.waits_for_budget {
            return Err(Refused::NotNow(words::reason::WAITS_FOR_NO_BUDGET.to_owned()));
        }
        self.parked_until = Some(now);
        Ok(())
    }

    /// A message was sent as often as allowed and never acknowledged.
    pub fn message_unacknowledged(
        &self,
        message: i64,
        headline: &str,
        demand: Demand,
    ) -> Result<Reaction, Refused> {
        can_ask(demand)?;
        Ok(Reaction::Ask { reason: words::reason::unacknowledged(message, headline) })
    }
}

fn can_ask(demand: Demand) -> Result<(), Refused> {
    if demand.may_ask() { Ok(()) } else { Err(Refused::NotNow(words::reason::NOBODY_IS_ASKED.to_owned())) }
}

/// The pause before restart number `restarts`, counted from 1.
fn restart_pause(restarts: u32, policy: &Policy) -> Duration {
    match restarts {
        0 | 1 => Duration::ZERO,
        n => {
            let doubled = 1u32.checked_shl(n - 2).unwrap_or(u32::MAX);
            policy.restart_backoff.saturating_mul(doubled).min(policy.restart_backoff_max)
        }
    }
}
