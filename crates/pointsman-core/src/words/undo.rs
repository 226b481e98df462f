//! Texts about a pull request that reverts what landed.

use crate::ids::{Number, Sha};

/// The most files that are named.
const FILES: usize = 5;

/// The title of the pull request, and the first line of its commit.
pub fn title(issue: Number, title: &str) -> String {
    format!("Revert \"{title}\" (#{issue})")
}

/// The message of the commit. Its second paragraph is git's own, by which reverts are found.
pub fn message(title: &str, before: &Sha, landed: &Sha, reason: &str) -> String {
    format!("{title}\n\nThis reverts commit {landed}.\n\nIt reverts everything after {before}.\n\n{reason}\n")
}

/// The text of the pull request.
pub fn body(issue: Number, landed: &Sha, reason: &str, by: &str) -> String {
    format!(
        "This reverts what landed for #{issue} as {landed}.\n\nReason, by {by}:\n\n{reason}\n\nNo agent was involved. CI \
          tests it, a person reviews it, and the merge queue lands it, like every other change."
    )
}

/// The commit is on another branch.
pub fn not_on_main(landed: &Sha, main: &str) -> String {
    format!("{} is not on {main}, so there is nothing to revert", landed.short())
}

/// The commit has no parent.
pub fn is_the_first(landed: &Sha) -> String {
    format!("{} is the first commit of the repository and cannot be reverted", landed.short())
}

/// Main has changed the same lines since.
pub fn conflict(issue: Number, files: &[String]) -> String {
    let named = files.iter().take(FILES).cloned().collect::<Vec<_>>().join(", ");
    let more = if files.len() > FILES { format!(" and {} more", files.len() - FILES) } else { String::new() };
    format!(
        "what landed for #{issue} has been changed since, in {named}{more}: revert it by hand, or file an issue for an agent"
    )
}

/// Somebody took it back before.
pub fn nothing(issue: Number, main: &str) -> String {
    format!("what landed for #{issue} is no longer on {main}, so there is nothing left to revert")
}

/// The issue has no landed change.
pub fn not_landed(issue: Number) -> String {
    format!("nothing has landed for #{issue}")
}

/// The pull request is open, and a person goes on from there.
pub fn opened(issue: Number, pr: Number) -> String {
    format!(
        "Pull request {pr} reverts what landed for #{issue}. To see it, run `pointsman forge pr diff {pr}`. To let it land, run \
          `pointsman forge pr review {pr} --approve`."
    )
}

pub const NO_REASON: &str = "No reason was given.";
