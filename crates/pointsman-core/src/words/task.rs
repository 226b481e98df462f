//! The position of a task, for people and scripts, and the reasons why it refuses an event.

use crate::ids::Sha;
use crate::part::question::Cause;
use crate::part::session::Stage;
use crate::task::{State, Task};

/// The thing that a task waits for, in one line; nothing for one that is over.
pub fn waiting_for(task: &Task) -> Option<String> {
    let text = match task.state {
        State::Backlog if task.ready => "a free slot (dev.concurrency)".to_owned(),
        State::Backlog => "the label `backlog`, without the label `blocked`".to_owned(),
        State::WaitingDependencies => {
            let open: Vec<String> = task.open_dependencies.iter().map(|n| format!("#{n}")).collect();
            format!("dependencies to be closed: {}", open.join(", "))
        }
        State::Working if task.session.waits_for_budget => {
            "more budget: to grant it, run `pointsman inbox`".to_owned()
        }
        State::Working => match task.session.stage {
            Stage::None if task.session.restart_at.is_some() => {
                "the delay before the next session".to_owned()
            }
            Stage::None | Stage::Starting => "a session to start".to_owned(),
            Stage::Alive if task.session.parked_until.is_some() => {
                "an outside service to recover (parked)".to_owned()
            }
            Stage::Alive if task.session.exhausted.is_some() => {
                "the end of the agent's turn, because its budget is used up".to_owned()
            }
            Stage::Alive if task.session.handoff.is_some() => {
                "the session to save its work and exit".to_owned()
            }
            Stage::Alive => "the agent's next phase".to_owned(),
            Stage::Ending => "the session to end".to_owned(),
        },
        State::AwaitingCi => match task.contribution.pending() {
            Some((sha, _)) => format!("CI on {}", sha.short()),
            None => "the branch to reach the forge".to_owned(),
        },
        State::AwaitingReview => match task.contribution.head() {
            Some(head) => format!("a review of {}", head.short()),
            None => "a review".to_owned(),
        },
        State::MergeQueue => "its turn in the merge queue".to_owned(),
        State::Escalated => {
            let wants_review = task.escalation.as_ref().is_some_and(|asked| asked.cause == Cause::Review);
            match task.contribution.pr().filter(|_| wants_review) {
                Some(pr) => format!("a person: to review, run `pointsman forge pr review {pr} --approve`"),
                None => format!("a person: to answer, run `pointsman task answer {} \"…\"`", task.key.issue),
            }
        }
        State::Blocked => format!(
            "a person: to try again, remove the label `blocked` or run `pointsman task start {}`",
            task.key.issue
        ),
        State::Refused if task.waits_for_issues() => {
            let named = task.refusal.iter().flat_map(|refusal| &refusal.blocked_by);
            let open: Vec<String> = match task.open_dependencies.as_slice() {
                [] => named.map(|n| format!("#{n}")).collect(),
                open => open.iter().map(|n| format!("#{n}")).collect(),
            };
            format!("dependencies to be closed: {}", open.join(", "))
        }
        State::Refused => "a person to change the issue".to_owned(),
        State::Paused if task.taken_by.is_some() => {
            let (by, issue) = (task.taken_by.as_deref().unwrap_or_default(), task.key.issue);
            format!("{by}, who works on it: to hand it back, run `pointsman task give {issue}`")
        }
        State::Paused => format!("a person: to continue, run `pointsman task resume {}`", task.key.issue),
        State::Merged => "the agent to write PHASE:done".to_owned(),
        State::Closed => return None,
    };
    Some(text)
}

/// Reasons why a task refuses an order.
pub mod refused {
    use crate::ids::Number;
    use crate::task::State;

    pub const PAUSED_ALREADY: &str = "it is already paused";
    pub const NO_CLAIM: &str = "a push counts only once the agent writes a phase";
    pub const MERGED_ALREADY: &str = "already recorded as merged";
    pub const WAITS_FOR_NO_HOST: &str = "it is not waiting for access to a host";
    pub const NOTHING_TO_OPEN: &str =
        "nothing has been pushed, so there is nothing to open a pull request for";

    pub fn not_ready(state: State) -> String {
        format!("a {state} task cannot be started")
    }

    pub fn under_way(state: State) -> String {
        format!("it is already in progress ({state})")
    }

    pub fn over(state: State) -> String {
        format!("it is {state}. To work on it again, reopen the issue and label it `backlog`")
    }

    /// An order to go on that would leave a person's commits out.
    pub fn taken(by: &str, issue: Number) -> String {
        format!(
            "{by} has taken it. To go on from their commits, run `pointsman task give {issue}`; to go on without \
             them, run `pointsman task restart {issue}`"
        )
    }

    pub fn taken_by_another(by: &str, issue: Number) -> String {
        format!("{by} has taken it already. They hand it back with `pointsman task give {issue}`")
    }

    pub fn nothing_to_take(issue: Number) -> String {
        format!("no session has worked on it yet. To work on it yourself, run `pointsman claim {issue}`")
    }

    pub fn not_taken(issue: Number) -> String {
        format!("nobody has taken it. To take it, run `pointsman task take {issue}`")
    }

    pub fn cannot_be_paused(state: State) -> String {
        format!("a {state} task cannot be paused")
    }

    pub fn not_paused(state: State, issue: Number) -> String {
        match state {
            State::Blocked | State::Refused => {
                format!("it is {state}, not paused. To try again, run `pointsman task start {issue}`")
            }
            State::Backlog
            | State::WaitingDependencies
            | State::Working
            | State::AwaitingCi
            | State::AwaitingReview
            | State::MergeQueue
            | State::Escalated
            | State::Paused
            | State::Merged
            | State::Closed => format!("a {state} task is not paused"),
        }
    }

    pub fn cannot_be_stopped(state: State) -> String {
        format!("a {state} task cannot be stopped")
    }

    pub fn takes_no_phase(state: State) -> String {
        format!("a {state} task does not accept a phase")
    }

    pub fn waits_for_no_branch(state: State) -> String {
        format!("a {state} task is not waiting for its branch")
    }

    pub fn waits_for_no_merge(state: State) -> String {
        format!("a {state} task is not waiting for a merge")
    }

    pub fn waits_for_no_claim(state: State) -> String {
        format!("a {state} task is not waiting for its claim")
    }

    pub fn takes_no_review(state: State) -> String {
        format!("a {state} task does not accept a review")
    }

    pub fn nobody_asked(state: State) -> String {
        format!("the task is {state}, so it has no question to answer; only an escalated task does")
    }
}

/// CI answered about a commit, or a try on it, that no longer matters.
pub fn ci_not_awaited(sha: &Sha, run: Option<u32>) -> String {
    match run {
        Some(run) => format!("the task no longer waits for try {run} of CI on {}", sha.short()),
        None => format!("the task no longer waits for CI on {}", sha.short()),
    }
}

/// The merge queue answered about a commit that left it.
pub fn not_in_queue(head: &Sha) -> String {
    format!("{} is no longer in the queue", head.short())
}

/// A review of a commit that is not the head.
pub fn not_the_head(sha: &Sha) -> String {
    format!("the review is of {}, which is not the head", sha.short())
}

#[cfg(test)]
mod tests {
    use super::refused::not_paused;
    use crate::task::State;

    #[test]
    fn whoever_resumes_a_blocked_task_learns_how_to_start_it() {
        assert!(not_paused(State::Blocked, 3).contains("`pointsman task start 3`"));
        assert!(!not_paused(State::Working, 3).contains("task start"));
    }
}
