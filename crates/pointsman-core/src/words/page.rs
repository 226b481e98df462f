//! The page of `pointsman status`, which people read first.

use crate::ids::Number;
use crate::page::Wait;
use crate::task::State;

/// The most tasks that are named as taking a slot.
const NAMED: usize = 3;

/// The headings of the page, in their order.
pub const NEEDS_YOU: &str = "Needs you";
pub const LANDED: &str = "Landed since you last looked";
pub const LANDED_TODAY: &str = "Landed in the last 24 hours";
pub const RUNNING: &str = "Running";
pub const WAITING: &str = "Waiting";
pub const COST_TODAY: &str = "Cost today";

pub const NOTHING_NEEDS_YOU: &str = "nothing";
pub const NOBODY_IS_TOLD: &str = "Notices go only to the log, so nobody hears when something needs a person. To change that, set `notify.to` \
                                      (docs/notifications.md).";

/// The reason why a task waits.
pub fn wait(issue: Number, wait: &Wait) -> String {
    match wait {
        Wait::Place { concurrency, holders } => {
            format!("concurrency is {concurrency} and {}", places(holders))
        }
        Wait::Issues(issues) if issues.is_empty() => "waits for its dependencies".to_owned(),
        Wait::Issues(issues) => format!("waits for {} to be closed", numbers(issues)),
        Wait::Budget(None) => "its budget is used up; to grant more, run `pointsman inbox`".to_owned(),
        Wait::Budget(Some(budget)) => format!("the budget is used up: {budget}"),
        Wait::Parked { until } => {
            format!("waits for an outside service; next try at {}", super::queue::clock_time(*until))
        }
        Wait::QueuePaused => "the merge queue is paused".to_owned(),
        Wait::Order => format!("paused; to continue, run `pointsman task resume {issue}`"),
        Wait::Halted => "all work is halted; to continue, run `pointsman resume`".to_owned(),
        Wait::DevDisabled => "roles.dev.enabled is false".to_owned(),
        Wait::Daemon => "waits for the daemon to start it".to_owned(),
    }
}

/// The thing that a task waits for while something works on it.
pub fn waits_for(what: &str) -> String {
    format!("waits for {what}")
}

fn places(holders: &[(Number, State)]) -> String {
    let told = |(issue, state): &(Number, State)| format!("#{issue} {}", holding(*state));
    let mut told: Vec<String> = holders.iter().take(NAMED).map(told).collect();
    if holders.len() > NAMED {
        told.push(format!("{} more are in progress", holders.len() - NAMED));
    }
    told.join(", ")
}

fn holding(state: State) -> &'static str {
    match state {
        State::AwaitingReview => "waits for your review",
        State::Escalated => "waits for your answer",
        State::AwaitingCi => "waits for CI",
        State::Working => "is being worked on",
        State::Backlog
        | State::WaitingDependencies
        | State::MergeQueue
        | State::Blocked
        | State::Refused
        | State::Paused
        | State::Merged
        | State::Closed => "takes a slot",
    }
}

fn numbers(issues: &[Number]) -> String {
    issues.iter().map(|issue| format!("#{issue}")).collect::<Vec<_>>().join(", ")
}

/// The size of a change.
pub fn lines(count: u64) -> String {
    if count == 1 { "1 line".to_owned() } else { format!("{count} lines") }
}

/// A number of tasks that wait for something.
pub fn other_tasks(count: usize) -> String {
    if count == 1 { "1 other task".to_owned() } else { format!("{count} other tasks") }
}

/// The rest of a part that is longer than a page.
pub fn more(count: usize, command: &str) -> String {
    format!("and {count} more: {command}")
}

#[cfg(test)]
mod tests {
    use super::wait;
    use crate::page::Wait;
    use crate::task::State;

    #[test]
    fn a_task_that_waits_for_a_place_names_who_holds_it() {
        let place = |holders: &[(u64, State)]| {
            wait(9, &Wait::Place { concurrency: holders.len(), holders: holders.to_vec() })
        };
        let one = [(1, State::AwaitingReview)];
        assert_eq!(place(&one), "concurrency is 1 and #1 waits for your review");
        let many = [
            (1, State::Working),
            (2, State::Escalated),
            (3, State::AwaitingCi),
            (4, State::Working),
            (5, State::Working),
        ];
        assert_eq!(
            place(&many),
            "concurrency is 5 and #1 is being worked on, #2 waits for your answer, #3 waits for CI, 2 more are in progress"
        );
    }
}
