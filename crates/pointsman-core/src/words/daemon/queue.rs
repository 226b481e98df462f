//! Answers to people who add and remove branches, and reasons why a branch waits or leaves and why the queue stops.

use std::fmt::Display;
use std::path::Path;

use crate::ids::{Number, Sha};
use crate::queue::EntryId;
use crate::task::State;
use crate::text::clean_line;

/// The most files that are named where a branch has to wait.
const FILES: usize = 3;
/// The most paths and commits that are named where the queue stops.
const NAMED: usize = 5;

/// A name that cannot be a branch.
pub fn not_a_branch(name: &str) -> String {
    format!("`{name}` is not a branch name that git accepts")
}

/// The main branch, which cannot land on itself.
pub fn is_main(branch: impl Display) -> String {
    format!("{branch} is the branch that the others land on")
}

/// Stands in a log between a green run and the red one before it.
pub fn first_run_printed() -> &'static str {
    "\npointsman: The run above passed. An earlier run on the same commit failed. It printed:\n"
}

/// The main branch in an entry.
pub fn entry_is_main() -> &'static str {
    "it is the main branch itself"
}

/// A branch that nobody has.
pub fn no_branch_anywhere(branch: impl Display) -> String {
    format!("there is no branch {branch}, neither here nor on the forge")
}

/// A branch that began somewhere else.
pub fn no_shared_history(branch: impl Display, main: impl Display) -> String {
    format!("{branch} shares no history with {main}")
}

/// A branch that has landed before.
pub fn already_on_main(branch: impl Display, main: impl Display) -> String {
    format!("everything on {branch} is already on {main}")
}

/// A branch of which the forge has commits that would be lost.
pub fn forge_is_ahead(branch: impl Display, there: &Sha) -> String {
    format!(
        "the forge's {branch} has commits that yours lacks ({}): pull them, or push yours there first",
        there.short()
    )
}

/// A project whose main branch is on a server.
pub fn sync_elsewhere(main: impl Display) -> String {
    format!("this project's forge is on a server; to push your commits there, run `git push origin {main}`")
}

/// A checkout without a main branch.
pub fn nothing_to_sync(checkout: &Path, main: impl Display) -> String {
    format!("{} has no branch {main} with a commit", checkout.display())
}

/// A main branch with commits on both sides.
pub fn diverged(main: impl Display) -> String {
    format!(
        "{main} here and on the forge have both moved on. Run `git pull --rebase pointsman {main}`, then `pointsman sync` again"
    )
}

/// A branch that somebody pushed to at the same time.
pub fn moved_meanwhile(branch: impl Display) -> String {
    format!("{branch} moved on the forge in the meantime; try again")
}

/// A branch that an agent works on.
pub fn enters_by_itself(branch: &str, issue: Number, state: State) -> String {
    format!(
        "{branch} belongs to the task of issue #{issue}, which is {state}; it enters the merge queue by itself once \
            it is green and approved"
    )
}

/// An entry that only its task can take out.
pub fn leaves_with_task(entry: EntryId, issue: Number) -> String {
    format!(
        "entry {entry} belongs to the task of issue #{issue}; to remove both, run `pointsman task pause {issue}`"
    )
}

/// The reason of an entry whose branch was added again.
pub fn replaced_by(head: &Sha) -> String {
    format!("replaced by {}", head.short())
}

/// The reason of an entry that a person removed.
pub fn taken_out_by(person: &str) -> String {
    format!("removed by {}", clean_line(person, 100))
}

/// The reason of an entry that was removed while it was tested.
pub fn taken_out() -> &'static str {
    "it was removed from the queue"
}

/// The reason of an entry whose task went on to something else.
pub fn task_left() -> &'static str {
    "the task left the queue"
}

/// The reason of an entry whose branch was pushed to while it waited.
pub fn moved_while_waiting(branch: impl Display, at: &Sha) -> String {
    format!("{branch} moved to {} while it waited", at.short())
}

/// The reason of an entry whose branch was deleted while it waited.
pub fn deleted_while_waiting(branch: impl Display) -> String {
    format!("{branch} was deleted while it waited")
}

/// The branch that an entry waits for, because they conflict.
pub fn waits_for(branch: &str, files: &[String]) -> String {
    format!("waits for {branch}: both change {}", some(files))
}

/// Several branches together that an entry waits for.
pub fn waits_for_those_ahead(files: &[String]) -> String {
    format!("waits for those ahead, which also change {}", some(files))
}

fn some(files: &[String]) -> String {
    let named = files.iter().take(FILES).map(|file| clean_line(file, 80)).collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(FILES) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// A gate that could not even be started, and why.
pub fn gate_did_not_run(error: impl Display) -> String {
    format!("the gate could not be run: {error}")
}

/// A gate that never gave a verdict, for a reason that nobody recorded.
pub fn gate_could_not_run() -> &'static str {
    "the gate could not be run"
}

/// A gate that was stopped before it was through.
pub fn gate_timed_out() -> &'static str {
    "the gate reached its time limit"
}

/// A gate that failed once and then gave no verdict.
pub fn gate_gave_no_verdict(summary: &str) -> String {
    format!("the gate gave no verdict after {summary}")
}

/// A CI that could not be started, and why.
pub fn ci_did_not_run(error: impl Display) -> String {
    format!("CI could not be run: {error}")
}

/// The log in place of checks that never came to an end.
pub fn no_check_in_time() -> &'static str {
    "no check of the commit finished in time\n"
}

/// A candidate that cannot be tested, because its branch cannot be pushed.
pub fn candidate_not_pushed(why: impl Display) -> String {
    format!("the forge did not accept the candidate: {why}")
}

/// A commit on main, as an alarm names it.
#[derive(Clone, Copy, Debug)]
pub struct Commit<'a> {
    pub sha: &'a Sha,
    pub subject: &'a str,
    pub author: &'a str,
}

/// The queue stops: main does not hold any more what it held.
pub fn main_was_rewritten(before: &Sha, new: &[Commit<'_>]) -> String {
    let new = if new.is_empty() { String::new() } else { format!("; new there: {}", named(new)) };
    stops(&format!("main was rewound or replaced: {} is no longer in it{new}", before.short()))
}

/// The queue stops: somebody pushed to main, and why that cannot be taken.
pub fn pushed_past_queue(commits: &[Commit<'_>], why: &str) -> String {
    stops(&format!("{}, and {why}", past_queue(commits)))
}

/// Commits that reached main without the queue.
pub fn past_queue(commits: &[Commit<'_>]) -> String {
    format!("{} commit(s) reached main without the merge queue: {}", commits.len(), named(commits))
}

fn stops(reason: &str) -> String {
    format!("{reason}. Check it, then run `pointsman merge-queue resume`")
}

fn named(commits: &[Commit<'_>]) -> String {
    let shown: Vec<String> = commits
        .iter()
        .take(NAMED)
        .map(|commit| format!("{} “{}” by {}", commit.sha.short(), commit.subject, commit.author))
        .collect();
    let more = commits.len().saturating_sub(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

/// The queue stops: a merge came out with changes that nobody made.
pub fn stray_paths(branch: &str, base: &Sha, stray: &[String]) -> String {
    let files: Vec<String> = stray.iter().take(NAMED).map(|path| clean_line(path, 100)).collect();
    format!(
        "the candidate of {branch} on {} would change {} path(s) that its branch did not change: {}",
        base.short(),
        stray.len(),
        files.join(", ")
    )
}

/// The reason of an entry that has to wait until something works again.
pub fn not_now(error: &str) -> String {
    format!("not now: {}", clean_line(error, 300))
}

/// The reason of an entry that does not merge with another branch.
pub fn conflicts_with(branch: &str) -> String {
    format!("conflicts with {branch}")
}

/// An answer to whoever wants a branch tested that is on main.
pub fn has_landed(branch: &str) -> String {
    format!("{branch} has landed")
}

/// A gate or a CI without a program.
pub fn empty_command() -> &'static str {
    "an empty command"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_some_files_and_commits_are_named() {
        let files: Vec<String> = ["a", "b", "c", "d\ne"].iter().map(ToString::to_string).collect();
        assert_eq!(waits_for("fix", &files[..2]), "waits for fix: both change a, b");
        assert_eq!(waits_for("fix", &files), "waits for fix: both change a, b, c and 1 more");
        let sha = Sha::new(&"a".repeat(40)).unwrap();
        let commit = Commit { sha: &sha, subject: "fix", author: "Ann" };
        assert_eq!(
            pushed_past_queue(&[commit; 6], "nobody knows whose they are"),
            format!(
                "6 commit(s) reached main without the merge queue: {} and 1 more, and nobody knows whose they are. Check it, then run `pointsman merge-queue resume`",
                vec![format!("{} “fix” by Ann", sha.short()); 5].join(", ")
            )
        );
        assert_eq!(
            main_was_rewritten(&sha, &[]),
            format!(
                "main was rewound or replaced: {} is no longer in it. Check it, then run `pointsman merge-queue resume`",
                sha.short()
            )
        );
    }
}
