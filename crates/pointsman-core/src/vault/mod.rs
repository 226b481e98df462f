//! The vault holds dangerous actions until a rule or a person approves them.
//!
//! `action` is the submission, `estimate` its risk and who must be asked, `entry` the steps from submission to the
//! end, `look` the opinion of the vault's agent, `rules` the project's configuration, `address` the allowed
//! destinations. The daemon runs handlers and sends notices.

mod action;
mod address;
mod entry;
mod estimate;
mod look;
mod rules;
#[cfg(test)]
mod tests;

pub(crate) use action::is_name;
pub use action::{Action, ActionId, MAX_BYTES, Malformed, Risk};
pub use address::Address;
pub use entry::{Entry, Event, Firing, Order, Outcome, Policy, Status, Transition, questions, step};
pub use estimate::{Estimate, Route, route};
pub use look::{FORMULA, Opinion, ROLE, heard};
pub use rules::rule;
