//! The vault: dangerous actions wait here until a rule or a person lets them go.
//!
//! `action` is what is submitted, `estimate` how dangerous it is taken to be and who must be asked, `entry` the life
//! of one action from submission to its end, `look` what the vault's agent may say about it, `rules` what a project's
//! configuration says, `address` where an action may be sent. Running handlers, telling people and remembering belong
//! elsewhere.

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
pub use entry::{Duty, Entry, Event, Outcome, Policy, Refused, Status, duty, step, submit};
pub use estimate::{Estimate, Route, route};
pub use look::{FORMULA, Opinion, ROLE};
pub use rules::rule;
