//! Workflows: the durable things of Pointsman. A task, a run of a formula and a vault action each are one.
//!
//! A workflow is a snapshot with a pure step: an event comes in, the next snapshot and orders to the world come out. Not
//! here: the parts that workflows share ([`crate::part`]), and anything that writes or acts.

use std::fmt;

/// An event that changes nothing. It is logged and shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It speaks of an earlier session, commit or try.
    Stale(String),
    /// The present state does not allow it.
    NotNow(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale(why) | Self::NotNow(why) => f.write_str(why),
        }
    }
}
