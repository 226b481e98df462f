//! The board: which column an issue stands in, here and on a board of the forge.

use crate::forge::BoardStatus;
use crate::labels::{self, BACKLOG, BLOCKED, IN_PROGRESS, UNDERSPECIFIED};
use crate::task::{State, Task};

/// The columns, from an idea to its end.
pub const COLUMNS: [&str; 8] =
    ["vision", "prediction", "tech-debt", "backlog", "action", "in-progress", "blocked", "other"];

/// The column of an issue with these labels. What needs attention counts before where it came from.
pub fn column(labels: &[String]) -> &'static str {
    let has = |label: &str| labels::has(labels, label);
    if has(BLOCKED) || has(UNDERSPECIFIED) {
        "blocked"
    } else if has(IN_PROGRESS) {
        "in-progress"
    } else if has("action") {
        "action"
    } else if has(BACKLOG) {
        "backlog"
    } else if labels.iter().any(|label| label.starts_with("prediction/")) {
        "prediction"
    } else if has("tech-debt") {
        "tech-debt"
    } else if has("vision") {
        "vision"
    } else {
        "other"
    }
}

/// The fields that a board of the forge shows of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardCell {
    pub status: BoardStatus,
    /// Its Agent; empty for nobody.
    pub agent: String,
}

/// The fields for a task; none while people decide where it stands.
pub fn shown(task: &Task) -> Option<BoardCell> {
    let by_us = |status| Some(BoardCell { status, agent: task.key.identity() });
    match task.state {
        State::Working | State::Paused => by_us(BoardStatus::InProgress),
        State::AwaitingCi | State::AwaitingReview | State::MergeQueue | State::Merged => {
            by_us(BoardStatus::InReview)
        }
        State::Escalated if task.contribution.pr().is_some() => by_us(BoardStatus::InReview),
        State::Escalated => by_us(BoardStatus::InProgress),
        State::Backlog | State::WaitingDependencies | State::Blocked | State::Refused => None,
        State::Closed => Some(over()),
    }
}

/// The fields for an issue that is over.
pub fn over() -> BoardCell {
    BoardCell { status: BoardStatus::Done, agent: String::new() }
}

/// The fields for an issue that nobody works on any more.
pub fn given_back() -> BoardCell {
    BoardCell { status: BoardStatus::Backlog, agent: String::new() }
}

/// The number of a board, and its owner if that is not the owner of the repository. Written
/// `3`, `owner/3`, or as its address.
pub fn address(text: &str) -> Option<(Option<&str>, u64)> {
    let parts: Vec<&str> = text.trim_end_matches('/').split('/').collect();
    let number = |text: &str| text.parse().ok().filter(|number| *number > 0);
    let login = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    match parts.as_slice() {
        [one] => Some((None, number(one)?)),
        [owner, one] if login(owner) => Some((Some(owner), number(one)?)),
        ["https:" | "http:", "", _, "orgs" | "users", owner, "projects", one, ..] if login(owner) => {
            Some((Some(owner), number(one)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ProjectName, TaskKey};
    use crate::time::Timestamp;

    #[test]
    fn a_board_follows_a_task() {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 7 };
        let mut task = Task::new(key, String::new(), String::new(), Timestamp(0));
        for state in State::ALL {
            task.state = state;
            let shown = shown(&task).map(|shown| (shown.status.name(), shown.agent));
            let ours = |status| Some((status, "dev-shop-7".to_owned()));
            let wanted = match state.name() {
                "working" | "paused" | "escalated" => ours("In Progress"),
                "awaiting_ci" | "awaiting_review" | "merge_queue" | "merged" => ours("In Review"),
                "closed" => Some(("Done", String::new())),
                _ => None,
            };
            assert_eq!(shown, wanted, "{state}");
        }
        task.state = State::Escalated;
        let head = crate::ids::Sha::new(&"a".repeat(40)).unwrap();
        task.contribution = crate::task::Contribution::at("pointsman/issue-7".to_owned(), head, Some(8));
        assert_eq!(shown(&task).unwrap().status, BoardStatus::InReview);
    }

    #[test]
    fn a_board_is_named_by_its_number_its_owner_or_its_address() {
        for (text, wanted) in [
            ("3", Some((None, 3))),
            ("acme/3", Some((Some("acme"), 3))),
            ("https://github.com/orgs/acme/projects/3", Some((Some("acme"), 3))),
            ("https://github.com/users/ann-x/projects/12/views/1", Some((Some("ann-x"), 12))),
            ("Plan", None),
            ("0", None),
            ("acme/", None),
            ("a b/3", None),
            ("https://github.com/acme/shop/issues/3", None),
            ("", None),
        ] {
            assert_eq!(address(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_issue_stands_in_one_column() {
        let cases: [(&[&str], &str); 9] = [
            (&[], "other"),
            (&["backlog"], "backlog"),
            (&["backlog", "blocked"], "blocked"),
            (&["underspecified"], "blocked"),
            (&["in-progress", "tech-debt"], "in-progress"),
            (&["tech-debt", "backlog"], "backlog"),
            (&["prediction/unreviewed"], "prediction"),
            (&["prediction/actioned", "action"], "action"),
            (&["vision", "something else"], "vision"),
        ];
        for (labels, wanted) in cases {
            let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
            assert_eq!(column(&labels), wanted, "{labels:?}");
            assert!(COLUMNS.contains(&column(&labels)));
        }
        for (name, ..) in labels::ALL {
            assert_ne!(column(&[name.to_owned()]), "other", "{name} has a column");
        }
    }
}
