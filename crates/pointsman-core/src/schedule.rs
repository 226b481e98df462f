//! Which task starts next.

use std::time::Duration;

use crate::ids::Number;
use crate::task::{State, Task};

/// The ready tasks of one project that fit into its free places, oldest issue first.
///
/// Orphans (tasks of ours without a live session) hold a place and are brought back by
/// [`crate::task::step`], so they go before the backlog without being listed here.
pub fn starts<'a>(tasks: impl Iterator<Item = &'a Task> + Clone, concurrency: usize) -> Vec<Number> {
    let taken = tasks.clone().filter(|t| t.state.takes_a_place()).count();
    let mut ready: Vec<Number> =
        tasks.filter(|t| t.state == State::Backlog && t.ready).map(|t| t.key.issue).collect();
    ready.sort_unstable();
    ready.truncate(concurrency.saturating_sub(taken));
    ready
}

/// How long to wait before a forge on a server is asked again. An answer of people is waited for at the configured
/// pace; while agents are at work with nothing to expect from the forge, half as often is enough, and a quarter while
/// nothing is going on at all.
pub fn forge_pace<'a>(pace: Duration, tasks: impl Iterator<Item = &'a Task>) -> Duration {
    let mut slower = 4;
    for task in tasks {
        slower = slower.min(match task.state {
            State::AwaitingReview | State::Escalated => 1,
            State::Working | State::AwaitingCi | State::MergeQueue | State::Merged => 2,
            State::Backlog
            | State::WaitingDependencies
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Closed => 4,
        });
    }
    pace * slower
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{forge_pace, starts};
    use crate::ids::{ProjectName, TaskKey};
    use crate::task::{State, Task};
    use crate::time::Timestamp;

    fn task(issue: u64, state: State, ready: bool) -> Task {
        let key = TaskKey { project: ProjectName::new("p").unwrap(), issue };
        let mut task = Task::new(key, String::new(), String::new(), Timestamp(0));
        task.state = state;
        task.ready = ready;
        task
    }

    #[test]
    fn one_at_a_time_unless_told_otherwise() {
        let tasks = [
            task(9, State::Backlog, true),
            task(2, State::Backlog, true),
            task(3, State::Backlog, false),
            task(4, State::WaitingDependencies, false),
        ];
        assert_eq!(starts(tasks.iter(), 1), [2]);
        assert_eq!(starts(tasks.iter(), 5), [2, 9]);
    }

    #[test]
    fn a_task_keeps_its_place_until_it_is_in_the_merge_queue_blocked_or_paused() {
        for state in State::ALL {
            let tasks = [task(1, state, false), task(2, State::Backlog, true)];
            let holds = matches!(
                state,
                State::Working | State::AwaitingCi | State::AwaitingReview | State::Escalated
            );
            assert_eq!(starts(tasks.iter(), 1).is_empty(), holds, "{state}");
        }
    }

    #[test]
    fn a_forge_is_asked_quickly_only_while_people_are_waited_for() {
        let second = Duration::from_secs(1);
        let pace = |states: &[State]| {
            let tasks: Vec<Task> = states.iter().map(|state| task(1, *state, true)).collect();
            forge_pace(second, tasks.iter()).as_secs()
        };
        assert_eq!(pace(&[]), 4);
        assert_eq!(pace(&[State::Closed, State::Backlog]), 4);
        assert_eq!(pace(&[State::Closed, State::Working]), 2);
        assert_eq!(pace(&[State::Working, State::AwaitingReview, State::Closed]), 1);
    }
}
