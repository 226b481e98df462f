//! The step of a run: the next run and the orders that follow from an event.

mod hand_in;

use super::{Event, Policy, Run, Status, StepDone, Subject};
use crate::action;
use crate::deed::{Act, Ending};
use crate::part::question::{self, Cause, Kind, Question, Settled, Settlement};
use crate::part::session::{self, Fact, OwnerFacts, Reaction};
use crate::session::budget::Level;
use crate::task::{Effect, Exit, Headline, Notice, Opening, Phase};
use crate::text::clean_line;
use crate::time::Timestamp;
use crate::words;
use crate::workflow::Refused;

/// Longest reason that is kept.
const REASON_CHARS: usize = 500;
const END_SESSION: &str = "end_session";
const READ_RESULT: &str = "read_result";
const CLEAN_UP: &str = "clean_up";
const NOTIFY: &str = "notify";
const REQUEST_REVIEW: &str = "request_review";
const SYNC_BRANCH: &str = "sync_branch";
const OPEN_PULL_REQUEST: &str = "open_pull_request";

/// The next run and what is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    /// The run after the event.
    pub run: Run,
    /// Orders to the world, in this order.
    pub effects: Vec<Effect>,
}

/// The next run and its orders after `event` at `now`.
pub fn step(run: &Run, event: &Event, policy: &Policy, now: Timestamp) -> Result<Transition, Refused> {
    let mut draft = Draft { run: run.clone(), effects: Vec::new(), policy, now };
    match event {
        Event::Begun => draft.begin(),
        Event::Session { generation, told } => draft.session_event(*generation, told)?,
        Event::StepDone { generation, step } => draft.step_done(*generation, step)?,
        Event::Finished { generation, result } => draft.finished(*generation, result.as_ref())?,
        Event::GaveUp { generation, why, unusable } => {
            draft.is_about(*generation)?;
            draft.gave_up(why, *unusable);
        }
        Event::SetupFailed { generation, opening, error, log } => {
            draft.setup_failed(*generation, *opening, error, log)?;
        }
        Event::SetupRetried { .. } => draft.setup_retried()?,
        Event::PortsAssigned { ports } => draft.run.ports.clone_from(ports),
        Event::Answered { by, text } => draft.answered(by, text)?,
        Event::TimePassed => draft.time_passed(),
        Event::TimeSkipped { by_ms } => draft.time_skipped(*by_ms),
        Event::Stopped { by } => {
            draft.is_under_way()?;
            draft.over(Status::Stopped, &words::run::stopped(by), Exit::Stopped);
        }
        Event::HandedIn { files, .. } => draft.handed_in(files.as_ref())?,
        Event::LandingBegun { turn } => draft.landing_begun(turn)?,
        Event::HandInDropped { .. } => draft.hand_in_dropped()?,
        Event::CommitPut { commit } => draft.on_its_way()?.puts(commit),
        Event::BranchTaken { commit } => draft.branch_taken(commit)?,
        Event::Contribution { about } => draft.contributed(about)?,
        Event::CleanedUp => draft.run.cleaning = false,
        Event::DeedWanted { name, act } => draft.deed_wanted(name, act)?,
        Event::DeedEnded { name, ending } => draft.deed_ended(name, ending)?,
        Event::EffectGaveUp { effect, error } => draft.effect_gave_up(effect, error),
    }
    Ok(Transition { run: draft.run, effects: draft.effects })
}

/// The next run under construction.
struct Draft<'a> {
    run: Run,
    effects: Vec<Effect>,
    policy: &'a Policy,
    now: Timestamp,
}

impl<'a> Draft<'a> {
    fn is_under_way(&self) -> Result<(), Refused> {
        match self.run.status.is_over() {
            true => Err(Refused::NotNow(words::run::over(self.run.status))),
            false => Ok(()),
        }
    }

    /// Refuses what is said of an earlier session, or of a run that is over.
    fn is_about(&self, generation: u32) -> Result<(), Refused> {
        if generation != self.run.session.generation {
            return Err(Refused::Stale(words::run::REPLACED.to_owned()));
        }
        self.is_under_way()
    }

    fn session_event(&mut self, generation: u32, event: &session::Event) -> Result<(), Refused> {
        match event {
            session::Event::PhaseClaimed { phase, reason, .. } => {
                self.is_about(generation)?;
                self.claimed(generation, *phase, reason.as_deref())
            }
            session::Event::PhaseRejected { why } => {
                self.is_about(generation)?;
                let reason = words::reason::phase_rejected(why);
                self.notify(words::run::notice(&self.run, &reason));
                Ok(())
            }
            session::Event::ResponseGiven { text } => {
                self.is_about(generation)?;
                self.notify(words::run::response(&self.run, text));
                Ok(())
            }
            session::Event::BudgetReached { level: Level::Hard, what, .. } if self.run.demand().spends() => {
                // Nothing of a run lands: it ends at once, with its work captured, and not after the turn.
                self.over(Status::Stopped, &words::reason::budget(what), Exit::Exhausted);
                Ok(())
            }
            session::Event::BudgetReached { level, what, until } => {
                let around = self.around();
                let reactions = self.run.session.budget_reached(*level, what, *until, &around)?;
                self.follow(reactions);
                Ok(())
            }
            // A run that used up its budget is over.
            session::Event::BudgetGranted => self.run.session.budget_granted(self.now),
            session::Event::MessageUnacknowledged { message, headline } => {
                let demand = self.run.demand();
                let reaction = self.run.session.message_unacknowledged(*message, headline, demand)?;
                self.follow(vec![reaction]);
                Ok(())
            }
            session::Event::Started
            | session::Event::NotStarted { .. }
            | session::Event::Ended { .. }
            | session::Event::IdleLooked { .. }
            | session::Event::ContextMeasured { .. }
            | session::Event::SymptomSeen { .. }
            | session::Event::ContextCompacted
            | session::Event::TurnEnded
            | session::Event::TurnFailed { .. }
            | session::Event::DialogSeen { .. }
            | session::Event::HooksSilent { .. } => match event.fact() {
                Some(fact) => self.fact(generation, &fact),
                None => Ok(()),
            },
        }
    }

    fn fact(&mut self, generation: u32, fact: &Fact<'_>) -> Result<(), Refused> {
        self.run.session.is_current(generation)?;
        // All steps are done, and the agent will not say so any more: what it left as its result decides.
        let is_through = match fact {
            Fact::Ended { .. } => self.run.next_step().is_none(),
            // One that was told to correct its result may not have begun to.
            Fact::TurnEnded | Fact::IdleLooked { at_prompt: true } => {
                self.run.next_step().is_none() && !self.run.corrected
            }
            Fact::NotStarted { error } if !self.run.status.is_over() => {
                self.run.never_began = generation == 1;
                self.over(Status::Failed, error, Exit::Failed);
                return Ok(());
            }
            Fact::NotStarted { .. } => false,
            Fact::Started
            | Fact::IdleLooked { at_prompt: false }
            | Fact::ContextMeasured(_)
            | Fact::SymptomSeen(_)
            | Fact::ContextCompacted
            | Fact::TurnFailed { .. }
            | Fact::DialogSeen { .. }
            | Fact::HooksSilent { .. } => false,
        };
        if is_through && !self.run.status.is_over() && self.run.phase.is_none() {
            self.read_result(generation);
        }
        let around = self.around();
        let looked = matches!(fact, Fact::IdleLooked { .. }) && is_through;
        match self.run.session.happened(generation, fact, &around) {
            Ok(reactions) => self.follow(reactions),
            // The look that found it through has done its work.
            Err(_) if looked => {}
            Err(refused) => return Err(refused),
        }
        Ok(())
    }

    fn claimed(&mut self, generation: u32, phase: Phase, reason: Option<&str>) -> Result<(), Refused> {
        let reason = reason.unwrap_or(words::reason::NONE_GIVEN);
        match phase {
            Phase::Done => {
                self.read_result(generation);
                Ok(())
            }
            Phase::Failed => {
                self.over(Status::Failed, reason, Exit::Failed);
                Ok(())
            }
            Phase::Escalate => {
                self.run.phase = Some(Phase::Escalate);
                self.ask(Cause::Agent, reason);
                Ok(())
            }
            Phase::AwaitingCi | Phase::AwaitingReview => {
                Err(Refused::NotNow(words::run::NOTHING_TO_AWAIT.to_owned()))
            }
        }
    }

    fn step_done(&mut self, generation: u32, step: &str) -> Result<(), Refused> {
        self.is_about(generation)?;
        let Some((_, wanted)) = self.run.formula.step(step) else {
            return Err(Refused::NotNow(words::run::no_such_step(&self.run.formula.name, step)));
        };
        if let Some(missing) = wanted.needs.iter().find(|need| !self.run.is_done(need)) {
            return Err(Refused::NotNow(words::run::step_too_early(step, missing)));
        }
        if !self.run.is_done(step) {
            self.run.done.push(StepDone { id: step.to_owned(), at: self.now, generation });
        }
        Ok(())
    }

    fn finished(&mut self, generation: u32, result: Option<&serde_json::Value>) -> Result<(), Refused> {
        self.is_about(generation)?;
        match self.run.next_step() {
            None => {
                self.run.result = result.cloned();
                self.over(Status::Done, "", Exit::Done);
            }
            Some(missing) => {
                let why = words::run::step_left_out(&missing.id);
                self.over(Status::Failed, &why, Exit::Failed);
            }
        }
        Ok(())
    }

    /// A session that still listens may correct a result once. After that, or without a session, the run has failed.
    fn gave_up(&mut self, why: &str, unusable: bool) {
        if !unusable || self.run.corrected || !self.run.session.is_listening() {
            self.over(Status::Failed, why, Exit::Failed);
            return;
        }
        self.run.corrected = true;
        self.run.phase = None;
        // This message asks for the phase as well.
        self.run.session.reminded = true;
        let mut reactions = Vec::new();
        self.run.session.tell(Headline::WritePhase, words::message::unusable_result(why), &mut reactions);
        self.follow(reactions);
    }

    fn read_result(&mut self, generation: u32) {
        self.settle_question();
        self.run.phase = Some(Phase::Done);
        self.order(Effect::ReadResult { generation });
    }

    /// The tree could not be set up. That is no fault of the agent: it costs no restart, and a person is asked.
    fn setup_failed(
        &mut self,
        generation: u32,
        opening: Opening,
        error: &str,
        log: &str,
    ) -> Result<(), Refused> {
        self.run.session.not_set_up(generation, opening)?;
        self.run.setup_failures += 1;
        // Whoever is asked something already brings up the next session with the answer.
        if self.run.demand().may_ask() {
            self.ask_about(Kind::Setup, Cause::Setup, &words::reason::setup_failed(error));
            if let Some(asked) = &mut self.run.question {
                asked.body = words::question::setup_failed(&asked.subject, self.run.setup_failures, log);
            }
        }
        Ok(())
    }

    fn setup_retried(&mut self) -> Result<(), Refused> {
        self.is_under_way()?;
        if self.run.question.as_ref().is_none_or(|asked| asked.kind != Kind::Setup) {
            return Err(Refused::NotNow(words::run::NOBODY_ASKED.to_owned()));
        }
        self.settle_question();
        self.start();
        Ok(())
    }

    fn ask(&mut self, cause: Cause, text: &str) {
        self.ask_about(Kind::Question, cause, text);
    }

    /// Asks a person. A run asks one question at a time: a new one takes the place of the one before.
    fn ask_about(&mut self, kind: Kind, cause: Cause, text: &str) {
        self.wait_is_over();
        let source = self.run.source();
        let asked = Question::ask(kind, cause, source, text, &self.policy.question, self.now);
        self.run.reason = Some(asked.subject.clone());
        self.run.question = Some(asked);
        self.order(Effect::NotifyQuestion);
        if let Some(Subject::Action { issue }) = self.run.subject {
            self.deed(&format!("question/{}", self.now.0), Act::AskOnIssue { issue });
        }
    }

    /// Orders a deed; false if it was ordered before.
    fn deed(&mut self, name: &str, act: Act) -> bool {
        let new = self.run.deeds.order(name);
        if new {
            self.order(Effect::Deed { name: name.to_owned(), act });
        }
        new
    }

    fn deed_wanted(&mut self, name: &str, act: &Act) -> Result<(), Refused> {
        // A pull request that was closed may be opened again, at the same commit.
        if matches!(act, Act::PostReview { .. }) && self.run.deeds.get(name) == Some(Some(&Ending::Gone)) {
            self.run.deeds.forget(name);
        }
        match self.deed(name, act.clone()) {
            true => Ok(()),
            false => Err(Refused::Stale(words::reason::deed_is_ordered(name))),
        }
    }

    /// One that the forge refuses for good has ended, too: people are told, and it is not wanted again.
    fn deed_ended(&mut self, name: &str, ending: &Ending) -> Result<(), Refused> {
        self.run.deeds.end(name, ending)?;
        if let Ending::Refused { error } = ending {
            let reason = words::reason::gave_up(name, error);
            self.notify(words::run::notice(&self.run, &reason));
        }
        Ok(())
    }

    fn answered(&mut self, by: &str, text: &str) -> Result<(), Refused> {
        self.is_under_way()?;
        let Some(asked) = &self.run.question else {
            return Err(Refused::NotNow(words::run::NOBODY_ASKED.to_owned()));
        };
        asked.step(&question::Event::Answered { by, text }, &self.policy.question, self.now)?;
        self.settle_question();
        let mut reactions = Vec::new();
        self.run.session.tell(Headline::Answer, words::message::answer(by, text), &mut reactions);
        self.follow(reactions);
        Ok(())
    }

    /// The wait for a person is over, and costs the run nothing of its time.
    fn settle_question(&mut self) {
        if self.wait_is_over() {
            (self.run.phase, self.run.reason) = (None, None);
        }
    }

    fn wait_is_over(&mut self) -> bool {
        let Some(asked) = self.run.question.take() else { return false };
        self.run.waited_ms += millis(asked.asked_at, self.now);
        true
    }

    /// Its lifetime and its waits for machines count the time in which this one was awake.
    fn time_skipped(&mut self, by_ms: i64) {
        self.run.session.skip(by_ms);
        self.run.waited_ms = self.run.waited_ms.saturating_add_signed(by_ms);
        self.run.retry_at = self.run.retry_at.map(|at| at.moved(by_ms));
        if let Some(landing) = self.run.hand_in.as_mut().and_then(crate::hand_in::HandIn::landing_mut) {
            landing.contribution.skip(by_ms);
        }
    }

    fn time_passed(&mut self) {
        self.landing_time_passed();
        if self.run.status.is_over() {
            if self.run.session.is_listening() {
                self.run.retry_at = None;
                self.end_session(Exit::Stopped);
                self.clean_up();
            }
            return;
        }
        // First: no session starts for a run whose time is up.
        if self.run.deadline(self.policy).is_some_and(|at| at <= self.now) {
            self.deadline_passed();
        }
        if !self.run.status.is_over() {
            let around = self.around();
            let reactions = self.run.session.time_passed(&around);
            self.follow(reactions);
        }
    }

    fn deadline_passed(&mut self) {
        match self.run.question.clone() {
            Some(asked) => self.question_due(&asked),
            // Nothing but a word is missing: what was done counts.
            None if self.run.next_step().is_none() && self.run.session.generation > 0 => {
                self.read_result(self.run.session.generation);
            }
            None => {
                let why = words::run::out_of_time(self.policy.lifetime);
                self.over(Status::Failed, &why, Exit::IdleTimeout);
            }
        }
    }

    /// People are reminded of the question, or have not answered in time.
    fn question_due(&mut self, asked: &Question) {
        match asked.step(&question::Event::TimePassed, &self.policy.question, self.now) {
            Ok(next) if next.is_open() => {
                self.run.question = Some(next);
                self.order(Effect::NotifyQuestion);
            }
            Ok(_) => {
                let why = words::run::nobody_answered(self.policy.question.timeout, &asked.subject);
                self.over(Status::Failed, &why, Exit::EscalationTimeout);
            }
            // The clock went back: nothing is due.
            Err(_) => {}
        }
    }

    fn effect_gave_up(&mut self, effect: &str, error: &str) {
        let reason = words::reason::gave_up(effect, error);
        if effect == END_SESSION {
            self.run.session.could_not_be_ended();
            self.run.retry_at = Some(self.now.after(self.policy.session.restart_backoff_max));
        }
        if effect == CLEAN_UP {
            // It stays where it is, and people are told.
            self.run.cleaning = false;
        }
        if effect == SYNC_BRANCH || effect == OPEN_PULL_REQUEST {
            self.not_brought();
        }
        if effect == REQUEST_REVIEW && self.run.landing().is_some() {
            self.needs_review();
        } else if effect == READ_RESULT && !self.run.status.is_over() {
            self.over(Status::Failed, &reason, Exit::Failed);
        } else if effect != NOTIFY {
            // Nobody can be told that nobody can be told.
            self.notify(words::run::notice(&self.run, &reason));
        }
    }

    /// Comes to its end. Whatever its session left is captured and put away.
    fn over(&mut self, status: Status, why: &str, exit: Exit) {
        (self.run.status, self.run.ended_at) = (status, Some(self.now));
        (self.run.question, self.run.phase) = (None, None);
        self.run.reason = Some(clean_line(why, REASON_CHARS)).filter(|why| !why.is_empty());
        self.run.session.parked_until = None;
        self.end_session(exit);
        self.clean_up();
    }

    fn clean_up(&mut self) {
        self.run.cleaning = true;
        self.order(Effect::CleanUp);
    }

    fn begin(&mut self) {
        if self.policy.ports > 0 {
            // Written down before any session starts, so that two never have the same.
            self.order(Effect::ReservePorts);
        }
        self.start();
        if let Some(Subject::Action { issue }) = self.run.subject {
            self.deed("claim", action::claim(issue));
        }
    }

    fn start(&mut self) {
        let mut reactions = Vec::new();
        self.run.session.start(&mut reactions);
        self.follow(reactions);
    }

    fn end_session(&mut self, exit: Exit) {
        let mut reactions = Vec::new();
        self.run.session.end(exit, &mut reactions);
        self.follow(reactions);
    }

    fn around(&self) -> OwnerFacts<'a> {
        OwnerFacts {
            demand: self.run.demand(),
            has_phase: self.run.phase.is_some(),
            is_final: self.run.phase == Some(Phase::Done),
            policy: &self.policy.session,
            now: self.now,
        }
    }

    fn order(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    fn notify(&mut self, notice: Notice) {
        self.order(Effect::Notify(notice));
    }

    /// Passes the orders of the session on and draws the run's conclusions.
    fn follow(&mut self, reactions: Vec<Reaction>) {
        for reaction in reactions {
            self.react(reaction);
        }
    }

    fn react(&mut self, reaction: Reaction) {
        let generation = self.run.session.generation;
        match reaction {
            Reaction::Start { opening } => {
                self.run.status = Status::Starting;
                self.order(Effect::StartSession { generation, opening });
            }
            Reaction::End { exit } => self.order(Effect::EndSession { generation, exit }),
            Reaction::Checkpoint { why } => self.order(Effect::Checkpoint { why: why.to_owned() }),
            Reaction::Tell { headline, subject, details } => {
                self.order(Effect::Deliver { generation, headline, subject, details });
            }
            Reaction::CameUp => match self.run.status.is_over() {
                // It was over before its session was up.
                true => self.end_session(Exit::Stopped),
                false => {
                    self.run.status = Status::Running;
                    if self.run.question.is_none() {
                        self.run.reason = None;
                    }
                }
            },
            Reaction::Gone => {}
            Reaction::Replaced => {
                (self.run.status, self.run.reason) =
                    (Status::Starting, Some(words::run::SESSION_DIED.to_owned()));
            }
            Reaction::CrashLoop { .. } => {
                let why = words::run::died_often(self.run.session.restarts);
                self.over(Status::Failed, &why, Exit::Crashed);
            }
            Reaction::Fail { reason, exit } => self.over(Status::Failed, &reason, exit),
            Reaction::Ask { reason } => self.ask(Cause::Daemon, &reason),
            Reaction::Park { until, reason } => {
                let from = self.run.session.parked_until.unwrap_or(self.now).max(self.now);
                self.run.waited_ms += millis(from, until);
                self.run.session.parked_until = Some(until);
                self.run.reason = Some(reason);
            }
            Reaction::Unparked => {
                self.run.session.parked_until = None;
                self.run.reason = None;
                let mut reactions = Vec::new();
                self.run.session.tell(Headline::Answer, words::message::go_on(), &mut reactions);
                self.follow(reactions);
            }
            Reaction::BudgetWarning { what } => self.notify(words::run::notice(&self.run, &what)),
            Reaction::HooksSilent => {
                self.notify(words::run::notice(&self.run, words::reason::HOOKS_SILENT));
            }
            Reaction::Remind => {
                let mut reactions = Vec::new();
                let words =
                    words::message::no_phase_of_run(self.run.next_step().map(|step| step.id.as_str()));
                self.run.session.tell(Headline::WritePhase, words, &mut reactions);
                self.follow(reactions);
            }
        }
    }
}

/// The time from one moment to a later one. A clock that went back in between adds nothing.
fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

/// The changes of a run's question because of an event. The one after it has its number.
pub fn questions(before: &Run, event: &Event, after: &Run, now: Timestamp) -> Vec<question::Change> {
    question::changes(before.question.as_ref(), after.question.as_ref(), || end(event, after, now))
}

/// The end of a question that the run does not ask any more.
fn end(event: &Event, after: &Run, at: Timestamp) -> Settled {
    let withdrawn = |why: String| (None, Settlement::Withdrawn { why });
    let (by, how) = match event {
        Event::Answered { by, text } => (Some(by.clone()), Settlement::Answered { text: text.clone() }),
        Event::SetupRetried { by } => (Some(by.clone()), Settlement::Approved),
        Event::TimePassed => (None, Settlement::Expired),
        Event::Session { .. } if after.question.is_some() => {
            withdrawn(words::run::ASKS_SOMETHING_ELSE.to_owned())
        }
        Event::Session { .. } if !after.status.is_over() => {
            withdrawn(words::question::AGENT_WENT_ON.to_owned())
        }
        Event::Begun
        | Event::Session { .. }
        | Event::StepDone { .. }
        | Event::Finished { .. }
        | Event::GaveUp { .. }
        | Event::SetupFailed { .. }
        | Event::PortsAssigned { .. }
        | Event::Stopped { .. }
        | Event::TimeSkipped { .. }
        | Event::HandedIn { .. }
        | Event::LandingBegun { .. }
        | Event::HandInDropped { .. }
        | Event::CommitPut { .. }
        | Event::BranchTaken { .. }
        | Event::Contribution { .. }
        | Event::CleanedUp
        | Event::DeedWanted { .. }
        | Event::DeedEnded { .. }
        | Event::EffectGaveUp { .. } => withdrawn(words::run::now(after.status)),
    };
    Settled { by, at, how }
}
