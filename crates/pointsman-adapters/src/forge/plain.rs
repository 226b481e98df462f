//! A git repository and nothing else: no issues, no pull requests. The merge queue needs no more.

use pointsman_core::forge::{Check, Comment, Issue, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;

use super::{Error, Forge};
use crate::git::BranchName;
use crate::git::mirror::Mirror;

/// A repository by its path or address.
pub struct PlainRepository {
    mirror: Mirror,
}

impl PlainRepository {
    /// The remote of this mirror.
    pub fn new(mirror: Mirror) -> Self {
        Self { mirror }
    }
}

fn none<T>(operation: &'static str) -> Result<T, Error> {
    let reason = "a plain repository has no issues and no pull requests".to_owned();
    Err(Error::Refused { operation, reason })
}

impl Forge for PlainRepository {
    fn me(&self) -> &str {
        "pointsman"
    }

    fn reviewer(&self) -> Option<&str> {
        None
    }

    fn remote(&self) -> String {
        self.mirror.remote_url().to_owned()
    }

    fn open_issues(&self) -> Result<Vec<Issue>, Error> {
        Ok(Vec::new())
    }

    fn issue(&self, _: Number) -> Result<Option<Issue>, Error> {
        Ok(None)
    }

    fn file_issue_once(&self, _: &str, _: &str, _: &str, _: &[&str]) -> Result<Number, Error> {
        none("file an issue")
    }

    fn set_labels(&self, _: Number, _: &[String], _: &[String]) -> Result<Vec<String>, Error> {
        none("set labels")
    }

    fn assign_me(&self, _: Number) -> Result<(), Error> {
        none("assign an issue")
    }

    fn assign(&self, _: Number, _: Option<&str>) -> Result<(), Error> {
        none("assign an issue")
    }

    fn comment_once(&self, _: Number, _: &str, _: &str) -> Result<(), Error> {
        none("comment")
    }

    fn comments_after(&self, _: Number, _: u64) -> Result<Vec<Comment>, Error> {
        Ok(Vec::new())
    }

    fn close_issue(&self, _: Number) -> Result<(), Error> {
        none("close an issue")
    }

    fn ensure_pull_request(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Number, Error> {
        none("open a pull request")
    }

    fn pull_request(&self, _: Number) -> Result<Option<PullRequest>, Error> {
        Ok(None)
    }

    fn pull_request_from(&self, _: &str, _: &str) -> Result<Option<PullRequest>, Error> {
        Ok(None)
    }

    fn open_pull_requests(&self) -> Result<Vec<PullRequest>, Error> {
        Ok(Vec::new())
    }

    fn withdraw_change_requests(&self, _: Number, _: &Sha) -> Result<(), Error> {
        none("take a review back")
    }

    fn review_once(&self, _: Number, _: &Sha, _: ReviewVerdict, _: &str) -> Result<(), Error> {
        none("review a pull request")
    }

    fn record_merge(&self, _: Number, _: &Sha) -> Result<(), Error> {
        none("record a merge")
    }

    fn branch_head(&self, branch: &str) -> Result<Option<Sha>, Error> {
        let Some(branch) = BranchName::new(branch) else { return Ok(None) };
        let found = self.mirror.remote_refs(std::iter::once(&branch.full()));
        let unavailable = |error: crate::git::Error| Error::Unavailable { reason: error.to_string() };
        Ok(found.map_err(unavailable)?.pop().flatten())
    }

    fn pull_request_of(&self, _: &Sha, _: &[Sha]) -> Result<Option<Number>, Error> {
        Ok(None)
    }

    fn pull_request_link(&self, number: Number) -> String {
        format!("#{number}")
    }

    fn checks(&self, _: &Sha) -> Result<Vec<Check>, Error> {
        Ok(Vec::new())
    }

    fn issue_link(&self, number: Number) -> String {
        format!("#{number}")
    }
}
