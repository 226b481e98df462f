//! A forge's content as plain values: issues, comments, pull requests, reviews, checks and a board.
//!
//! Every forge (embedded or remote) speaks in these. All text in them is outside text.

use serde::{Deserialize, Serialize};

use crate::ids::{Number, Sha};
use crate::task::ReviewVerdict;
use crate::time::Timestamp;

/// Whether an issue or a pull request is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IssueState {
    Open,
    /// Closed; a pull request may be merged as well.
    Closed,
}

impl IssueState {
    /// The name scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// The issues or pull requests that a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateFilter {
    #[default]
    Open,
    Closed,
    All,
}

impl StateFilter {
    /// The one state that is asked for, if it is only one.
    pub fn only(self) -> Option<IssueState> {
        match self {
            Self::Open => Some(IssueState::Open),
            Self::Closed => Some(IssueState::Closed),
            Self::All => None,
        }
    }
}

/// An issue of the forge with its comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Its number; issues and pull requests share one sequence.
    pub number: Number,
    pub title: String,
    pub body: String,
    pub state: IssueState,
    pub labels: Vec<String>,
    /// Its comments, oldest first.
    pub comments: Vec<Comment>,
    pub assignee: Option<String>,
    pub author: String,
    pub created_at: Timestamp,
}

/// A comment on an issue or a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub at: Timestamp,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number; issues and pull requests share one sequence.
    pub number: Number,
    pub title: String,
    pub body: String,
    /// The branch with the work.
    pub head: String,
    /// The branch it is for.
    pub base: String,
    /// Where the head branch stands; none if the forge does not know (any more).
    pub head_sha: Option<Sha>,
    pub state: IssueState,
    /// Whether its work is on the base branch.
    pub merged: bool,
    pub merge_sha: Option<Sha>,
    /// Its reviews, oldest first.
    pub reviews: Vec<Review>,
    pub author: String,
}

/// A review of one commit of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub id: u64,
    pub author: String,
    pub verdict: ReviewVerdict,
    pub body: String,
    /// The commit it is bound to: it says nothing about any other.
    pub sha: Sha,
    pub at: Timestamp,
    /// Whether it was taken back.
    pub dismissed: bool,
}

/// A check of one commit, as a forge shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What was checked, in the words of whoever did.
    pub name: String,
    pub state: CheckState,
    /// What the CI says in a line, and where it says more.
    #[serde(default)]
    pub details: String,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    Success,
    Failure,
    Pending,
}

/// The Status of an issue on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum BoardStatus {
    /// Not looked at yet.
    Backlog,
    Ready,
    #[serde(rename = "In Progress")]
    InProgress,
    /// Its pull request is open.
    #[serde(rename = "In Review")]
    InReview,
    Done,
}

impl BoardStatus {
    /// All, in the order in which an issue passes them.
    pub const ALL: [Self; 5] = [Self::Backlog, Self::Ready, Self::InProgress, Self::InReview, Self::Done];

    /// The words on the board.
    pub fn name(self) -> &'static str {
        match self {
            Self::Backlog => "Backlog",
            Self::Ready => "Ready",
            Self::InProgress => "In Progress",
            Self::InReview => "In Review",
            Self::Done => "Done",
        }
    }

    /// Reads the name of a column: our words, or those of a new board on GitHub.
    pub fn of_column(name: &str) -> Option<Self> {
        let plain = name.trim().to_lowercase();
        Self::parse(name).or(matches!(plain.as_str(), "todo" | "to do").then_some(Self::Backlog))
    }

    /// The column that stands in for this one on a board without it.
    pub fn beside(self) -> Option<Self> {
        match self {
            Self::Backlog => Some(Self::Ready),
            Self::Ready => Some(Self::Backlog),
            Self::InReview => Some(Self::InProgress),
            Self::InProgress | Self::Done => None,
        }
    }

    /// Reads the words, in any case, with spaces, dashes or underscores between them.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |text: &str| text.trim().to_lowercase().replace(['-', '_'], " ");
        let wanted = plain(text);
        Self::ALL.into_iter().find(|status| plain(status.name()) == wanted)
    }
}

impl std::fmt::Display for BoardStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An issue as the board shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardItem {
    /// The board's own name for it.
    pub item_id: String,
    pub number: Number,
    pub title: String,
    pub status: BoardStatus,
    /// Who works on it; empty for nobody.
    pub agent: String,
}

#[cfg(test)]
mod tests {
    use super::BoardStatus;

    #[test]
    fn a_status_is_read_as_people_write_it() {
        for (text, status) in [
            ("In Progress", Some(BoardStatus::InProgress)),
            ("in_progress", Some(BoardStatus::InProgress)),
            (" IN-REVIEW ", Some(BoardStatus::InReview)),
            ("done", Some(BoardStatus::Done)),
            ("", None),
            ("Doing", None),
        ] {
            assert_eq!(BoardStatus::parse(text), status, "{text}");
        }
        assert_eq!(BoardStatus::of_column("Todo"), Some(BoardStatus::Backlog));
        assert_eq!(BoardStatus::of_column("in progress"), Some(BoardStatus::InProgress));
        assert_eq!(BoardStatus::of_column("Icebox"), None);
        for status in BoardStatus::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.name());
        }
    }
}
