//! The choice of the task that starts next.

use std::time::Duration;

use crate::ids::Number;
use crate::task::{State, Task};
use crate::time::Timestamp;

/// How much slower a forge is asked while nothing is expected of it.
const QUIET: u32 = 20;
/// How much slower it is asked while it tells by itself and nothing is expected: only for what got lost.
const NET: u32 = 240;
/// How much slower it is asked while it tells by itself and somebody waits for it: a lost webhook costs minutes.
const WAITING_NET: u32 = 10;
/// Who has waited for so long may wait this part of it once more.
const PATIENCE: u32 = 5;
/// The same for a CI, which people wait for with less patience.
const CI_PATIENCE: u32 = 4;
/// How much slower a CI is asked at most, whether it tells by itself or not: somebody waits for it.
const CI_NET: u32 = 6;

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

/// The tasks that hold the places of a project while none is free: what is ready waits for one of them.
pub fn holders<'a>(tasks: impl Iterator<Item = &'a Task>, concurrency: usize) -> Vec<&'a Task> {
    let holders: Vec<&Task> = tasks.filter(|task| task.state.takes_a_place()).collect();
    if holders.len() >= concurrency { holders } else { Vec::new() }
}

/// Ready work that waits behind people is told after this long.
const STARVED: Duration = Duration::from_secs(3600);

/// The tasks that hold every place of a project while they wait for people, so that ready work has not begun for an hour. None if
/// nothing is ready, a place is free, or an agent works.
pub fn starved<'a>(
    tasks: impl Iterator<Item = &'a Task> + Clone,
    concurrency: usize,
    now: Timestamp,
) -> Option<Vec<Number>> {
    let holders = holders(tasks.clone(), concurrency);
    let ready = tasks.clone().any(|task| task.state == State::Backlog && task.ready);
    let for_people = |task: &&Task| {
        matches!(task.state, State::AwaitingReview | State::Escalated) && task.since.after(STARVED) <= now
    };
    let starved = ready && !holders.is_empty() && holders.iter().all(for_people);
    starved.then(|| holders.iter().map(|task| task.key.issue).collect())
}

/// Whether a server tells by itself when something of one kind has happened. Kinds are apart: a server that tells of
/// pushes need not tell of checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookSupport {
    /// It does not, as far as we know.
    Asking,
    /// It has, not long ago. Asking is only a net then, for what got lost.
    Told,
}

/// The pause before a forge on a server is asked again. What is waited for is asked for at the configured pace at
/// first, and less and less often the longer it takes: who answers within minutes is heard within seconds, and who takes
/// an afternoon is not asked a thousand times. Without anything to wait for it is asked a twentieth as often: an idle
/// night is cheap, and a new issue is still seen within minutes.
pub fn forge_pace<'a>(
    pace: Duration,
    webhook_support: WebhookSupport,
    tasks: impl Iterator<Item = &'a Task>,
    now: Timestamp,
) -> Duration {
    let quiet = pace * QUIET;
    let waits = tasks.filter_map(|task| match task.state {
        State::AwaitingReview | State::Escalated | State::MergeQueue | State::Merged => {
            Some((now.since(task.since) / PATIENCE).clamp(pace, quiet))
        }
        State::Working
        | State::AwaitingCi
        | State::Backlog
        | State::WaitingDependencies
        | State::Blocked
        | State::Refused
        | State::Paused
        | State::Closed => None,
    });
    match (webhook_support, waits.min()) {
        (WebhookSupport::Asking, wait) => wait.unwrap_or(quiet),
        (WebhookSupport::Told, Some(_)) => pace * WAITING_NET,
        (WebhookSupport::Told, None) => pace * NET,
    }
}

/// The pause before a CI on a server is asked again about a commit that was waited for as long as `waited`.
pub fn checks_pace(pace: Duration, webhook_support: WebhookSupport, waited: Duration) -> Duration {
    match webhook_support {
        WebhookSupport::Asking => (waited / CI_PATIENCE).clamp(pace, pace * CI_NET),
        WebhookSupport::Told => pace * CI_NET,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{WebhookSupport, checks_pace, forge_pace, starts, starved};
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
    fn ready_work_behind_people_is_told_after_an_hour() {
        let hour = Timestamp(3_600_000);
        let ready = task(9, State::Backlog, true);
        let with = |state| [task(1, state, false), ready.clone()];
        for state in State::ALL {
            let for_people = matches!(state, State::AwaitingReview | State::Escalated);
            let found = starved(with(state).iter(), 1, hour);
            assert_eq!(found, for_people.then(|| vec![1]), "{state}");
        }
        assert_eq!(starved(with(State::Escalated).iter(), 1, Timestamp(3_599_999)), None, "not yet");
        assert_eq!(starved(with(State::Escalated).iter(), 2, hour), None, "a place is free");
        let works = [task(1, State::Escalated, false), task(2, State::Working, false), ready.clone()];
        assert_eq!(starved(works.iter(), 2, hour), None, "an agent works");
        assert_eq!(starved(works[..1].iter(), 1, hour), None, "nothing is ready");
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
    fn a_forge_is_asked_quickly_only_while_people_are_waited_for_and_not_for_long() {
        let pace = |webhook_support: WebhookSupport, states: &[State], waited: u64| {
            let tasks: Vec<Task> = states.iter().map(|state| task(1, *state, true)).collect();
            let now = Timestamp(0).after(Duration::from_secs(waited));
            forge_pace(Duration::from_secs(30), webhook_support, tasks.iter(), now).as_secs()
        };
        let idle = [State::Closed, State::Backlog, State::Working, State::AwaitingCi, State::Blocked];
        assert_eq!(pace(WebhookSupport::Asking, &[], 0), 600);
        assert_eq!(pace(WebhookSupport::Asking, &idle, 0), 600);
        for waiting in [State::AwaitingReview, State::Escalated, State::MergeQueue, State::Merged] {
            for (waited, wanted) in [(0, 30), (150, 30), (600, 120), (3600, 600), (86_400, 600)] {
                let states = [State::Working, waiting, State::Closed];
                assert_eq!(pace(WebhookSupport::Asking, &states, waited), wanted, "{waiting} for {waited} s");
                assert_eq!(pace(WebhookSupport::Told, &states, waited), 300);
            }
        }
        assert_eq!(pace(WebhookSupport::Told, &[], 0), 7200);
        assert_eq!(pace(WebhookSupport::Told, &idle, 0), 7200);
    }

    #[test]
    fn a_long_ci_is_asked_less_often() {
        let second = Duration::from_secs(1);
        for (waited, asking) in [(0, 30), (120, 30), (600, 150), (7200, 180)] {
            assert_eq!(checks_pace(second * 30, WebhookSupport::Asking, second * waited).as_secs(), asking);
            assert_eq!(checks_pace(second * 30, WebhookSupport::Told, second * waited).as_secs(), 180);
        }
    }
}
