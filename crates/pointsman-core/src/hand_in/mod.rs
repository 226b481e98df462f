//! Files that a role's session hands in: rules select them, and they become one commit and one pull request, which
//! needs the same checks and approvals as any other.
//!
//! `rules` selects the files. `state` decides the next step for a pull request. `unreported_ci` decides what it means that
//! CI reports nothing. None of them trusts the session: a file outside the rules is not handed in, whatever the
//! session says. The daemon talks to git and to the forge.

mod rules;
mod state;
#[cfg(test)]
mod tests;
mod unreported_ci;

pub use rules::{
    Change, Choice, FILE_BYTES, FILES, Kind, Refusal, RefusalReason, carries_on, choose, content, is_text,
};
pub use state::{
    Checks, HandIn, HandInFacts, HandInFiles, Memory, Need, NewFiles, Next, Outcome, QueueStatus, next,
};
pub use unreported_ci::UnreportedCi;
