//! The review agent: which commit is to be reviewed, what is known about a change before anybody judges it, what a
//! reviewer's answer must look like, and what becomes of it.
//!
//! * `plan`: what is to be done about a pull request next
//! * `patch`: a change as git tells it, line by line; `paths`: which paths are what; `secrets`: what looks like one;
//!   `facts`: what follows from these without a model
//! * `answer`: what a reviewer writes, strictly read; `outcome`: what is posted, which facts can only make more careful
//!
//! Its sentences are in [`crate::words::review`]. Asking and posting belong elsewhere.

mod answer;
mod facts;
mod outcome;
mod patch;
mod paths;
mod plan;
mod secrets;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Finding, FollowUp, Verdict};
pub use facts::{Facts, Landed, Scope, TakenBack};
pub use outcome::{Outcome, follow_ups, outcome};
pub use patch::{Change, File, Hunk, Kind, parse, parse_hunks};
pub use paths::{is_code, is_steering, is_test, protected};
pub use plan::{Attempt, Ci, Next, Sight, closes, plan};
pub use secrets::{Secret, SecretKind, blank_secrets, secrets};

/// The role whose sessions review.
pub const ROLE: crate::role::Role = crate::role::Role::Review;
/// The formula of a review.
pub const FORMULA: &str = ROLE.formula();

/// How often one commit is asked about: an unusable answer is asked for once more.
pub const TRIES: usize = 2;

/// How much of a change a reviewer is given to read at once; the rest is in its checkout.
pub const DIFF_BYTES: usize = 200 << 10;

/// Finds a review of ours again, and tells scripts which commit it is of.
pub fn mark(sha: &crate::ids::Sha) -> String {
    format!("<!-- reviewed: {sha} -->")
}
