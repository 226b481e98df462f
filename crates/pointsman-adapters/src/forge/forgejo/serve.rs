//! The trait of a forge, on top of the parts of the API.

use pointsman_core::forge::{Check, CheckState, Comment, Issue, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use serde_json::json;

use super::Forgejo;
use crate::forge::{Error, Forge};

impl Forge for Forgejo {
    fn me(&self) -> &str {
        Forgejo::me(self)
    }

    fn remote(&self) -> String {
        format!("{}/{}/{}.git", self.url, self.owner, self.repo)
    }

    fn open_issues(&self) -> Result<Vec<Issue>, Error> {
        self.ready()?;
        self.list_open_issues()
    }

    fn issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        self.ready()?;
        self.read_issue(number)
    }

    fn set_labels(&self, number: Number, add: &[String], remove: &[String]) -> Result<Vec<String>, Error> {
        self.ready()?;
        self.change_labels(number, add, remove)
    }

    fn assign_me(&self, number: Number) -> Result<(), Error> {
        self.ready()?;
        self.assign_to(number, Some(Forgejo::me(self)))
    }

    fn assign(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        self.ready()?;
        self.assign_to(number, who)
    }

    fn comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        self.ready()?;
        self.write_comment_once(number, marker, body)
    }

    fn comments_after(&self, number: Number, after: u64) -> Result<Vec<Comment>, Error> {
        self.ready()?;
        Ok(self.read_comments(number)?.into_iter().filter(|comment| comment.id > after).collect())
    }

    fn close_issue(&self, number: Number) -> Result<(), Error> {
        self.ready()?;
        self.change_issue("close an issue", number, &json!({ "state": "closed" })).map(drop)
    }

    fn dependencies(&self, number: Number) -> Result<Vec<Number>, Error> {
        self.ready()?;
        self.read_dependencies(number)
    }

    fn may_direct(&self, who: &str) -> Result<bool, Error> {
        self.ready()?;
        self.has_a_say(who)
    }

    fn ensure_pull_request(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        self.ready()?;
        self.open_pull(head, base, title, body)
    }

    fn pull_request(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        self.ready()?;
        self.read_pull(number)
    }

    fn pull_request_from(&self, head: &str, base: &str) -> Result<Option<PullRequest>, Error> {
        self.ready()?;
        let found = match self.find_open(head, base)? {
            Some(open) => Some(open),
            None => self.find_pull(head, base, "closed")?,
        };
        found.map(|wire| self.complete(wire)).transpose()
    }

    fn review_once(&self, pr: Number, sha: &Sha, verdict: ReviewVerdict, body: &str) -> Result<(), Error> {
        self.ready()?;
        self.write_review_once(pr, sha, verdict, body)
    }

    fn record_merge(&self, pr: Number, sha: &Sha) -> Result<(), Error> {
        self.ready()?;
        self.show_merged(pr, sha)
    }

    fn branch_head(&self, branch: &str) -> Result<Option<Sha>, Error> {
        self.ready()?;
        self.read_branch(branch)
    }

    fn pull_request_of(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error> {
        self.ready()?;
        self.explain(sha, parents)
    }

    fn issue_link(&self, number: Number) -> String {
        format!("{}/{}/{}/issues/{number}", self.url, self.owner, self.repo)
    }

    fn pull_request_link(&self, number: Number) -> String {
        format!("{}/{}/{}/pulls/{number}", self.url, self.owner, self.repo)
    }

    fn checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        self.ready()?;
        self.read_statuses(sha)
    }

    fn show_check(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        self.ready()?;
        self.write_status(sha, name, state)
    }
}
