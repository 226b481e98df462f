//! What is answered to orders of the claim life cycle.

use pointsman_core::forge::{BoardItem, BoardStatus, Check};
use pointsman_core::ids::Number;
use serde::{Deserialize, Serialize};

/// An issue was taken.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Taken {
    /// The board's name for it; empty without a board.
    pub item_id: String,
    pub title: String,
    /// What the board shows now.
    pub status: BoardStatus,
}

/// A branch was handed in.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandedIn {
    pub pr: Number,
    /// Where people look at it.
    pub link: String,
    pub found: bool,
}

/// How a pull request stands.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Looked {
    /// Which; none if there is none.
    pub pr: Option<Number>,
    pub state: PullState,
    /// What the checks say about its head.
    pub checks: Vec<Check>,
    /// What could be done next, once it is merged.
    pub next: Option<BoardItem>,
}

/// How a pull request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PullState {
    /// There is none.
    None,
    Open,
    /// Closed without a merge.
    Closed,
    Merged,
}

/// What is on the board.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Board {
    pub items: Vec<BoardItem>,
    /// What could be taken next.
    pub next: Option<BoardItem>,
}
