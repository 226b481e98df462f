//! What a role's session may hand in of the files that it changed: by rules, as one commit, as one pull request that needs
//! what any other of the project needs.
//!
//! `rules` picks the files, `life` says what is next for what was handed in, `silence` what it means that its CI says nothing.
//! None trusts the session: what it did not
//! change within the rules is not handed in, whatever it says. Git and the forge are asked elsewhere.

mod life;
mod rules;
mod silence;
#[cfg(test)]
mod tests;

pub use life::{Checks, HandIn, InLine, Memory, Need, Next, Outcome, Sight, Taken, Took, next};
pub use rules::{
    Change, Choice, FILE_BYTES, FILES, Kind, Refusal, Why, carries_on, choose, content, is_text,
};
pub use silence::Silence;
