//! Events of a run: past facts and people's orders.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::log;
use crate::part::session;
use crate::task::Phase;

/// A past fact, or an order from a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// It begins.
    Begun,
    /// Something became known about its session of one generation.
    Session {
        generation: u32,
        #[serde(flatten)]
        told: session::Event,
    },
    /// A step is done, says its session.
    StepDone {
        generation: u32,
        step: String,
    },
    /// The session is through, and its result was read.
    Finished {
        generation: u32,
        result: Option<serde_json::Value>,
    },
    /// The session gave up, or its result cannot be used.
    GaveUp {
        generation: u32,
        why: String,
    },
    /// A person answered its question.
    Answered {
        by: String,
        text: String,
    },
    TimePassed,
    Stopped {
        by: String,
    },
    /// What its sessions left is put away, with their work kept.
    CleanedUp,
    /// An order cannot be carried out, whatever we try.
    EffectGaveUp {
        effect: String,
        error: String,
    },
}

impl Event {
    /// The entry of the log for it, with the run before and after the event.
    pub fn entry(&self, before: &Run, run: &Run) -> log::Entry {
        let was_over = before.status.is_over();
        let ends = !was_over && run.status.is_over();
        let entry: fn(log::Run) -> log::Entry = match self {
            Self::Begun => log::Entry::RunBegun,
            Self::Session { told, .. } => match told {
                session::Event::Started => log::Entry::RunSessionStarted,
                session::Event::NotStarted { .. } => log::Entry::RunNotStarted,
                // It was through, or is put away.
                session::Event::Ended { .. } if was_over || run.phase == Some(Phase::Done) => {
                    log::Entry::RunSessionEnded
                }
                session::Event::Ended { .. } => log::Entry::RunSessionDied,
                session::Event::PhaseClaimed { .. }
                | session::Event::IdleLooked { .. }
                | session::Event::PhaseRejected { .. }
                | session::Event::ContextMeasured { .. }
                | session::Event::SymptomSeen { .. }
                | session::Event::ContextCompacted
                | session::Event::TurnEnded
                | session::Event::TurnFailed { .. }
                | session::Event::ResponseGiven { .. }
                | session::Event::DialogSeen { .. }
                | session::Event::HooksSilent { .. }
                | session::Event::BudgetReached { .. }
                | session::Event::MessageUnacknowledged { .. } => {
                    match (ends, before.question.is_none() && run.question.is_some()) {
                        (true, _) => log::Entry::RunGaveUp,
                        (false, true) => log::Entry::RunAsked,
                        (false, false) => log::Entry::RunSessionObserved,
                    }
                }
            },
            Self::StepDone { .. } => log::Entry::RunStepDone,
            Self::Finished { .. } => log::Entry::RunFinished,
            Self::GaveUp { .. } => log::Entry::RunGaveUp,
            Self::Answered { .. } => log::Entry::RunAnswered,
            Self::TimePassed if ends => log::Entry::RunTimedOut,
            Self::TimePassed => log::Entry::RunTimePassed,
            Self::Stopped { .. } => log::Entry::RunStopped,
            Self::CleanedUp => log::Entry::RunCleanedUp,
            Self::EffectGaveUp { .. } => log::Entry::RunEffectFailed,
        };
        entry(log::Run {
            run: run.id,
            formula: run.formula.name.clone(),
            step: run.next_step().map(|step| step.id.clone()),
            to: run.status,
            reason: run.reason.clone(),
            event: Some(self.clone()),
        })
    }
}
