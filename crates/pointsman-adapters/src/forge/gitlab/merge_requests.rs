//! Merge requests and what became of them.

use std::collections::BTreeMap;

use pointsman_core::forge::{IssueState, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::words;
use serde_json::json;

use super::Gitlab;
use super::issues::Noteable;
use super::wire::{Branch, Commit, MergeRequest};
use crate::forge::Error;
use crate::forge::hosted::errors::{LONGEST_BODY, TITLE_CHARS, cut, landed_as, landed_mark, told};
use crate::http::Method;

const LIST: &str = "list merge requests";
const MERGE: &str = "record a merge";

impl Gitlab {
    /// The newest merge request between two branches of this very project, in this state.
    fn find_merge_request(&self, head: &str, base: &str, state: &str) -> Result<Option<MergeRequest>, Error> {
        let question = self.get(LIST, &["merge_requests"]).query("state", state).query("scope", "all");
        let question = question.query("source_branch", head).query("target_branch", base);
        let listed: Vec<MergeRequest> = self.list(&question)?;
        let is_meant =
            |mr: &MergeRequest| mr.is_ours() && mr.source_branch == head && mr.target_branch == base;
        Ok(listed.into_iter().filter(is_meant).max_by_key(|mr| mr.iid))
    }

    /// The newest between two branches, open ones first.
    pub(super) fn newest(&self, head: &str, base: &str) -> Result<Option<PullRequest>, Error> {
        let found = match self.find_merge_request(head, base, "opened")? {
            Some(open) => Some(open),
            None => self.find_merge_request(head, base, "all")?,
        };
        found.map(|wire| self.complete(wire)).transpose()
    }

    /// The open one between two branches: found, or opened.
    pub(super) fn open_once(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        let title: String = title.chars().take(TITLE_CHARS).collect();
        // The queue deletes the branch, and only when nothing has come to it since.
        let order = json!({
            "source_branch": head, "target_branch": base, "title": title, "description": cut(body, LONGEST_BODY),
            "remove_source_branch": false,
        });
        let request = self.request("open a merge request", Method::Post, &["merge_requests"]).body(&order);
        match self.dev.read::<MergeRequest>(&request) {
            Ok(opened) => Ok(opened.iid),
            // Somebody was faster, or an earlier answer got lost.
            Err(error) if error.status() == Some(409) => {
                self.find_merge_request(head, base, "opened")?.map(|open| open.iid).ok_or_else(|| told(error))
            }
            Err(error) => Err(told(error)),
        }
    }

    /// As the server says it.
    fn read_wire(&self, number: Number) -> Result<Option<MergeRequest>, Error> {
        let request = self.get("read a merge request", &["merge_requests", &number.to_string()]);
        self.dev.find(&request).map_err(told)
    }

    /// One as it stands.
    pub(super) fn read_merge_request(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        self.read_wire(number)?.map(|wire| self.complete(wire)).transpose()
    }

    /// With its reviews, unless it is merged: then nobody asks what they were.
    fn complete(&self, wire: MergeRequest) -> Result<PullRequest, Error> {
        let mut pr = self.settled(wire)?;
        if !pr.merged {
            pr.reviews = self.reviews_of(pr.number)?;
        }
        Ok(pr)
    }

    /// Without its reviews; with what we noted about it where the server shows no merge.
    fn settled(&self, wire: MergeRequest) -> Result<PullRequest, Error> {
        let mut pr = wire.plain();
        if pr.state == IssueState::Closed
            && !pr.merged
            && let Some(sha) = landed_as(&self.read_comments(Noteable::MergeRequest(pr.number))?, self.me())
        {
            (pr.merged, pr.merge_sha) = (true, Some(sha));
        }
        Ok(pr)
    }

    /// All open ones between branches of this project, oldest first.
    pub(super) fn open_merge_requests(&self) -> Result<Vec<PullRequest>, Error> {
        let question = self.get(LIST, &["merge_requests"]).query("state", "opened").query("scope", "all");
        let listed: Vec<MergeRequest> = self.list(&question)?;
        let ours = listed.into_iter().filter(MergeRequest::is_ours);
        // By number: a list that changed between two pages may name one twice.
        let ours: BTreeMap<Number, PullRequest> = ours.map(|mr| (mr.iid, mr.plain())).collect();
        Ok(ours.into_values().collect())
    }

    /// Tells the server that the work is on the base branch. It finds that out by itself, a moment after the push, if the
    /// head is part of it; otherwise a comment of ours says so, and the merge request is closed.
    pub(super) fn record(&self, number: Number, sha: &Sha) -> Result<(), Error> {
        let Some(wire) = self.read_wire(number)? else {
            return Err(Error::NotFound { what: format!("merge request !{number}") });
        };
        let (is_open, head) = (wire.state == "opened", Sha::new(&wire.sha));
        if self.settled(wire)?.merged {
            return Ok(());
        }
        if let Some(head) = head.filter(|_| is_open)
            && self.contains(sha, &head)?
        {
            return Err(Error::Unavailable { reason: format!("!{number} is not shown as merged yet") });
        }
        let of = Noteable::MergeRequest(number);
        self.write_comment_once(of, &landed_mark(sha), &words::comment::landed(sha))?;
        self.close(MERGE, number)
    }

    /// Whether a commit is part of the history of another.
    fn contains(&self, sha: &Sha, part: &Sha) -> Result<bool, Error> {
        if sha == part {
            return Ok(true);
        }
        let question = self.get(MERGE, &["repository", "merge_base"]);
        let question = question.query("refs[]", sha).query("refs[]", part);
        let base: Option<Commit> = self.dev.find(&question).map_err(told)?;
        Ok(base.is_some_and(|base| base.id == part.as_str()))
    }

    pub(super) fn close(&self, operation: &'static str, number: Number) -> Result<(), Error> {
        let path = ["merge_requests", &number.to_string()];
        let order = self.request(operation, Method::Put, &path).body(&json!({ "state_event": "close" }));
        self.dev.send(&order).map(drop).map_err(told)
    }

    pub(super) fn read_branch(&self, branch: &str) -> Result<Option<Sha>, Error> {
        let question = self.get("read a branch", &["repository", "branches", branch]);
        let found: Option<Branch> = self.dev.find(&question).map_err(told)?;
        Ok(found.and_then(|branch| Sha::new(&branch.commit.id)))
    }

    /// The merged merge request that a commit on the base branch came with.
    pub(super) fn explain(&self, sha: &Sha) -> Result<Option<Number>, Error> {
        let path = ["repository", "commits", sha.as_str(), "merge_requests"];
        let found: Option<Vec<MergeRequest>> =
            self.dev.find(&self.get("find a merge request", &path)).map_err(told)?;
        Ok(found.unwrap_or_default().iter().find(|mr| mr.is_merged()).map(|mr| mr.iid))
    }
}
