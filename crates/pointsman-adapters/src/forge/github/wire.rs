//! What GitHub says, as far as we read it. A field may be missing or null: then it is empty.

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
wire! { Label { name: String, } }
wire! { Permissions { push: bool, pull: bool, } }
wire! { Repository { full_name: String, permissions: Permissions, has_issues: bool, archived: bool, } }
wire! { Permission { permission: String, } }
wire! { WireIssue {
    number: Number, title: String, body: String, state: String, user: User, labels: Vec<Label>,
    assignees: Vec<User>, comments: u64, created_at: String, pull_request: Option<serde::de::IgnoredAny>,
} }
wire! { WireComment { id: u64, user: User, body: String, created_at: String, } }
wire! { Branch { commit: Commit, } }
wire! { Commit { sha: String, } }
wire! { End { r#ref: String, sha: String, repo: Option<Repository>, } }
wire! { WirePull {
    number: Number, title: String, body: String, state: String, user: User, merged_at: Option<String>,
    merge_commit_sha: String, head: End, base: End,
} }
wire! { WireReview { id: u64, user: User, state: String, body: String, commit_id: String, submitted_at: String, } }
wire! { Remark { path: String, line: u64, original_line: u64, body: String, } }
wire! { Combined { total_count: usize, statuses: Vec<Status>, } }
wire! { Status { context: String, state: String, } }
wire! { CheckRuns { total_count: usize, check_runs: Vec<CheckRun>, } }
wire! { CheckRun { name: String, status: String, conclusion: String, } }
wire! { Comparison { status: String, } }

/// A time of the server by our clock; the beginning of time if it cannot be read.
fn time(host: &Host, text: &str) -> Timestamp {
    timestamp(text).map_or(Timestamp(0), |theirs| host.our_time(theirs))
}

fn state(text: &str) -> IssueState {
    if text == "open" { IssueState::Open } else { IssueState::Closed }
}

impl WireIssue {
    /// As everybody knows it, without comments. Of several assignees we are the one that counts.
    pub(super) fn plain(self, host: &Host, me: &str) -> Issue {
        let mut labels: Vec<String> = self.labels.into_iter().map(|label| label.name).collect();
        labels.sort();
        let ours = self.assignees.iter().find(|user| user.login == me);
        Issue {
            number: self.number,
            title: self.title,
            body: self.body,
            state: state(&self.state),
            labels,
            comments: Vec::new(),
            assignee: ours.or(self.assignees.first()).map(|user| user.login.clone()),
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
    /// As everybody knows it, without reviews. The merge commit of an open one is a rehearsal, not a fact.
    pub(super) fn plain(self) -> PullRequest {
        let merged = self.merged_at.is_some();
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
            "CHANGES_REQUESTED" => Some(ReviewVerdict::RequestChanges),
            // People talk in comments. Ours says that somebody should.
            "COMMENTED" if reviewer == Some(self.user.login.as_str()) => Some(ReviewVerdict::Discuss),
            _ => None,
        }
    }

    /// As everybody knows it; a review by somebody whose word does not count is as good as taken back.
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

impl Status {
    pub(super) fn plain(self) -> Check {
        let state = match self.state.as_str() {
            "success" => CheckState::Success,
            "pending" => CheckState::Pending,
            _ => CheckState::Failure,
        };
        Check { name: self.context, state }
    }
}

impl CheckRun {
    pub(super) fn plain(self) -> Check {
        let state = match (self.status.as_str(), self.conclusion.as_str()) {
            ("completed", "success" | "neutral" | "skipped") => CheckState::Success,
            // What we do not know is not green.
            ("completed", _) => CheckState::Failure,
            _ => CheckState::Pending,
        };
        Check { name: self.name, state }
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::forge::CheckState;

    use super::CheckRun;

    #[test]
    fn a_check_run_is_green_red_or_open() {
        let run = |status: &str, conclusion: &str| {
            let (status, conclusion) = (status.to_owned(), conclusion.to_owned());
            CheckRun { name: "x".to_owned(), status, conclusion }.plain().state
        };
        for green in ["success", "neutral", "skipped"] {
            assert_eq!(run("completed", green), CheckState::Success);
        }
        for red in ["failure", "cancelled", "timed_out", "action_required", "stale", "startup_failure", ""] {
            assert_eq!(run("completed", red), CheckState::Failure, "{red}");
        }
        for open in ["queued", "in_progress", "waiting", "requested", "pending"] {
            assert_eq!(run(open, ""), CheckState::Pending, "{open}");
        }
    }
}
