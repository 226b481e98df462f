//! The outcome of an effect.

use std::path::PathBuf;
use std::time::Duration;

use pointsman_core::notifier::Posting;
use pointsman_core::task;
use pointsman_core::time::Timestamp;
use pointsman_core::workflow::{Event, Workflow};
use pointsman_store::{Delivered, DeliveryId, NewEntry, Outgoing, SessionRow};

/// Performs effects. The daemon has the real world, the simulation a pretended one.
pub trait PerformEffects: Send + Sync {
    /// Does what `outgoing` orders, or finds that it was done. `owner` is as it was when the effect
    /// became due.
    fn perform(&self, outgoing: &Outgoing, owner: &Workflow) -> Outcome;
}

/// The answer to an order.
#[derive(Debug)]
pub enum Outcome {
    Done(Performed),
    /// Not now; nothing is lost by trying again.
    Later {
        error: String,
    },
    /// A notifier does not work: nothing in its lanes is told until it has rested.
    Down {
        error: String,
        /// How long the other side asks to wait.
        asked: Option<Duration>,
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
    /// What people are told with it.
    pub notices: Vec<Posting>,
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
    /// A notice is told.
    Told {
        id: DeliveryId,
        delivered: Box<Delivered>,
        /// When: nobody can have answered before that.
        at: Timestamp,
    },
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

    /// Done, and the workflow learns this.
    pub fn learned(event: Event) -> Self {
        Self::Done(Performed { events: vec![event], ..Performed::default() })
    }

    /// Done, and the task learns this.
    pub fn event(event: task::Event) -> Self {
        Self::learned(Event::Task(event))
    }

    /// Done, and people are told this.
    pub fn notice(posting: Posting) -> Self {
        Self::Done(Performed { notices: vec![posting], ..Performed::default() })
    }

    /// Done, and this is written down.
    pub fn note(note: Note) -> Self {
        Self::Done(Performed { note: Some(note), ..Performed::default() })
    }
}
