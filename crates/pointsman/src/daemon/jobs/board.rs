//! The board of the forge follows the tasks. It is for people to look at: nothing waits for it, and what it could not be told
//! it is told later.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pointsman_adapters::forge::{BoardChange, Error};
use pointsman_adapters::retry::Retry;
use pointsman_core::board::{self, BoardCell};
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::time::Timestamp;

use super::Jobs;
use crate::daemon::board::TaskMap;
use crate::daemon::clock;
use crate::daemon::served::Served;

/// After a board that does not answer.
const LATER: Duration = Duration::from_secs(60);
/// After a board that says no: somebody has to give us a right, or add a column.
const MUCH_LATER: Duration = Duration::from_secs(15 * 60);

/// What a board is known to show of our tasks. All of it can be lost.
#[derive(Default)]
pub(super) struct Following {
    /// None before it was looked at.
    shown: Option<BTreeMap<Number, BoardCell>>,
    not_before: Timestamp,
}

impl Jobs {
    /// Tells the project's board what has changed; next to nothing if nothing has.
    pub(crate) fn follow_board(self: &Arc<Self>, served: &Arc<Served>, picture: &TaskMap, now: Timestamp) {
        if served.config.forge.board.is_none() {
            return;
        }
        let project = &served.config.name;
        {
            let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
            let following = boards.entry(project.clone()).or_default();
            let owed = following.shown.as_ref().is_none_or(|shown| !owed(project, shown, picture).is_empty());
            if !owed || now < following.not_before {
                return;
            }
        }
        let picture = Arc::clone(picture);
        self.submit(format!("board {project}"), served, move |jobs, served| tell(jobs, served, &picture));
    }
}

/// What the board is to show and does not yet.
fn owed(
    project: &ProjectName,
    shown: &BTreeMap<Number, BoardCell>,
    picture: &TaskMap,
) -> BTreeMap<Number, BoardCell> {
    let tasks: BTreeMap<Number, Option<BoardCell>> = picture
        .values()
        .filter(|task| task.key.project == *project)
        .map(|task| (task.key.issue, board::shown(task)))
        .collect();
    let wanted = tasks.iter().filter_map(|(number, wanted)| Some((*number, wanted.clone()?)));
    // What is no task any more is over; what is one, but nobody's at the moment, was given back.
    let left = shown.iter().filter(|(_, shown)| !shown.agent.is_empty());
    let left = left.filter_map(|(number, _)| match tasks.get(number) {
        Some(Some(_)) => None,
        Some(None) => Some((*number, board::given_back())),
        None => Some((*number, board::over())),
    });
    wanted.chain(left).filter(|(number, wanted)| shown.get(number) != Some(wanted)).collect()
}

fn tell(jobs: &Arc<Jobs>, served: &Arc<Served>, picture: &TaskMap) {
    let project = &served.config.name;
    let known = {
        let boards = jobs.boards.lock().unwrap_or_else(PoisonError::into_inner);
        boards.get(project).and_then(|following| following.shown.clone())
    };
    let note = |change: &dyn Fn(&mut Following)| {
        let mut boards = jobs.boards.lock().unwrap_or_else(PoisonError::into_inner);
        change(boards.entry(project.clone()).or_default());
    };
    let failed = |error: &Error| {
        tracing::warn!(%project, %error, "the board could not be told");
        let pause = if error.retry() == Retry::Later { LATER } else { MUCH_LATER };
        note(&|following| following.not_before = clock::now().after(pause));
    };
    let shown = match known.map_or_else(|| ours(served), Ok) {
        Ok(shown) => shown,
        Err(error) => return failed(&error),
    };
    note(&|following| following.shown = Some(shown.clone()));
    for (number, wanted) in owed(project, &shown, picture) {
        let change = BoardChange { status: Some(wanted.status), agent: Some(&wanted.agent) };
        match served.forge.set_board(number, &change) {
            Ok(()) => note(&|following| {
                following.shown.get_or_insert_default().insert(number, wanted.clone());
            }),
            Err(error) => return failed(&error),
        }
    }
}

/// What the board says that our agents work on: also what an earlier daemon could not tell it any more.
fn ours(served: &Served) -> Result<BTreeMap<Number, BoardCell>, Error> {
    let claimed = served.forge.claimed_on_board()?.into_iter();
    let agent = |number| format!("dev-{}-{number}", served.config.name);
    let ours = claimed.filter(|item| item.agent == agent(item.number));
    Ok(ours.map(|item| (item.number, BoardCell { status: item.status, agent: item.agent })).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use pointsman_core::board::BoardCell;
    use pointsman_core::forge::BoardStatus;
    use pointsman_core::ids::{ProjectName, TaskKey};
    use pointsman_core::task::{State, Task};
    use pointsman_core::time::Timestamp;

    use super::owed;

    #[test]
    fn a_board_is_told_what_is_new_and_what_is_over() {
        let project = ProjectName::new("shop").unwrap();
        let task = |issue: u64, state: State| {
            let key = TaskKey { project: project.clone(), issue };
            let mut task = Task::new(key.clone(), String::new(), String::new(), Timestamp(0));
            task.state = state;
            (key, Arc::new(task))
        };
        let shown = |status, agent: &str| BoardCell { status, agent: agent.to_owned() };
        let picture = Arc::new(BTreeMap::from([
            task(1, State::Working),
            task(2, State::AwaitingReview),
            task(3, State::Backlog),
            task(4, State::Blocked),
        ]));
        let known = BTreeMap::from([
            (1, shown(BoardStatus::InProgress, "dev-shop-1")),
            (2, shown(BoardStatus::InProgress, "dev-shop-2")),
            (4, shown(BoardStatus::InReview, "dev-shop-4")),
            (5, shown(BoardStatus::InReview, "dev-shop-5")),
            (6, shown(BoardStatus::Done, "")),
        ]);
        let wanted = BTreeMap::from([
            (2, shown(BoardStatus::InReview, "dev-shop-2")),
            (4, shown(BoardStatus::Backlog, "")),
            (5, shown(BoardStatus::Done, "")),
        ]);
        assert_eq!(owed(&project, &known, &picture), wanted);
    }
}
