//! A session: is it alive, what is it doing, how full is its context, what has it spent.
//!
//! Pure rules over observations; who makes the observations is in the daemon. Not here: what
//! follows for the task ([`crate::task`]).

pub mod budget;
pub mod context;
pub mod liveness;
pub mod quota;
pub mod screen;
pub mod trouble;
pub mod work;
