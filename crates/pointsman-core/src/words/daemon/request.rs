//! Answers to requests at the control socket that are not carried out.

use crate::ids::{Number, ProjectName, TaskKey};
use crate::task::State;
use crate::workflow::WorkflowId;

/// A request that came to a part of the daemon that does not answer it.
pub fn answered_elsewhere() -> &'static str {
    "this request is answered elsewhere"
}

/// An issue that never became a task, and how it becomes one.
pub fn no_task(key: &TaskKey) -> String {
    format!(
        "there is no task for issue {} of {}: to create one, label the issue backlog",
        key.issue, key.project
    )
}

/// An event of a workflow that nobody has heard of.
pub fn unknown_workflow(id: &WorkflowId) -> String {
    format!("there is no task or run {id}")
}

/// A message that was never sent, or that another session got.
pub fn no_message(message: i64) -> String {
    format!("there is no message m-{message}")
}

/// A session that nobody has heard of.
pub fn no_session(session: &str) -> String {
    format!("there is no session {session}")
}

/// A session that has ended, or that another one has replaced.
pub fn session_over(session: &str) -> String {
    format!("session {session} is over")
}

/// A message for a task without anybody to read it.
pub fn no_live_session(issue: Number) -> String {
    format!("task {issue} has no live session")
}

/// A project that cannot be removed yet, and how to get there.
pub fn live_sessions(project: &ProjectName, tasks: &[String]) -> String {
    format!(
        "{project} has live sessions ({}): end them first with pointsman session stop --all",
        tasks.join(", ")
    )
}

/// A project that is not registered.
pub fn no_project(project: &ProjectName) -> String {
    format!("there is no project {project}")
}

/// A project that is registered, but that could not be opened.
pub fn not_served(project: &ProjectName) -> String {
    format!("project {project} is not served")
}

/// A pull request that no agent works on.
pub fn pull_request_without_task(pr: Number) -> String {
    format!("pull request {pr} does not belong to a task in progress")
}

/// A pull request whose task is not ready for a merge.
pub fn not_mergeable(pr: Number, state: State) -> String {
    format!("pull request {pr} cannot be merged: its task is {state}")
}

/// An order that the task does not take now, and why.
pub fn task_refused(issue: Number, why: &str) -> String {
    format!("task {issue}: {why}")
}

/// An order that no part of the daemon answered.
pub fn nothing_was_done() -> &'static str {
    "nothing was done"
}

/// The text of the review in which a person's order to merge is recorded.
pub fn merge_ordered() -> &'static str {
    "merge ordered"
}
