//! What a forge holds, as plain values: issues, comments, pull requests and reviews.
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
    /// Open.
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

/// Which issues or pull requests a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateFilter {
    /// Open ones.
    #[default]
    Open,
    /// Closed ones.
    Closed,
    /// All.
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

/// An issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    /// Its number; issues and pull requests share one sequence.
    pub number: Number,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Whether it is open.
    pub state: IssueState,
    /// Its labels, sorted.
    pub labels: Vec<String>,
    /// Its comments, oldest first.
    pub comments: Vec<Comment>,
    /// Who has claimed it.
    pub assignee: Option<String>,
    /// Who wrote it.
    pub author: String,
    /// When it was written.
    pub created_at: Timestamp,
}

/// A comment on an issue or a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Grows with every comment.
    pub id: u64,
    /// Who.
    pub author: String,
    /// The text.
    pub body: String,
    /// When.
    pub at: Timestamp,
}

/// A pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number; issues and pull requests share one sequence.
    pub number: Number,
    /// Its title.
    pub title: String,
    /// Its text.
    pub body: String,
    /// The branch with the work.
    pub head: String,
    /// The branch it is for.
    pub base: String,
    /// Where the head branch stands; none if the forge does not know (any more).
    pub head_sha: Option<Sha>,
    /// Whether it is open.
    pub state: IssueState,
    /// Whether its work is on the base branch.
    pub merged: bool,
    /// As which commit.
    pub merge_sha: Option<Sha>,
    /// Its reviews, oldest first.
    pub reviews: Vec<Review>,
    /// Who opened it.
    pub author: String,
}

/// A review of one commit of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Grows with every review.
    pub id: u64,
    /// Who.
    pub author: String,
    /// What it says.
    pub verdict: ReviewVerdict,
    /// The text.
    pub body: String,
    /// The commit it is bound to: it says nothing about any other.
    pub sha: Sha,
    /// When.
    pub at: Timestamp,
    /// Whether it was taken back.
    pub dismissed: bool,
}
