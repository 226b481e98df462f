//! Reasons why a run of a formula does not start, and answers to orders about one.

use crate::ids::{Number, ProjectName};
use crate::role::Occasion;
use crate::run::RunId;
use crate::vault::ActionId;

/// A session whose run has ended.
pub fn run_of_session_over(session: &str) -> String {
    format!("the run of session {session} is over")
}

/// A number that no run of the project has.
pub fn no_run(project: &ProjectName, run: RunId) -> String {
    format!("{project} has no run {run}")
}

/// An order that the run does not take now, and why.
pub fn refused(run: RunId, why: &str) -> String {
    format!("run {run}: {why}")
}

/// A run of the same formula that has not ended.
pub fn under_way(run: RunId, formula: &str) -> String {
    format!("run {run} of {formula} is in progress, and only one may run at a time")
}

/// The reason why nobody starts a run of such a formula by hand, and what to do instead. `about` tells that the run has
/// the subject that it needs.
pub fn starts_by_itself(occasion: Occasion, about: bool) -> Option<&'static str> {
    match (occasion, about) {
        (Occasion::Issue, _) => Some("issues are implemented by tasks: label one backlog"),
        (Occasion::PullRequest, false) => {
            Some("pull requests are reviewed automatically: set roles.review.enabled = true")
        }
        (Occasion::VaultAction, false) => {
            Some("vault actions are examined automatically: set roles.vault.enabled = true")
        }
        (Occasion::PullRequest | Occasion::VaultAction, true) | (Occasion::Order | Occasion::Time, _) => None,
    }
}

/// An issue that the forge does not know any more.
pub fn issue_is_gone(issue: Number) -> String {
    format!("issue #{issue} no longer exists")
}

/// An action that was changed or removed before anybody looked at it.
pub fn vault_action_is_gone(action: &ActionId) -> String {
    format!("vault action {action} no longer exists")
}

/// A failed run that left no reason, as its issue is told.
pub fn no_reason() -> &'static str {
    "it gave no reason"
}
