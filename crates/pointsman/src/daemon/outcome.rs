//! The outcome of an effect.

use std::path::PathBuf;

use pointsman_core::task::{Effect, Event, Task};
use pointsman_store::{NewEntry, Outgoing, SessionRow};

/// Performs effects. The daemon has the real world, the simulation a pretended one.
pub trait PerformEffects: Send + Sync {
    /// Does what `outgoing` orders, or finds that it was done. `task` is as it was when the effect
    /// became due.
    fn perform(&self, outgoing: &Outgoing, task: &Task) -> Outcome;
}

/// The answer to an order.
#[derive(Debug)]
pub enum Outcome {
    Done(Performed),
    /// Not now; nothing is lost by trying again.
    Later {
        error: String,
    },
    /// Never, until somebody changes something.
    Never {
        error: String,
    },
}

/// A reason why an event changed nothing in a run or in a vault action.
#[derive(Debug)]
pub(crate) enum NotTaken {
    /// There is no such thing.
    Missing,
    /// It does not allow it, in these words.
    Refused(String),
}

/// The results of a performed effect.
#[derive(Debug, Default)]
pub struct Performed {
    pub events: Vec<Event>,
    pub sessions: Vec<SessionRow>,
    pub note: Option<Note>,
}

/// A record that an effect leaves in the store beside the task.
#[derive(Debug)]
pub enum Note {
    /// A message is on the agent's terminal; its details are in this file.
    MessageSent { path: PathBuf },
    /// A message waits: a dialog or an unknown screen is a person's to deal with first. Its details are in this file.
    MessageHeld { path: PathBuf },
    /// A message has nobody to go to; the successor's prompt tells it.
    MessageSuperseded,
    /// A branch wants to land.
    Enqueue(Box<NewEntry>),
    /// A branch no longer wants to land.
    Dequeue { branch: String },
}

impl Outcome {
    /// Done, and nothing to tell.
    pub fn done() -> Self {
        Self::Done(Performed::default())
    }

    /// Done, and the task learns this.
    pub fn event(event: Event) -> Self {
        Self::Done(Performed { events: vec![event], ..Performed::default() })
    }

    /// Done, and this is written down.
    pub fn note(note: Note) -> Self {
        Self::Done(Performed { note: Some(note), ..Performed::default() })
    }
}

/// Turns an effect that can never be done into the event that its task learns.
pub(crate) fn gave_up(effect: &Effect, error: String) -> Event {
    match effect {
        Effect::StartSession { generation, .. } => {
            Event::SessionNotStarted { generation: *generation, error }
        }
        Effect::ClaimIssue
        | Effect::EndSession { .. }
        | Effect::Checkpoint { .. }
        | Effect::SyncBranch
        | Effect::OpenPullRequest
        | Effect::RunChecks { .. }
        | Effect::RequestReview { .. }
        | Effect::Enqueue { .. }
        | Effect::Dequeue
        | Effect::Deliver { .. }
        | Effect::SetLabels { .. }
        | Effect::Comment { .. }
        | Effect::Notify(_)
        | Effect::CloseIssue
        | Effect::RecordCiResult { .. }
        | Effect::CleanUp
        | Effect::VerifyMerge => Event::EffectGaveUp { effect: effect.kind().to_owned(), error },
    }
}
