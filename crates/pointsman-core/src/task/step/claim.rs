//! Phases the agent claims. A claim only asks us to look; the facts decide.

use super::{Draft, Refused};
use crate::part::question::Cause;
use crate::part::session::Stage;
use crate::session::trouble::OutsideTrouble;
use crate::task::effect::{Effect, Exit};
use crate::task::phase::{Phase, Refusal};
use crate::task::plan::is_plan;
use crate::task::state::State;
use crate::words;

/// What an agent says with a phase.
#[derive(Clone, Copy)]
pub(super) struct Said<'a> {
    pub(super) reason: Option<&'a str>,
    /// A refusal found in the summary file.
    pub(super) refusal: Option<&'a Refusal>,
    /// The plan found in the plan file.
    pub(super) plan: Option<&'a str>,
}

impl Draft<'_> {
    pub(super) fn phase_claimed(
        &mut self,
        generation: u32,
        phase: Phase,
        said: Said<'_>,
    ) -> Result<(), Refused> {
        self.task.session.is_current(generation)?;
        if self.task.state == State::Paused {
            // Said while the session was on its way out: looked into when the task goes on.
            self.task.phase = Some(phase);
            self.task.handed_in = matches!(phase, Phase::AwaitingCi | Phase::AwaitingReview);
            return Ok(());
        }
        if !self.task.state.has_session() {
            return Err(Refused::NotNow(words::task::refused::takes_no_phase(self.task.state)));
        }
        self.task.phase = Some(phase);
        self.task.session.idle_looks = 0;
        self.task.session.reminded = false;
        self.task.session.parked_until = None;
        if self.task.state == State::Merged {
            // On the main branch already: whatever the agent claims now, there is nothing left to do.
            if matches!(phase, Phase::Done | Phase::Failed) {
                self.finish();
            }
            return Ok(());
        }
        self.react(phase, said);
        if self.ends_exhausted() {
            return Ok(());
        }
        if self.task.session.stage == Stage::Alive {
            self.order(Effect::Checkpoint { why: format!("phase {phase}") });
        }
        Ok(())
    }

    fn react(&mut self, phase: Phase, said: Said<'_>) {
        let Said { reason, refusal, plan } = said;
        match phase {
            Phase::AwaitingCi | Phase::AwaitingReview
                if matches!(self.task.state, State::Working | State::Escalated) && self.wants_plan() =>
            {
                self.handed_in_without_plan();
            }
            Phase::Escalate if self.wants_plan() && is_plan(reason) => self.plan_claimed(plan),
            Phase::AwaitingCi | Phase::AwaitingReview => {
                if matches!(self.task.state, State::Working | State::Escalated) && !self.waits_for_reviewer()
                {
                    // CI has its own clock; bringing the branch to a forge that is down may take longer.
                    self.await_push(self.policy.session_timeout);
                }
                self.order(Effect::SyncBranch);
            }
            Phase::Escalate => {
                let reason = reason.unwrap_or(words::reason::NONE_GIVEN);
                self.leave_queue();
                self.escalate(Cause::Agent, reason.to_owned());
            }
            Phase::Done => {
                if self.task.state == State::Working {
                    self.enter(State::Working);
                }
                self.order(Effect::VerifyMerge);
            }
            Phase::Failed => match (refusal, reason.and_then(|r| OutsideTrouble::parse(r, self.now))) {
                (Some(refusal), _) => self.refuse(refusal.clone()),
                (None, Some(trouble)) => self.park(&trouble),
                (None, None) => {
                    let reason = reason.unwrap_or(words::reason::NONE_GIVEN);
                    self.fail(words::reason::agent_failed(reason), Exit::Failed);
                }
            },
        }
    }

    pub(super) fn phase_rejected(&mut self, generation: u32, why: &str) -> Result<(), Refused> {
        self.task.session.is_current(generation)?;
        let reason = words::reason::phase_rejected(why);
        self.notify(words::notice::phase_rejected(&self.task, &reason));
        self.task.reason = Some(reason);
        Ok(())
    }
}
