//! The questions that a step asks, reminds of or settles: read off the task before and after it.

use super::event::Event;
use super::state::{State, Task};
use crate::concern::{self, About};
use crate::config::ReviewMode;
use crate::part::contribution::PrFact;
use crate::part::question::{self, Change, Kind, Question, Settled, Settlement};
use crate::time::Timestamp;
use crate::words;

/// The changes of the task's question because of `event`. The one after it has its number.
pub fn questions(before: &Task, event: &Event, after: &Task, now: Timestamp) -> Vec<Change> {
    question::changes(before.escalation.as_ref(), after.escalation.as_ref(), || end(event, after, now))
}

/// The condition of a task that a person has to see to, beside the question that it asks itself.
///
/// It is read off the task as it is now, so a restart neither loses nor repeats it.
pub fn standing(task: &Task, review: ReviewMode) -> Option<(About, concern::Event)> {
    let issue = task.key.issue;
    let (kind, which, text, told) = match task.state {
        State::Blocked => (Kind::Blocked, format!("issue-{issue}"), words::question::blocked(task), true),
        State::Refused => (Kind::Refused, format!("issue-{issue}"), words::question::turned_down(task), true),
        State::AwaitingReview if review == ReviewMode::Human => {
            let (head, pr) = (task.contribution.head()?, task.contribution.pr()?);
            (Kind::Review, format!("pr-{pr}/{head}"), words::question::review(task, pr, head), false)
        }
        State::AwaitingReview
        | State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::MergeQueue
        | State::Escalated
        | State::Paused
        | State::Merged
        | State::Closed => return None,
    };
    let pr = task.contribution.pr();
    let raised = concern::Event::Raised { kind, text, issue: Some(issue), pr, told };
    Some((About::one_of(kind, &which), raised))
}

/// The kinds of questions that [`standing`] asks.
pub const STANDING: [Kind; 3] = [Kind::Blocked, Kind::Refused, Kind::Review];

/// The number of tasks that wait for the issue of a question.
pub fn held_up<'t>(question: &Question, tasks: impl IntoIterator<Item = &'t Task>) -> usize {
    let source = &question.source;
    let waits = |task: &&Task| {
        task.key.project == source.project
            && source.issue.is_some_and(|issue| task.open_dependencies.contains(&issue))
    };
    tasks.into_iter().filter(waits).count()
}

/// The end of a question that the task does not ask any more.
fn end(event: &Event, after: &Task, at: Timestamp) -> Settled {
    let withdrawn = |why: &str| (None, Settlement::Withdrawn { why: why.to_owned() });
    let (by, how) = match event {
        Event::Answered { by, text } => (Some(by.clone()), Settlement::Answered { text: text.clone() }),
        Event::HostsAllowed { by } => (Some(by.clone()), Settlement::Approved),
        Event::TimePassed if after.state == State::Blocked => (None, Settlement::Expired),
        Event::Ordered { order } => withdrawn(words::question::ordered(*order)),
        Event::ReviewPosted { by, .. } => withdrawn(&words::question::reviewed(by)),
        Event::PullRequestObserved { fact } => withdrawn(match fact {
            PrFact::Merged { .. } => words::question::MERGED,
            PrFact::Open | PrFact::Closed => words::question::PULL_REQUEST_CLOSED,
        }),
        Event::ChecksStarted { .. } | Event::ChecksFinished { .. } => withdrawn(words::question::CI_ANSWERED),
        Event::PhaseClaimed { .. } | Event::BranchSynced { .. } => withdrawn(words::question::AGENT_WENT_ON),
        Event::IssueObserved { .. }
        | Event::Claimed
        | Event::ClaimLost { .. }
        | Event::SessionStarted { .. }
        | Event::SessionNotStarted { .. }
        | Event::SessionEnded { .. }
        | Event::IdleLooked { .. }
        | Event::PhaseRejected { .. }
        | Event::PullRequestOpened { .. }
        | Event::HeadMoved
        | Event::QueueReported { .. }
        | Event::MergeLooked { .. }
        | Event::ContextMeasured { .. }
        | Event::SymptomSeen { .. }
        | Event::ContextCompacted { .. }
        | Event::TurnEnded { .. }
        | Event::TurnFailed { .. }
        | Event::DialogSeen { .. }
        | Event::ResponseGiven { .. }
        | Event::HooksSilent { .. }
        | Event::BudgetReached { .. }
        | Event::BudgetGranted
        | Event::TimeSkipped { .. }
        | Event::TimePassed
        | Event::EffectGaveUp { .. }
        | Event::MessageUnacknowledged { .. } => withdrawn(&words::question::task_moved_on(after.state)),
    };
    Settled { by, at, how }
}

#[cfg(test)]
mod tests {
    use super::{STANDING, standing};
    use crate::concern::Event;
    use crate::config::ReviewMode;
    use crate::ids::{ProjectName, TaskKey};
    use crate::task::{State, Task};
    use crate::time::Timestamp;

    fn task(state: State) -> Task {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let task = Task::new(key, "Apples".to_owned(), "pointsman/issue-3".to_owned(), Timestamp(1));
        Task { state, reason: Some("3 of 3 CI fixes used".to_owned()), ..task }
    }

    #[test]
    fn a_task_that_is_stuck_asks_until_it_is_not() {
        for state in State::ALL {
            let asks = standing(&task(state), ReviewMode::Human);
            match state {
                State::Blocked | State::Refused => {
                    let (about, Event::Raised { kind, text, issue, told, .. }) = asks.unwrap() else {
                        panic!("{state} raises nothing")
                    };
                    assert!(STANDING.contains(&kind) && about.as_str().ends_with("/issue-3"), "{about}");
                    assert!(text.contains("3 of 3 CI fixes used") && text.contains("pointsman task start 3"));
                    assert!(told && issue == Some(3), "the task itself has told people");
                }
                // Nothing was pushed that could be reviewed.
                State::AwaitingReview => assert_eq!(asks, None),
                _ => assert_eq!(asks, None, "{state}"),
            }
        }
    }
}
