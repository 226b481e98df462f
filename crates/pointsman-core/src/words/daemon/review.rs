//! Reasons why a pull request is not reviewed.

use std::fmt::Display;

use crate::ids::Number;

/// A project whose reviewer has no account, and where one is set.
pub fn no_account() -> &'static str {
    "there is no review account: see review.token_env"
}

/// A run that ended without a review and without a reason.
pub fn no_review_written() -> &'static str {
    "it wrote no review"
}

/// A branch that began somewhere else than main.
pub fn no_shared_history() -> &'static str {
    "it has no history in common with the main branch"
}

/// A difference that git printed and we do not understand.
pub fn unreadable_change() -> &'static str {
    "its change cannot be read"
}

/// A review program that ended without a result file.
pub fn no_result(end: impl Display) -> String {
    format!("the review program wrote no result ({end})")
}

/// A review program whose result file is no review.
pub fn unusable_result(why: &str) -> String {
    format!("the review program's result is unusable: {why}")
}

/// A pull request that the forge does not know any more.
pub fn pull_request_is_gone(pr: Number) -> String {
    format!("pull request #{pr} no longer exists")
}
