//! What the server says, as far as we read it. A field may be missing or null in some version: then it is empty.

use pointsman_core::forge::{Check, CheckState, Comment, Issue, IssueState, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::time::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::http::{Host, timestamp};

/// Null is as good as missing.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(from: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

macro_rules! wire {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(default)]
        pub(super) struct $name {
            $(#[serde(deserialize_with = "or_default")] pub(super) $field: $type,)*
        }
    };
}

wire! { User { login: String, } }
wire! { Label { id: u64, name: String, } }
wire! { Repository { full_name: String, default_branch: String, permissions: Permissions, has_issues: bool, has_pull_requests: bool, archived: bool, } }
wire! { Permissions { admin: bool, push: bool, pull: bool, } }
wire! { WireIssue {
    number: Number, title: String, body: String, state: String, user: User, labels: Vec<Label>, assignee: Option<User>,
    assignees: Vec<User>, comments: u64, created_at: String, updated_at: String,
    pull_request: Option<serde::de::IgnoredAny>,
} }
wire! { WireComment { id: u64, user: User, body: String, created_at: String, } }
wire! { Branch { commit: BranchCommit, } }
wire! { BranchCommit { id: String, } }
wire! { End { r#ref: String, sha: String, repo: Option<Repository>, } }
wire! { WirePull {
    number: Number, title: String, body: String, state: String, user: User, merged: bool, merge_commit_sha: String,
    head: End, base: End,
} }
wire! { WireReview {
    id: u64, user: User, state: String, body: String, commit_id: String, stale: bool, official: bool, dismissed: bool,
    comments_count: u64, submitted_at: String,
} }
wire! { Remark { path: String, line: u64, position: u64, original_position: u64, body: String, } }
wire! { Combined { total_count: usize, statuses: Vec<Status>, } }
wire! { Status { context: String, status: String, description: String, target_url: String, } }
wire! { Commit { sha: String, } }

/// A time of the server by our clock; the beginning of time if it cannot be read.
pub(super) fn time(host: &Host, text: &str) -> Timestamp {
    timestamp(text).map_or(Timestamp(0), |theirs| host.our_time(theirs))
}

fn state(text: &str) -> IssueState {
    // What is not open is not worked on.
    if text == "open" { IssueState::Open } else { IssueState::Closed }
}

impl WireIssue {
    /// As everybody knows it, without comments. Of several assignees we are the one that counts.
    pub(super) fn plain(self, host: &Host, me: &str) -> Issue {
        let mut labels: Vec<String> = self.labels.into_iter().map(|label| label.name).collect();
        labels.sort();
        labels.dedup();
        let ours = self.assignees.iter().find(|user| user.login == me);
        let first = ours.or(self.assignees.first()).cloned().or(self.assignee);
        Issue {
            number: self.number,
            title: self.title,
            body: self.body,
            state: state(&self.state),
            labels,
            comments: Vec::new(),
            assignee: first.map(|user| user.login).filter(|login| !login.is_empty()),
            author: self.user.login,
            created_at: time(host, &self.created_at),
        }
    }
}

impl WireComment {
    pub(super) fn plain(self, host: &Host) -> Comment {
        Comment { id: self.id, author: self.user.login, at: time(host, &self.created_at), body: self.body }
    }
}

impl WirePull {
    /// As everybody knows it, without reviews.
    pub(super) fn plain(self) -> PullRequest {
        PullRequest {
            number: self.number,
            title: self.title,
            body: self.body,
            head: self.head.r#ref,
            base: self.base.r#ref,
            head_sha: Sha::new(&self.head.sha),
            state: state(&self.state),
            merged: self.merged,
            merge_sha: Sha::new(&self.merge_commit_sha).filter(|_| self.merged),
            reviews: Vec::new(),
            author: self.user.login,
        }
    }
}

impl WireReview {
    /// As everybody knows it; none if it says nothing about a commit, or only talks.
    ///
    /// A review that is stale, or not by somebody whose word counts on that branch, is as good as taken back.
    pub(super) fn plain(self, host: &Host, reviewer: Option<&str>, remarks: &str) -> Option<Review> {
        let verdict = match self.state.as_str() {
            "APPROVED" => ReviewVerdict::Approve,
            "REQUEST_CHANGES" => ReviewVerdict::RequestChanges,
            // People talk in comments. Ours says that somebody should.
            "COMMENT" if reviewer == Some(self.user.login.as_str()) => ReviewVerdict::Discuss,
            _ => return None,
        };
        let counts = self.official || verdict == ReviewVerdict::Discuss;
        Some(Review {
            id: self.id,
            author: self.user.login,
            verdict,
            body: self.body + remarks,
            sha: Sha::new(&self.commit_id)?,
            at: time(host, &self.submitted_at),
            dismissed: self.dismissed || self.stale || !counts,
        })
    }
}

impl Status {
    pub(super) fn plain(self) -> Check {
        let state = match self.status.as_str() {
            "success" | "skipped" => CheckState::Success,
            "pending" => CheckState::Pending,
            // What we do not know is not green.
            _ => CheckState::Failure,
        };
        Check { name: self.context, state }
    }
}
