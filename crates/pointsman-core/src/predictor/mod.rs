//! The predictor warns of problems in CI, agents, issues and the machine, and gives its evidence. Its predictions
//! come from a closed list; features are never among them.
//!
//! `signals` turns figures into predictions. `memory` has the measurements of each day and the predictions already
//! made, `deeds` the issues that follow. The daemon counts. The sentences are in [`crate::words::predictor`].

mod deeds;
mod memory;
mod signals;
#[cfg(test)]
mod tests;

pub use deeds::issue_name;
pub use memory::{Memory, Sample};
pub use signals::{Counts, Figures, Prediction, predict};
