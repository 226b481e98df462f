//! The questions that a step asks, reminds of or settles: read off the task before and after it.

use super::event::Event;
use super::state::{State, Task};
use crate::concern::{self, About};
use crate::part::contribution::{PrFact, ReviewMode};
use crate::part::question::{self, Change, Kind, Question, Settled, Settlement};
use crate::schedule::holders;
use crate::task::Policy;
use crate::time::Timestamp;
use crate::words;

/// The changes of the task's question because of `event`. The one after it has its number.
pub fn questions(before: &Task, event: &Event, after: &Task, now: Timestamp) -> Vec<Change> {
    question::changes(before.escalation.as_ref(), after.escalation.as_ref(), || end(event, after, now))
}

/// The condition of a task that a person has to see to, beside the question that it asks itself.
///
/// It is read off the task as it is now, so a restart neither loses nor repeats it.
pub fn standing(task: &Task, policy: &Policy) -> Option<(About, concern::Event)> {
    let issue = task.key.issue;
    let (kind, which, text, told) = match task.state {
        State::Blocked => (Kind::Blocked, format!("issue-{issue}"), words::question::blocked(task), true),
        // It begins again by itself when those are closed.
        State::Refused if task.waits_for_issues() => return None,
        State::Refused => (Kind::Refused, format!("issue-{issue}"), words::question::turned_down(task), true),
        State::AwaitingReview if task.contribution.judge(policy.review) == ReviewMode::Human => {
            let (head, pr) = (task.contribution.head()?, task.contribution.pr()?);
            let needed = task.contribution.approvals_needed(policy.approvals, policy.review);
            (
                Kind::Review,
                format!("pr-{pr}/{head}"),
                words::question::review(task, policy.review, pr, head, needed),
                false,
            )
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

/// The number of tasks that wait for the issue of a question: those that depend on it, and, while it holds one of the project's
/// places and none is free, those that are ready to begin.
pub fn held_up(question: &Question, tasks: &[Task], concurrency: usize) -> usize {
    let Some(issue) = question.source.issue else { return 0 };
    let own = || tasks.iter().filter(|task| task.key.project == question.source.project);
    let holds_a_place = holders(own(), concurrency).iter().any(|task| task.key.issue == issue);
    let waits = |task: &&Task| {
        task.open_dependencies.contains(&issue)
            || (holds_a_place && task.state == State::Backlog && task.ready)
    };
    own().filter(waits).count()
}

/// The end of a question that the task does not ask any more.
fn end(event: &Event, after: &Task, at: Timestamp) -> Settled {
    let withdrawn = |why: &str| (None, Settlement::Withdrawn { why: why.to_owned() });
    let (by, how) = match event {
        Event::Answered { by, text } => (Some(by.clone()), Settlement::Answered { text: text.clone() }),
        Event::HostsAllowed { by } | Event::SetupRetried { by } => (Some(by.clone()), Settlement::Approved),
        Event::PlanDecided { by, accepted: true, .. } => (Some(by.clone()), Settlement::Approved),
        Event::PlanDecided { by, accepted: false, reason } => {
            (Some(by.clone()), Settlement::Rejected { reason: reason.clone() })
        }
        Event::TimePassed if after.state == State::Blocked => (None, Settlement::Expired),
        Event::Taken { by } | Event::Given { by, .. } => withdrawn(&words::question::taken(by)),
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
        | Event::SetupFailed { .. }
        | Event::PortsAssigned { .. }
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
    use std::time::Duration;

    use super::{STANDING, held_up, standing};
    use crate::concern::Event;
    use crate::config::Config;
    use crate::ids::{ProjectName, TaskKey};
    use crate::part::question::{self, Cause, Kind, Owner, Question, Source};
    use crate::task::{Policy, Refusal, RefusalStatus, State, Task};
    use crate::time::Timestamp;

    fn policy() -> Policy {
        Policy::new(&Config::parse("name = \"shop\"", "pointsman.toml").unwrap())
    }

    fn task(state: State) -> Task {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 3 };
        let task = Task::new(key, "Apples".to_owned(), "pointsman/issue-3".to_owned(), Timestamp(1));
        Task { state, reason: Some("3 of 3 CI fixes used".to_owned()), ..task }
    }

    #[test]
    fn a_task_that_is_stuck_asks_until_it_is_not() {
        for state in State::ALL {
            let asks = standing(&task(state), &policy());
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

    #[test]
    fn a_refusal_that_ends_by_itself_asks_nobody() {
        let refusal = |status, blocked_by: &[u64]| {
            let refusal = Refusal { status, reason: String::new(), blocked_by: blocked_by.to_vec() };
            Task { refusal: Some(refusal), ..task(State::Refused) }
        };
        let asks = |task: &Task| standing(task, &policy()).is_some();
        let waits = refusal(RefusalStatus::UnmetDependency, &[7]);
        assert!(!asks(&waits), "the forge was not asked about #7 yet");
        let waits = Task { block_seen: true, ..waits };
        assert!(asks(&waits), "#7 is closed already: only a person can tell");
        assert!(!asks(&Task { open_dependencies: vec![7], ..waits }));
        assert!(asks(&refusal(RefusalStatus::UnmetDependency, &[])), "nobody knows what it waits for");
        assert!(asks(&refusal(RefusalStatus::TooLarge, &[7])));
    }

    #[test]
    fn a_question_holds_up_what_depends_on_it_and_what_needs_its_place() {
        let source = Source {
            project: ProjectName::new("shop").unwrap(),
            owner: Owner::Task(3),
            issue: Some(3),
            pr: None,
            session: None,
        };
        let hour = Duration::from_secs(3600);
        let policy = question::Policy { remind: hour, timeout: hour };
        let asked = Question::ask(Kind::Question, Cause::Agent, source, "?", &policy, Timestamp(0));
        let of = |issue, state, ready, waits_for: &[u64]| {
            let mut task = Task { state, ready, open_dependencies: waits_for.to_vec(), ..task(state) };
            task.key.issue = issue;
            task
        };
        let mut tasks = vec![
            of(3, State::Escalated, false, &[]),
            of(4, State::Backlog, true, &[]),
            of(5, State::WaitingDependencies, false, &[3]),
            of(6, State::Backlog, false, &[]),
        ];
        assert_eq!(held_up(&asked, &tasks, 1), 2, "#4 for the place, #5 for the issue");
        assert_eq!(held_up(&asked, &tasks, 2), 1, "a place is free");
        tasks[0].state = State::Blocked;
        assert_eq!(held_up(&asked, &tasks, 1), 1, "it holds no place");
        tasks[2].key.project = ProjectName::new("other").unwrap();
        assert_eq!(held_up(&asked, &tasks, 1), 0, "another project");
    }
}
