//! Failures of git and the forge, and the messages of the commits in which we keep work.

use std::fmt::Display;
use std::path::PathBuf;

use crate::ids::TaskKey;

/// A main branch that the forge does not have.
pub fn no_branch(branch: impl Display) -> String {
    format!("the forge has no branch {branch}")
}

/// A commit that should be here.
pub fn no_commit(sha: &crate::ids::Sha) -> String {
    format!("the mirror has no commit {}", sha.short())
}

/// A name that git does not accept for a branch.
pub fn not_a_branch_name(name: &str) -> String {
    format!("`{name}` is not a branch name")
}

/// A name that git does not accept for a ref.
pub fn not_a_ref_name(name: &str) -> String {
    format!("`{name}` is not a ref name")
}

/// A session whose name git does not accept in the name of a rescue ref.
pub fn no_rescue_ref(session: &str) -> String {
    format!("no rescue ref can be named after {session}")
}

/// A push that found its ref elsewhere than expected.
pub fn moved_by_somebody(refname: impl Display) -> String {
    format!("somebody else moved {refname}")
}

/// A push that the server turned down.
pub fn push_refused(branch: impl Display, message: &str) -> String {
    format!("the forge refused {branch}: {message}")
}

/// A refused push, with locks at the server that may be the cause.
pub fn locks_at_server(message: &str, locks: &[PathBuf]) -> String {
    let locks: Vec<String> = locks.iter().map(|path| path.display().to_string()).collect();
    format!("{message} (locks there, perhaps left by a killed git: {})", locks.join(", "))
}

/// A head that was pushed to no branch.
pub fn on_no_branch(head: impl Display) -> String {
    format!("{head} is not on any branch of the forge")
}

/// The subject of the commit that keeps a task's files, and why they were saved.
pub fn checkpoint(key: &TaskKey, why: &str) -> String {
    format!("checkpoint of {key}: {why}")
}

/// The reason of a checkpoint that was taken but never recorded.
pub fn found_after_crash() -> &'static str {
    "found after a crash"
}

/// The message of a commit that only shows a new session how far the work is.
pub fn work_so_far() -> &'static str {
    "a check of the work so far"
}

/// The message of a commit that keeps what a session left.
pub fn rescue(session: &str) -> String {
    format!("rescue of {session}")
}

/// The message of the commit in which a session finds what the one before it left.
pub fn handed_over() -> &'static str {
    "Work in progress, handed over to the next session"
}
