//! The messages of GitLab, as far as we read them. A field may be missing or null in some version: then it is empty.

use pointsman_core::forge::{Check, CheckState, Comment, Issue, IssueState, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::time::Timestamp;

use crate::forge::hosted::wire::wire;
use crate::http::{Host, timestamp};

wire! { User { id: u64, username: String, } }
wire! { Member { username: String, access_level: u32, state: String, } }
wire! { Release { version: String, } }
wire! { Label { name: String, } }
wire! { Project {
    archived: bool, issues_access_level: String, merge_requests_access_level: String, permissions: Permissions,
} }
wire! { Permissions { project_access: Option<Access>, group_access: Option<Access>, } }
wire! { Access { access_level: u32, } }
wire! { WireIssue {
    iid: Number, title: String, description: String, state: String, labels: Vec<String>, assignees: Vec<User>,
    author: User, created_at: String, user_notes_count: u64,
} }
wire! { Note {
    id: u64, body: String, author: User, created_at: String, system: bool, position: Option<Position>,
} }
wire! { Position { new_path: String, new_line: u64, old_line: u64, } }
wire! { MergeRequest {
    iid: Number, title: String, description: String, state: String, source_branch: String, target_branch: String,
    sha: String, merge_commit_sha: String, squash_commit_sha: String, author: User, source_project_id: u64,
    target_project_id: u64,
} }
wire! { Version { id: u64, head_commit_sha: String, created_at: String, } }
wire! { Approvals { approved_by: Vec<Approver>, } }
wire! { Approver { user: User, } }
wire! { Reviewer { user: User, state: String, } }
wire! { Branch { commit: Commit, protected: bool, can_push: Option<bool>, } }
wire! { Commit { id: String, } }
wire! { PushEvent { author_username: String, push_data: PushData, } }
wire! { PushData { r#ref: String, ref_type: String, commit_to: String, } }
wire! { Status {
    id: u64, name: String, status: String, description: String, target_url: String, allow_failure: bool,
} }

impl Access {
    /// The higher of the levels that an account has in the project and in its groups.
    pub(super) fn highest(permissions: &Permissions) -> u32 {
        let levels = [&permissions.project_access, &permissions.group_access];
        levels.into_iter().flatten().map(|access| access.access_level).max().unwrap_or(0)
    }
}

/// A time of the server by our clock; the beginning of time if it cannot be read.
pub(super) fn time(host: &Host, text: &str) -> Timestamp {
    timestamp(text).map_or(Timestamp(0), |theirs| host.our_time(theirs))
}

fn state(text: &str) -> IssueState {
    // What is not open is not worked on.
    if text == "opened" { IssueState::Open } else { IssueState::Closed }
}

impl WireIssue {
    /// As everybody knows it, without comments. Of several assignees we are the one that counts.
    pub(super) fn plain(self, host: &Host, me: &str) -> Issue {
        let mut labels = self.labels;
        labels.sort();
        labels.dedup();
        let ours = self.assignees.iter().find(|user| user.username == me);
        let assignee = ours.or(self.assignees.first()).map(|user| user.username.clone());
        Issue {
            number: self.iid,
            title: self.title,
            body: self.description,
            state: state(&self.state),
            labels,
            comments: Vec::new(),
            assignee,
            author: self.author.username,
            created_at: time(host, &self.created_at),
        }
    }
}

impl Note {
    pub(super) fn plain(self, host: &Host) -> Comment {
        Comment {
            id: self.id,
            author: self.author.username,
            at: time(host, &self.created_at),
            body: self.body,
        }
    }
}

impl MergeRequest {
    /// Whether it is merged.
    pub(super) fn is_merged(&self) -> bool {
        self.state == "merged"
    }

    /// Whether its branch is one of this very project: one of a fork may have the same name.
    pub(super) fn is_ours(&self) -> bool {
        self.source_project_id == self.target_project_id
    }

    /// The commit that it was merged as: a merge commit, a squashed one, or its own head.
    pub(super) fn merged_as(&self) -> Option<Sha> {
        let named = [&self.merge_commit_sha, &self.squash_commit_sha, &self.sha];
        named.into_iter().find_map(|sha| Sha::new(sha)).filter(|_| self.is_merged())
    }

    /// As everybody knows it, without reviews.
    pub(super) fn plain(self) -> PullRequest {
        PullRequest {
            number: self.iid,
            head_sha: Sha::new(&self.sha),
            merged: self.is_merged(),
            merge_sha: self.merged_as(),
            state: state(&self.state),
            title: self.title,
            body: self.description,
            head: self.source_branch,
            base: self.target_branch,
            reviews: Vec::new(),
            author: self.author.username,
        }
    }
}

impl Status {
    /// The result of a job, or of what somebody else reported.
    pub(super) fn state(&self) -> CheckState {
        match self.status.as_str() {
            "success" | "skipped" => CheckState::Success,
            "created"
            | "waiting_for_resource"
            | "preparing"
            | "pending"
            | "running"
            | "scheduled"
            | "canceling"
            | "waiting_for_callback" => CheckState::Pending,
            // A job that a person would have to start holds nobody up unless it must pass.
            "manual" if self.allow_failure => CheckState::Success,
            "manual" => CheckState::Pending,
            _ if self.allow_failure => CheckState::Success,
            // What we do not know is not green.
            _ => CheckState::Failure,
        }
    }

    /// As everybody knows it, with the end of its log.
    pub(super) fn plain(self, log: &str) -> Check {
        let state = self.state();
        let details = format!("{}\n{}\n{log}", self.description, self.target_url).trim().to_owned();
        Check { name: self.name, state, details }
    }
}
