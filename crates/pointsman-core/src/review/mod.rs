//! The review agent: which commit needs a review, which facts are known about a change, and what follows from the
//! reviewer's answer.
//!
//! * `plan`: the next step for a pull request
//! * `patch`: a change, line by line; `paths`: kinds of paths; `secrets`: texts that look like secrets; `facts`:
//!   conclusions from these without a model
//! * `approval`: whose review counts, and for what
//! * `comments`: comments on lines, and what became of them
//! * `risk`: the class of a change, and whom it needs
//! * `receipt`: what was run on a contribution, and with what result
//! * `answer`: the strict reader of a reviewer's answer; `outcome`: what is posted. Facts can only make it more
//!   careful
//!
//! Its sentences are in [`crate::words::review`]. The daemon asks and posts.

mod answer;
mod approval;
pub mod comments;
mod facts;
mod outcome;
mod patch;
mod paths;
mod plan;
mod receipt;
mod risk;
mod secrets;
#[cfg(test)]
mod tests;
pub mod unified;

pub use answer::{Answer, Finding, FollowUp, Verdict};
pub use approval::{Accounts, Required, is_approved};
pub use facts::{Facts, Landed, RevertedWork, Scope, outside_first};
pub use outcome::{Outcome, follow_ups, outcome};
pub use patch::{Change, File, Hunk, Kind, Mode, parse, parse_hunks};
pub use paths::{is_code, is_steering, is_test, may_hold_secrets, path_matches, protected};
pub use plan::{Attempt, Ci, Next, ReviewFacts, closes, plan};
pub use receipt::{GateRun, ReceiptLine, SetupRun, Step, Verified, receipt};
pub use risk::{Past, Record, Reviewers, Risk, RiskFacts};
pub use secrets::{Secret, SecretKind, blank_secrets, secrets, secrets_in};

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
