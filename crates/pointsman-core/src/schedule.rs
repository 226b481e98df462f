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

/// Whether a server tells by itself when something has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ears {
    /// It does not, as far as we know.
    Asking,
    /// It has, not long ago. Asking is only a net then, for what got lost.
    Told,
}

impl Ears {
    /// How much slower we may ask.
    pub const fn slower(self) -> u32 {
        match self {
            Self::Asking => 1,
            Self::Told => 10,
        }
    }
}

/// How long to wait before a forge on a server is asked again. An answer of people is waited for at the configured
/// pace; while agents are at work with nothing to expect from the forge, a quarter as often is enough, and a tenth while
/// nothing is going on at all: an idle night is cheap, and a new issue is still seen within minutes.
pub fn forge_pace<'a>(pace: Duration, ears: Ears, tasks: impl Iterator<Item = &'a Task>) -> Duration {
    let mut slower = 10;
    for task in tasks {
        slower = slower.min(match task.state {
            State::AwaitingReview | State::Escalated => 1,
            State::Working | State::AwaitingCi | State::MergeQueue | State::Merged => 4,
            State::Backlog
            | State::WaitingDependencies
            | State::Blocked
            | State::Refused
            | State::Paused
            | State::Closed => 10,
        });
    }
    pace * slower * ears.slower()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Ears, forge_pace, starts};
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
        let pace = |ears: Ears, states: &[State]| {
            let tasks: Vec<Task> = states.iter().map(|state| task(1, *state, true)).collect();
            forge_pace(second, ears, tasks.iter()).as_secs()
        };
        for (ears, slower) in [(Ears::Asking, 1), (Ears::Told, 10)] {
            assert_eq!(pace(ears, &[]), 10 * slower);
            assert_eq!(pace(ears, &[State::Closed, State::Backlog]), 10 * slower);
            assert_eq!(pace(ears, &[State::Closed, State::Working]), 4 * slower);
            assert_eq!(pace(ears, &[State::Working, State::AwaitingReview, State::Closed]), slower);
        }
    }
}
