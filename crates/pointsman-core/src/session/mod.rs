//! Rules about a session: is it alive, what does it do, how full is its context, how much has it spent?
//!
//! The rules are pure functions over observations, which the daemon makes. The consequences for the task are in
//! [`crate::task`].

pub mod budget;
pub mod context;
pub mod liveness;
pub mod quota;
pub mod screen;
pub mod trouble;
pub mod work;
