//! The agent's plan: asked about before it works, where the project wants that.

use super::{Draft, Refused};
use crate::part::question::{Cause, is_yes};
use crate::task::effect::{Exit, Headline};
use crate::task::plan::PlanStage;
use crate::task::state::State;
use crate::words;

impl Draft<'_> {
    /// Whether a person has to accept a plan before any work is taken.
    pub(super) fn wants_plan(&self) -> bool {
        self.policy.plan && self.task.plan != PlanStage::Accepted
    }

    /// The agent hands its plan in; none if its file cannot be read.
    pub(super) fn plan_claimed(&mut self, plan: Option<&str>) {
        match plan.map(str::trim).filter(|plan| !plan.is_empty()) {
            Some(plan) => self.ask_about_plan(plan),
            None => {
                self.enter(State::Working);
                self.tell(Headline::WritePhase, words::message::no_plan_file());
            }
        }
    }

    fn ask_about_plan(&mut self, plan: &str) {
        let text = words::question::plan(&self.task, plan);
        self.escalate_about(Cause::Plan, words::reason::plan(plan), Some(text));
    }

    /// The agent hands in work, and nobody has accepted a plan. It is told once; then a person decides about what there is.
    pub(super) fn handed_in_without_plan(&mut self) {
        if self.task.escalation.as_ref().is_some_and(|asked| asked.cause == Cause::Plan) {
            return;
        }
        match self.task.plan {
            PlanStage::Due => {
                self.task.plan = PlanStage::Reminded;
                self.enter(State::Working);
                self.tell(Headline::WritePhase, words::message::plan_first());
            }
            PlanStage::Reminded | PlanStage::SentBack | PlanStage::Accepted => {
                self.ask_about_plan(words::question::NO_PLAN);
            }
        }
    }

    /// A person says yes or no.
    pub(super) fn plan_decided(&mut self, by: &str, accepted: bool, reason: &str) -> Result<(), Refused> {
        self.asked_about_plan()?;
        if accepted {
            self.accept_plan(words::message::plan_accepted(by));
        } else {
            self.fail(words::reason::plan_rejected(by, reason), Exit::Stopped);
        }
        Ok(())
    }

    /// A person answers the plan with words; true if there was one to answer.
    pub(super) fn plan_answered(&mut self, by: &str, text: &str) -> bool {
        if self.asked_about_plan().is_err() {
            return false;
        }
        match self.task.plan {
            _ if is_yes(text) => self.accept_plan(words::message::plan_accepted(by)),
            PlanStage::SentBack => self.accept_plan(words::message::plan_accepted_with(by, text)),
            PlanStage::Due | PlanStage::Reminded | PlanStage::Accepted => {
                self.task.plan = PlanStage::SentBack;
                self.enter(State::Working);
                self.tell(Headline::Answer, words::message::plan_sent_back(by, text));
            }
        }
        true
    }

    fn accept_plan(&mut self, words: (String, String)) {
        self.task.plan = PlanStage::Accepted;
        self.enter(State::Working);
        self.tell(Headline::Answer, words);
    }

    fn asked_about_plan(&self) -> Result<(), Refused> {
        let is_asked = self.task.escalation.as_ref().is_some_and(|asked| asked.cause == Cause::Plan);
        match self.task.state == State::Escalated && is_asked {
            true => Ok(()),
            false => Err(Refused::NotNow(words::task::refused::nobody_asked(self.task.state))),
        }
    }
}
