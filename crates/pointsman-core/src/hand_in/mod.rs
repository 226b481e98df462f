//! Files that a role's session hands in: rules select them, and they become one commit and one contribution of their run,
//! which lands as a task's does.
//!
//! `rules` selects the files and does not trust the session: a file outside the rules is not handed in, whatever the
//! session says. `state` has what a run remembers of it, and the turns that the runs of a role take. The way to the main
//! branch is [`crate::part::contribution`]; how a run reacts to it is in [`crate::run`].

mod rules;
mod state;
#[cfg(test)]
mod tests;

pub use rules::{
    Change, Choice, FILE_BYTES, FILES, Kind, Refusal, RefusalReason, UnreportedCi, carries_on, choose,
    content, is_text,
};
pub use state::{
    DropReason, EarlierHandIn, HandIn, HandInFiles, Landing, Memory, Need, Outcome, Stage, Turn, turns,
};
