//! A task: an issue being worked on, from claim to close.
//!
//! [`step`] is the reaction matrix: a task and an event in, the next task and orders to the world
//! out. Not here: choosing which task starts ([`crate::schedule`]), wording ([`crate::words`]),
//! anything that acts.

mod effect;
mod event;
mod phase;
mod plan;
mod policy;
mod questions;
mod signals;
mod state;
mod step;

pub use effect::{Effect, Exit, Headline, Notice, Opening};
pub use event::{Event, Order};
pub use phase::{Phase, Refusal, RefusalStatus};
pub use plan::{PlanStage, is_plan};
pub use policy::Policy;
pub use questions::{STANDING, held_up, questions, standing};
pub use signals::signals;
pub use state::{Given, State, Task};
pub use step::{Transition, step};

pub use crate::part::contribution::{
    Attempts, Ci, CiVerdict, Contribution, PrFact, QueueOutcome, Review, ReviewMode, ReviewVerdict,
};
pub use crate::part::session::{Exhausted, Handoff, Session, Stage};
pub use crate::workflow::Refused;
