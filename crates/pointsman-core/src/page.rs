//! The page that a person reads first: `status`, and the digest of the day.
//!
//! It has five parts: what needs a person, what landed, what runs, what waits and for what, and the cost of the day. What needs a
//! person is the inbox ([`crate::part::question::order`]); this module puts tasks into the other parts. The sentences are in
//! [`crate::words::page`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ids::Number;
use crate::part::session::Stage;
use crate::schedule::holders;
use crate::task::{State, Task};
use crate::time::Timestamp;

/// Looks that follow each other so closely are one look: whoever looks twice is shown the same.
const ONE_LOOK: Duration = Duration::from_secs(600);
/// Whoever never looked is shown what landed since then.
const FIRST_LOOK: Duration = Duration::from_secs(86_400);

/// The last look that a person took at the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    pub at: Timestamp,
    /// Everything since then was new.
    pub since: Timestamp,
}

impl Look {
    /// A look now, after the one before. A clock that was set back makes nothing old.
    pub fn after(before: Option<Self>, now: Timestamp) -> Self {
        let since = match before {
            None => {
                Timestamp(now.0.saturating_sub(i64::try_from(FIRST_LOOK.as_millis()).unwrap_or(i64::MAX)))
            }
            Some(before) if now < before.at.after(ONE_LOOK) => before.since,
            Some(before) => before.at,
        };
        Self { at: now, since }
    }
}

/// The part of the page that a task belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// The inbox has it.
    NeedsYou,
    Runs,
    Waits(Wait),
    /// It is over, or nobody wants it to begin.
    NotShown,
}

/// The thing that a task waits for, if nothing works on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// One of the tasks that hold all places of its project.
    Place {
        concurrency: usize,
        holders: Vec<(Number, State)>,
    },
    /// Other issues.
    Issues(Vec<Number>),
    /// A new budget, or a person's yes to more. The budget is named if it is one of the whole project.
    Budget(Option<String>),
    /// Trouble outside to pass.
    Parked {
        until: Timestamp,
    },
    QueuePaused,
    /// A person's order to go on.
    Order,
    /// Nothing begins before `resume`.
    Halted,
    /// `roles.dev` is switched off.
    DevDisabled,
    /// The daemon, to begin it.
    Daemon,
}

/// The circumstances of a project that its tasks wait under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    pub concurrency: usize,
    pub halted: bool,
    pub dev_disabled: bool,
    pub queue_paused: bool,
    /// The budget of the project that is used up, in words.
    pub used_up: Option<String>,
}

/// The part of the page that a task belongs to. `asked` says whether a question in the inbox is about it.
pub fn section(task: &Task, all: &[Task], around: &Circumstances, asked: bool) -> Section {
    if asked && task.state.takes_a_place() && !task.session.waits_for_budget {
        return Section::NeedsYou;
    }
    match task.state {
        State::Backlog if !task.ready => Section::NotShown,
        State::Backlog => Section::Waits(before_begin(task, all, around)),
        State::WaitingDependencies => Section::Waits(Wait::Issues(task.open_dependencies.clone())),
        State::Working if task.session.waits_for_budget => Section::Waits(Wait::Budget(None)),
        State::Working => match (task.session.stage, task.session.parked_until) {
            (Stage::Alive, Some(until)) => Section::Waits(Wait::Parked { until }),
            (Stage::None, _) if around.halted => Section::Waits(Wait::Halted),
            (Stage::None | Stage::Starting | Stage::Alive | Stage::Ending, _) => Section::Runs,
        },
        State::AwaitingCi | State::AwaitingReview | State::Merged => Section::Runs,
        State::MergeQueue if around.queue_paused => Section::Waits(Wait::QueuePaused),
        State::MergeQueue => Section::Runs,
        State::Refused if task.waits_for_issues() => {
            let named = task.refusal.iter().flat_map(|refusal| refusal.blocked_by.iter().copied());
            Section::Waits(Wait::Issues(match task.open_dependencies.as_slice() {
                [] => named.collect(),
                open => open.to_vec(),
            }))
        }
        State::Escalated | State::Blocked | State::Refused => Section::NeedsYou,
        State::Paused => Section::Waits(Wait::Order),
        State::Closed => Section::NotShown,
    }
}

fn before_begin(task: &Task, all: &[Task], around: &Circumstances) -> Wait {
    if around.halted {
        return Wait::Halted;
    }
    if around.dev_disabled {
        return Wait::DevDisabled;
    }
    let own = all.iter().filter(|other| other.key.project == task.key.project);
    let holders = holders(own, around.concurrency);
    if !holders.is_empty() {
        let holders = holders.iter().map(|task| (task.key.issue, task.state)).collect();
        return Wait::Place { concurrency: around.concurrency, holders };
    }
    match &around.used_up {
        Some(budget) => Wait::Budget(Some(budget.clone())),
        None => Wait::Daemon,
    }
}

#[cfg(test)]
mod tests {
    use super::{Circumstances, Look, Section, Wait, section};
    use crate::ids::{ProjectName, TaskKey};
    use crate::part::session::Stage;
    use crate::task::{State, Task};
    use crate::time::Timestamp;

    fn task(issue: u64, state: State) -> Task {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue };
        let mut task = Task::new(key, "Apples".to_owned(), "b".to_owned(), Timestamp(0));
        task.state = state;
        task.ready = state == State::Backlog;
        task
    }

    fn around() -> Circumstances {
        Circumstances { concurrency: 1, ..Circumstances::default() }
    }

    #[test]
    fn two_looks_within_ten_minutes_show_the_same() {
        let minutes = |minutes: i64| Timestamp(minutes * 60_000);
        let day = 24 * 60;
        let first = Look::after(None, minutes(day));
        assert_eq!(first.since, minutes(0), "the last 24 hours");
        let again = Look::after(Some(first), minutes(day + 9));
        assert_eq!(again, Look { at: minutes(day + 9), since: minutes(0) });
        let later = Look::after(Some(again), minutes(day + 19));
        assert_eq!(later.since, minutes(day + 9), "since the last look");
        let set_back = Look::after(Some(later), minutes(day));
        assert_eq!(set_back.since, minutes(day + 9));
    }

    #[test]
    fn every_task_is_in_one_part_of_the_page() {
        use Section::{NeedsYou, NotShown, Runs, Waits};
        for state in State::ALL {
            let wanted = match state {
                State::Backlog => Waits(Wait::Daemon),
                State::WaitingDependencies => Waits(Wait::Issues(vec![9])),
                State::Working | State::AwaitingCi | State::AwaitingReview => Runs,
                State::MergeQueue | State::Merged => Runs,
                State::Escalated | State::Blocked | State::Refused => NeedsYou,
                State::Paused => Waits(Wait::Order),
                State::Closed => NotShown,
            };
            let mut task = task(1, state);
            task.open_dependencies = vec![9];
            assert_eq!(section(&task, &[], &around(), false), wanted, "{state}");
            let asked = section(&task, &[], &around(), true);
            assert_eq!(asked == NeedsYou, state.takes_a_place() || wanted == NeedsYou, "{state}");
        }
        let unwanted = Task { ready: false, ..task(1, State::Backlog) };
        assert_eq!(section(&unwanted, &[], &around(), false), NotShown);
    }

    #[test]
    fn what_is_ready_says_why_it_has_not_begun() {
        let ready = task(2, State::Backlog);
        let waits = |around: &Circumstances, others: &[Task]| match section(&ready, others, around, false) {
            Section::Waits(wait) => wait,
            other => panic!("{other:?}"),
        };
        let holder = [task(1, State::AwaitingReview)];
        let place = Wait::Place { concurrency: 1, holders: vec![(1, State::AwaitingReview)] };
        assert_eq!(waits(&around(), &holder), place);
        assert_eq!(waits(&Circumstances { concurrency: 2, ..around() }, &holder), Wait::Daemon);
        let broke = Circumstances { used_up: Some("5 USD a day".to_owned()), ..around() };
        assert_eq!(waits(&broke, &holder), place, "it would wait with a budget, too");
        assert_eq!(waits(&broke, &[]), Wait::Budget(Some("5 USD a day".to_owned())));
        assert_eq!(waits(&Circumstances { dev_disabled: true, ..around() }, &holder), Wait::DevDisabled);
        assert_eq!(waits(&Circumstances { halted: true, ..around() }, &holder), Wait::Halted);
    }

    #[test]
    fn what_has_begun_and_stands_still_says_why() {
        let mut working = task(1, State::Working);
        working.session.stage = Stage::Alive;
        working.session.parked_until = Some(Timestamp(9));
        let parked = section(&working, &[], &around(), false);
        assert_eq!(parked, Section::Waits(Wait::Parked { until: Timestamp(9) }));
        working.session.waits_for_budget = true;
        for asked in [false, true] {
            assert_eq!(section(&working, &[], &around(), asked), Section::Waits(Wait::Budget(None)));
        }
        let queued = task(1, State::MergeQueue);
        let paused = Circumstances { queue_paused: true, ..around() };
        assert_eq!(section(&queued, &[], &paused, false), Section::Waits(Wait::QueuePaused));
    }
}
