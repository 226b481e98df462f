//! Events of a run: past facts and people's orders.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::deed::{Act, Ending};
use crate::hand_in::{self, DropReason, HandInFiles, Outcome, Turn};
use crate::ids::Sha;
use crate::log;
use crate::part::contribution;
use crate::part::session;
use crate::task::{Opening, Phase};
use crate::words;

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
        /// Whether it is the result that cannot be used, which the session may correct once.
        #[serde(default)]
        unusable: bool,
    },
    /// The working tree could not be set up, so the session of this generation never started.
    SetupFailed {
        generation: u32,
        /// The opening that its successor gets.
        opening: Opening,
        /// How it ended, in a few words.
        error: String,
        /// The end of its log.
        log: String,
    },
    /// A person wants the set-up tried again.
    SetupRetried {
        by: String,
    },
    /// Its sessions have these ports, and no others; none after its tree is gone.
    PortsAssigned {
        ports: Vec<u16>,
    },
    /// A person answered its question.
    Answered {
        by: String,
        text: String,
    },
    TimePassed,
    /// Time went by in which this machine was not awake, or its clock was set.
    TimeSkipped {
        by_ms: i64,
    },
    Stopped {
        by: String,
    },
    /// Its working tree was looked through, and this may be handed in.
    HandedIn {
        files: Option<HandInFiles>,
        /// What it changed beside that, one line each.
        refused: Vec<String>,
    },
    /// What it handed in has its turn.
    LandingBegun {
        turn: Turn,
    },
    /// What it handed in does not land.
    HandInDropped {
        why: DropReason,
    },
    /// We are about to put this commit on the branch of what it handed in.
    CommitPut {
        commit: Sha,
    },
    /// Somebody else has pushed to that branch.
    BranchTaken {
        commit: Sha,
    },
    /// Something became known about its contribution.
    Contribution {
        about: contribution::Event,
    },
    /// What its sessions left is put away, with their work kept.
    CleanedUp,
    /// Rules want something done on the forge about it.
    DeedWanted {
        /// Its name among the deeds of the run.
        name: String,
        #[serde(flatten)]
        act: Act,
    },
    /// Something that was wanted on the forge has ended.
    DeedEnded {
        name: String,
        #[serde(flatten)]
        ending: Ending,
    },
    /// An order cannot be carried out, whatever we try.
    EffectGaveUp {
        effect: String,
        error: String,
    },
}

impl Event {
    /// The entry of the log for it, with the run before and after the event.
    pub fn entry(&self, before: &Run, run: &Run) -> log::Entry {
        if let Some(said) = self.handed_in_entry(before, run) {
            return said;
        }
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
                | session::Event::BudgetGranted
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
            Self::GaveUp { .. } if ends => log::Entry::RunGaveUp,
            Self::GaveUp { .. } => log::Entry::RunSessionObserved,
            Self::SetupFailed { .. } => log::Entry::RunAsked,
            Self::PortsAssigned { .. } => log::Entry::RunSessionObserved,
            Self::Answered { .. } | Self::SetupRetried { .. } => log::Entry::RunAnswered,
            Self::TimePassed if ends => log::Entry::RunTimedOut,
            Self::TimePassed | Self::TimeSkipped { .. } => log::Entry::RunTimePassed,
            Self::Stopped { .. } => log::Entry::RunStopped,
            Self::HandedIn { .. }
            | Self::LandingBegun { .. }
            | Self::HandInDropped { .. }
            | Self::CommitPut { .. }
            | Self::BranchTaken { .. }
            | Self::Contribution { .. } => log::Entry::RunContribution,
            Self::CleanedUp => log::Entry::RunCleanedUp,
            Self::DeedWanted { .. } | Self::DeedEnded { .. } => log::Entry::RunDeed,
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

    /// The entry about what it hands in, if there is something to say: one line each for the role's journal.
    fn handed_in_entry(&self, before: &Run, run: &Run) -> Option<log::Entry> {
        let mut lines = match self {
            Self::HandedIn { refused, .. } => refused.clone(),
            Self::HandInDropped { why: DropReason::Unwanted } => vec![words::hand_in::unwanted(run.id)],
            Self::HandInDropped { .. }
            | Self::Begun
            | Self::Session { .. }
            | Self::StepDone { .. }
            | Self::Finished { .. }
            | Self::GaveUp { .. }
            | Self::SetupFailed { .. }
            | Self::SetupRetried { .. }
            | Self::PortsAssigned { .. }
            | Self::Answered { .. }
            | Self::TimePassed
            | Self::TimeSkipped { .. }
            | Self::Stopped { .. }
            | Self::LandingBegun { .. }
            | Self::CommitPut { .. }
            | Self::BranchTaken { .. }
            | Self::Contribution { .. }
            | Self::CleanedUp
            | Self::DeedWanted { .. }
            | Self::DeedEnded { .. }
            | Self::EffectGaveUp { .. } => Vec::new(),
        };
        let handed_in = run.hand_in.as_ref();
        let (was, is) = (before.landing(), run.landing());
        let files = handed_in.map(|handed| handed.files.files.as_slice()).unwrap_or_default();
        if let (Some(was), Some(is)) = (was, is) {
            let (from, to) = (&was.contribution, &is.contribution);
            match (from.pr(), to.pr()) {
                (None, Some(pr)) => lines.push(words::hand_in::opened(pr, files)),
                (Some(_), Some(pr)) if from.head() != to.head() => {
                    lines.push(words::hand_in::brought_up(pr, files));
                }
                (None | Some(_), None | Some(_)) => {}
            }
            // What was told before there was a pull request is said with its number.
            let news = was.told != is.told || from.pr().is_none();
            if let (Some(pr), Some(need)) = (to.pr(), is.told.as_ref().filter(|_| news)) {
                lines.push(words::hand_in::waits(pr, need));
            }
        }
        let ended = handed_in.filter(|_| was.is_some()).and_then(|handed| match &handed.stage {
            hand_in::Stage::Over { outcome, pr } => Some((*outcome, *pr)),
            hand_in::Stage::Waiting | hand_in::Stage::Open(_) => None,
        });
        let mut over = None;
        match ended {
            Some((outcome @ (Outcome::Merged | Outcome::Dismissed), pr)) => {
                lines.push(words::hand_in::over(pr, files, outcome));
                over = Some((outcome, pr));
            }
            Some((Outcome::Dropped, _)) | None => {}
        }
        if lines.is_empty() {
            return None;
        }
        let looked_through = matches!(self, Self::HandedIn { .. });
        let files = looked_through.then(|| handed_in.map(|handed| handed.files.files.clone()));
        let pr = match (over, is) {
            (Some((_, pr)), _) => Some(pr),
            (None, Some(landing)) => Some(landing.contribution.pr()),
            (None, None) => None,
        };
        let (role, outcome) = (run.formula.role(), over.map(|(outcome, _)| outcome.as_str().to_owned()));
        let said = log::HandIn { role, run: run.id, files, pr, outcome, lines };
        Some(if over.is_some() { log::Entry::HandInOver(said) } else { log::Entry::HandIn(said) })
    }
}
