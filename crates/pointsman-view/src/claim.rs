//! A person's own session and its claim of an issue: the answers to orders of the claim life cycle, and `release`.

use pointsman_core::forge::{BoardItem, BoardStatus, Check};
use pointsman_core::ids::Number;
use serde::{Deserialize, Serialize};

/// An issue was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The board's name for it; empty without a board.
    pub item_id: String,
    pub title: String,
    /// What the board shows now.
    pub status: BoardStatus,
}

/// A branch was handed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedIn {
    pub pr: Number,
    /// Where people look at it.
    pub link: String,
    /// Whether the pull request was open already.
    pub found: bool,
}

/// The standing of a pull request, and what could be done next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestStatus {
    pub pr: Option<Number>,
    pub state: PullState,
    /// What the checks say about its head.
    pub checks: Vec<Check>,
    /// What could be done next, once it is merged.
    pub next: Option<BoardItem>,
}

/// The life of a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullState {
    None,
    Open,
    /// Closed without a merge.
    Closed,
    Merged,
}

/// The board, and the issue that could be taken next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Board {
    pub items: Vec<BoardItem>,
    pub next: Option<BoardItem>,
}

/// The answer to `claim done`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finished {
    pub issue: Number,
    pub closed: bool,
}

/// The answer to `release`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Released {
    pub issue: Number,
    pub released: bool,
}
