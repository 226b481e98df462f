//! Seeing trouble come: observations about CI, agents, issues and the machine, each with its evidence. Features are never
//! its subject: what can be said is a closed list.
//!
//! `signals` turns figures into predictions, `memory` has what was measured on which day and what was said already.
//! Counting and filing belong elsewhere; the sentences are in [`crate::words::predictor`].

mod memory;
mod signals;
#[cfg(test)]
mod tests;

pub use memory::{Memory, Sample};
pub use signals::{Counts, Figures, Prediction, predict};
