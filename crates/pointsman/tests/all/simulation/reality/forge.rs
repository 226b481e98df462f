//! Issues, pull requests, reviews, and the main branch.

use std::collections::BTreeSet;

use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::time::Timestamp;

use super::Reality;

/// Our name on the forge.
pub(in crate::simulation) const ME: &str = "pointsman";

/// An issue.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Issue {
    pub(in crate::simulation) open: bool,
    pub(in crate::simulation) labels: BTreeSet<String>,
    pub(in crate::simulation) assignee: Option<String>,
    pub(in crate::simulation) depends_on: BTreeSet<Number>,
    /// What people wrote: number, text, when.
    pub(in crate::simulation) answers: Vec<(u64, String, Timestamp)>,
}

/// A pull request of a task's branch.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct PullRequest {
    pub(in crate::simulation) issue: Number,
    pub(in crate::simulation) open: bool,
    pub(in crate::simulation) merged_as: Option<Sha>,
    pub(in crate::simulation) reviews: Vec<Review>,
}

/// A review, bound to a commit.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Review {
    pub(in crate::simulation) id: u64,
    pub(in crate::simulation) sha: Sha,
    pub(in crate::simulation) verdict: ReviewVerdict,
}

/// Something on the main branch.
#[derive(Clone, Debug)]
pub(in crate::simulation) struct Landed {
    pub(in crate::simulation) head: Sha,
    pub(in crate::simulation) sha: Sha,
}

impl Issue {
    pub(in crate::simulation) fn has(&self, label: &str) -> bool {
        self.labels.contains(label)
    }

    pub(in crate::simulation) fn label(&mut self, add: &[&str], remove: &[&str]) {
        self.labels.retain(|label| !remove.contains(&label.as_str()));
        self.labels.extend(add.iter().map(|&label| label.to_owned()));
    }
}

impl Reality {
    /// Whether the main branch holds this commit, as itself or as the candidate made of it.
    pub(in crate::simulation) fn landed_as(&self, head: &Sha) -> Option<&Sha> {
        self.main.iter().find(|l| l.head == *head || l.sha == *head).map(|l| &l.sha)
    }

    /// Puts a commit on the main branch. Twice would be seen by everybody.
    pub(in crate::simulation) fn land(&mut self, head: Sha, sha: Sha) {
        assert!(self.landed_as(&head).is_none(), "{} landed a second time", head.short());
        self.main.push(Landed { head, sha });
    }

    /// The open pull request of an issue's branch.
    pub(in crate::simulation) fn open_pull_request(&self, issue: Number) -> Option<Number> {
        self.pull_requests.iter().find(|(_, pr)| pr.issue == issue && pr.open).map(|(number, _)| *number)
    }

    /// Adds a review of this commit.
    pub(in crate::simulation) fn review(&mut self, number: Number, sha: Sha, verdict: ReviewVerdict) {
        let id = self.fresh();
        let pr = self.pull_requests.get_mut(&number).expect("a pull request is reviewed");
        pr.reviews.push(Review { id, sha, verdict });
    }

    pub(in crate::simulation) fn is_approved(&self, issue: Number, sha: &Sha) -> bool {
        self.pull_requests
            .values()
            .filter(|pr| pr.issue == issue)
            .flat_map(|pr| &pr.reviews)
            .any(|r| r.sha == *sha && r.verdict == ReviewVerdict::Approve)
    }

    /// Those of an issue's dependencies that are open.
    pub(in crate::simulation) fn open_dependencies(&self, issue: Number) -> Vec<Number> {
        let wanted = &self.issues[&issue].depends_on;
        wanted.iter().copied().filter(|n| self.issues.get(n).is_none_or(|i| i.open)).collect()
    }
}
