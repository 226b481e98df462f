//! The servers' messages, as far as we read them. A field may be missing or null on one of them, or in some version:
//! then it is empty.

use pointsman_core::forge::{Check, CheckState, Comment, Issue, IssueState, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use serde::{Deserialize, Deserializer};

use crate::http::{Host, timestamp};

/// How much of a path is repeated to an agent.
const PATH_CHARS: usize = 200;

/// Null is as good as missing.
pub(in crate::forge) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(from).map(Option::unwrap_or_default)
}

macro_rules! wire {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize)]
        #[serde(default)]
        pub(in crate::forge) struct $name {
            $(#[serde(deserialize_with = "crate::forge::hosted::wire::or_default")]
            pub(in crate::forge) $field: $type,)*
        }
    };
}
pub(in crate::forge) use wire;

wire! { User { login: String, } }
wire! { Label { id: u64, name: String, } }
wire! { WireRepository {
    full_name: String, permissions: Permissions, has_issues: Option<bool>, has_pull_requests: Option<bool>,
    archived: bool,
} }
wire! { Permissions { push: bool, pull: bool, } }
wire! { WireIssue {
    number: Number, title: String, body: String, state: String, user: User, labels: Vec<Label>, assignee: Option<User>,
    assignees: Vec<User>, comments: u64, created_at: String, updated_at: String,
    pull_request: Option<serde::de::IgnoredAny>,
} }
wire! { WireComment { id: u64, user: User, body: String, created_at: String, } }
wire! {
    /// GitHub does not say whether we may push.
    Branch { commit: Tip, protected: bool, user_can_push: Option<bool>, }
}
wire! {
    /// Gitea says `id`, GitHub `sha`.
    Tip { id: String, sha: String, }
}
wire! { End { r#ref: String, sha: String, repo: Option<WireRepository>, } }
wire! {
    /// Gitea says `merged`, GitHub when.
    WirePull {
        number: Number, title: String, body: String, state: String, user: User, merged: bool, merged_at: Option<String>,
        merge_commit_sha: String, head: End, base: End, labels: Vec<Label>, draft: bool,
        auto_merge: Option<serde::de::IgnoredAny>, stack: Option<serde::de::IgnoredAny>,
    }
}
wire! { WireReview {
    id: u64, user: User, state: String, body: String, commit_id: String, official: bool, dismissed: bool,
    comments_count: Option<u64>, submitted_at: String,
} }
wire! {
    /// Gitea's positions are lines of a file; GitHub's are lines of a diff, beside its lines.
    Remark { path: String, line: u64, original_line: u64, position: u64, original_position: u64, body: String, }
}
wire! {
    /// Gitea says `status`, GitHub `state`.
    Status { context: String, status: String, state: String, description: String, target_url: String, }
}

/// A page of a list that says how long it is.
#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
pub(in crate::forge) struct Counted<T> {
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::forge) total_count: usize,
    #[serde(alias = "statuses", alias = "check_runs", default = "Vec::new", deserialize_with = "or_default")]
    pub(in crate::forge) items: Vec<T>,
}

/// A time of the server by our clock; the beginning of time if it cannot be read.
fn time(host: &Host, text: &str) -> Timestamp {
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

impl Tip {
    pub(super) fn sha(&self) -> Option<Sha> {
        Sha::new(&self.id).or_else(|| Sha::new(&self.sha))
    }
}

impl WirePull {
    /// Whether it is merged.
    pub(in crate::forge) fn is_merged(&self) -> bool {
        self.merged || self.merged_at.is_some()
    }

    /// As everybody knows it, without reviews. The merge commit of an open one is a rehearsal, not a fact.
    pub(in crate::forge) fn plain(self) -> PullRequest {
        let merged = self.is_merged();
        PullRequest {
            number: self.number,
            title: self.title,
            body: self.body,
            head: self.head.r#ref,
            base: self.base.r#ref,
            head_sha: Sha::new(&self.head.sha),
            state: state(&self.state),
            merged,
            merge_sha: Sha::new(&self.merge_commit_sha).filter(|_| merged),
            reviews: Vec::new(),
            author: self.user.login,
        }
    }
}

impl WireReview {
    /// What it says; none if it only talks, or was taken back or not handed in.
    pub(super) fn verdict(&self, reviewer: Option<&str>) -> Option<ReviewVerdict> {
        match self.state.as_str() {
            "APPROVED" => Some(ReviewVerdict::Approve),
            "REQUEST_CHANGES" | "CHANGES_REQUESTED" => Some(ReviewVerdict::RequestChanges),
            // People talk in comments. Ours says that somebody should.
            "COMMENT" | "COMMENTED" if reviewer == Some(self.user.login.as_str()) => {
                Some(ReviewVerdict::Discuss)
            }
            _ => None,
        }
    }

    /// As everybody knows it; none if it says nothing about a commit.
    pub(super) fn plain(
        self,
        host: &Host,
        verdict: ReviewVerdict,
        counts: bool,
        remarks: &str,
    ) -> Option<Review> {
        Some(Review {
            id: self.id,
            author: self.user.login,
            verdict,
            body: self.body + remarks,
            sha: Sha::new(&self.commit_id)?,
            at: time(host, &self.submitted_at),
            dismissed: !counts,
        })
    }
}

impl Remark {
    /// As words below a review.
    pub(super) fn words(&self) -> String {
        let lines = [self.line, self.original_line, self.position.max(self.original_position)];
        let at = lines.into_iter().find(|line| *line > 0).map_or(String::new(), |line| format!(":{line}"));
        format!("\n\n{}{at}: {}", clean_line(&self.path, PATH_CHARS), self.body)
    }
}

impl Status {
    pub(super) fn plain(self) -> Check {
        let word = if self.status.is_empty() { &self.state } else { &self.status };
        let state = match word.as_str() {
            "success" | "skipped" => CheckState::Success,
            "pending" => CheckState::Pending,
            // What we do not know is not green.
            _ => CheckState::Failure,
        };
        let details = format!("{}\n{}", self.description, self.target_url).trim().to_owned();
        Check { name: self.context, state, details }
    }
}
