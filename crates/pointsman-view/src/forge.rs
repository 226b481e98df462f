//! The embedded forge: `forge issue …`, `forge pr …`, `forge board …`, `forge status …`, and the cost of a forge on a
//! server.

use std::path::PathBuf;

use pointsman_core::forge::{self as core, BoardStatus, CheckState, IssueState};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::review::comments::Handled;
use pointsman_core::task::{ReviewVerdict, State};
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::evidence::{Artifacts, Receipt, Risk};

/// An issue with its comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issue {
    pub number: Number,
    pub title: String,
    pub body: String,
    pub state: IssueState,
    pub labels: Vec<String>,
    pub comments: Vec<Comment>,
    pub assignee: Option<String>,
    pub author: String,
    pub created_at: Time,
}

impl From<&core::Issue> for Issue {
    fn from(issue: &core::Issue) -> Self {
        Self {
            number: issue.number,
            title: issue.title.clone(),
            body: issue.body.clone(),
            state: issue.state,
            labels: issue.labels.clone(),
            comments: issue.comments.iter().map(Comment::from).collect(),
            assignee: issue.assignee.clone(),
            author: issue.author.clone(),
            created_at: issue.created_at.into(),
        }
    }
}

/// A comment on an issue or a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    pub author: String,
    pub body: String,
    pub at: Time,
}

impl From<&core::Comment> for Comment {
    fn from(comment: &core::Comment) -> Self {
        Self { author: comment.author.clone(), body: comment.body.clone(), at: comment.at.into() }
    }
}

/// A pull request with its reviews and comments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    pub number: Number,
    pub title: String,
    pub body: String,
    pub head: String,
    pub base: String,
    pub head_sha: Option<Sha>,
    pub state: IssueState,
    pub merged: bool,
    pub merge_sha: Option<Sha>,
    pub reviews: Vec<Review>,
    pub comments: Vec<Comment>,
    pub author: String,
    /// What was run on it; empty where nobody looked.
    #[serde(default)]
    pub receipt: Vec<Receipt>,
    /// Its class of risk, if a task is about it and that decides who looks at it.
    #[serde(default)]
    pub risk: Option<Risk>,
    /// Files that help with its review.
    #[serde(default)]
    pub artifacts: Artifacts,
}

impl PullRequest {
    /// The view of a pull request and the comments on it.
    pub fn new(pr: &core::PullRequest, comments: &[core::Comment]) -> Self {
        Self {
            number: pr.number,
            title: pr.title.clone(),
            body: pr.body.clone(),
            head: pr.head.clone(),
            base: pr.base.clone(),
            head_sha: pr.head_sha.clone(),
            state: pr.state,
            merged: pr.merged,
            merge_sha: pr.merge_sha.clone(),
            reviews: pr.reviews.iter().map(Review::from).collect(),
            comments: comments.iter().map(Comment::from).collect(),
            author: pr.author.clone(),
            receipt: Vec::new(),
            risk: None,
            artifacts: Artifacts::default(),
        }
    }
}

/// A review of one commit of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    pub author: String,
    pub verdict: ReviewVerdict,
    pub body: String,
    pub sha: Sha,
    pub at: Time,
    pub dismissed: bool,
    /// Its comments on lines, and what became of them; only where one pull request is shown.
    #[serde(default)]
    pub lines: Vec<LineComment>,
}

/// A comment on a line of the commit that was reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineComment {
    pub file: String,
    pub line: u64,
    pub text: String,
    pub handled: Handled,
}

impl From<&core::Review> for Review {
    fn from(review: &core::Review) -> Self {
        Self {
            author: review.author.clone(),
            verdict: review.verdict,
            body: review.body.clone(),
            sha: review.sha.clone(),
            at: review.at.into(),
            dismissed: review.dismissed,
            lines: Vec::new(),
        }
    }
}

/// The answer to `forge issue comment`, which takes the number of either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Commented {
    // Tried first: an issue lacks fields that a pull request must have, so it cannot pass for one.
    PullRequest(PullRequest),
    Issue(Issue),
}

/// The answer to `forge pr merge`: the pull request, now approved, or the state of a task that was in the queue already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Merging {
    Approved(Box<PullRequest>),
    Queued(Queued),
}

/// A pull request whose task is in the merge queue already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    pub number: Number,
    pub state: State,
}

/// An issue as the board shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardItem {
    pub item_id: String,
    pub number: Number,
    pub title: String,
    pub status: BoardStatus,
    pub agent: String,
}

impl From<core::BoardItem> for BoardItem {
    fn from(item: core::BoardItem) -> Self {
        let core::BoardItem { item_id, number, title, status, agent } = item;
        Self { item_id, number, title, status, agent }
    }
}

/// `forge status …`: what checks say about a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checks {
    pub sha: Sha,
    pub checks: Vec<Check>,
}

/// A check of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub name: String,
    pub state: CheckState,
}

impl From<core::Check> for Check {
    fn from(check: core::Check) -> Self {
        Self { name: check.name, state: check.state }
    }
}

/// `forge url`: the bare repository that is the remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Url {
    pub url: PathBuf,
}

/// `forge stats`: what one kind of request has cost since the daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    pub operation: String,
    pub calls: u64,
    pub unchanged: u64,
    pub failed: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub waited_ms: u64,
}
