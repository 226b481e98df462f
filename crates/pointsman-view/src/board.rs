//! The board: `board`.

use pointsman_core::ids::Number;
use pointsman_core::task::{Phase, State};
use serde::{Deserialize, Serialize};

/// A column of open issues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    pub column: String,
    pub issues: Vec<Card>,
}

/// An issue on the board, with where its task stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    pub number: Number,
    pub title: String,
    pub labels: Vec<String>,
    pub state: Option<State>,
    pub phase: Option<Phase>,
    /// The money that all sessions about it have cost, of every role. None if nobody told.
    pub cost_usd: Option<f64>,
}

/// `board --labels`: a label and its meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    pub name: String,
    pub colour: String,
    pub meaning: String,
}
