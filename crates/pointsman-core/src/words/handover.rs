//! Sentences of `task take` and `task give`.

use std::path::Path;

use crate::ids::{Number, Sha};

pub const LINKED: &str = "a task can be taken only with `dev.worktree = \"clone\"`: here its branch belongs to the agent's worktree";
pub const SESSION_ENDS: &str = "its session is still ending. Run the command again in a moment";

/// The agent's repository is damaged.
pub fn unreadable(issue: Number) -> String {
    format!(
        "the commits in the agent's tree cannot be read. Its files were saved: run `pointsman rescue list --task {issue}`"
    )
}

/// Nothing was ever saved.
pub fn no_work(issue: Number) -> String {
    format!("no work on #{issue} was found, neither a tree nor a branch")
}

/// The directory of the command is in no repository.
pub fn no_checkout(path: &Path) -> String {
    format!("{} is not inside a checkout of the project", path.display())
}

/// The branch is not where the command saw it.
pub fn moved(branch: &str) -> String {
    format!("the branch {branch} moved while it was given back. Run the command again")
}

/// The person's own changes would get in the way.
pub fn dirty_take(files: usize) -> String {
    format!(
        "your checkout has {}. Commit or stash them first: the task's branch is checked out there",
        changes(files)
    )
}

/// Uncommitted changes cannot be given.
pub fn dirty_give(files: usize) -> String {
    format!("your checkout has {}. Commit or remove them first: only commits are given back", changes(files))
}

fn changes(files: usize) -> String {
    match files {
        1 => "1 uncommitted change".to_owned(),
        n => format!("{n} uncommitted changes"),
    }
}

/// A branch of the same name has other commits.
pub fn diverged(branch: &str, issue: Number) -> String {
    format!(
        "your branch {branch} has commits that the agent's has not. Rename it (git branch -m {branch} other-name), \
         then run `pointsman task take {issue}` again"
    )
}

/// Files that git does not know are in the place of the agent's.
pub fn in_the_way(files: &[String], issue: Number) -> String {
    format!(
        "the agent left new files that your checkout has as well, untracked: {}. Move yours away, then run `pointsman \
         task take {issue}` again",
        files.join(", ")
    )
}

/// Another branch is checked out.
pub fn other_branch(branch: &str, current: Option<&str>) -> String {
    let here = current.map_or("no branch".to_owned(), |current| format!("the branch {current}"));
    format!(
        "your checkout is on {here}. The work of this task is on {branch}: run `git switch {branch}` first"
    )
}

/// The session did not end in time.
pub fn still_ends(issue: Number) -> String {
    format!("the session of #{issue} has not ended yet. Run `pointsman task take {issue}` again in a moment")
}

/// The person has it.
pub fn taken(issue: Number, branch: &str, uncommitted: bool) -> String {
    let left =
        if uncommitted { " The agent's uncommitted changes are in the tree, not committed." } else { "" };
    format!(
        "Task #{issue} is yours: your checkout is on {branch}.{left} Commit, then hand it back with `pointsman task give \
         {issue}`."
    )
}

/// The conversation is at hand.
pub fn conversation(path: &Path, resume: Option<&str>) -> String {
    match resume {
        Some(command) => {
            format!("The conversation is in {}. To continue it yourself, run `{command}`.", path.display())
        }
        None => format!("The conversation is in {}.", path.display()),
    }
}

/// The agent has it again.
pub fn given(issue: Number, head: &Sha) -> String {
    format!("The agent of #{issue} continues from {}.", head.short())
}
