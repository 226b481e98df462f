//! The trait of a forge, on top of the parts of the API.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::forge::{Check, CheckState, Comment, Issue, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use serde_json::json;

use super::issues::Noteable;
use super::wire::PushEvent;
use super::{Gitlab, PAGE};
use crate::forge::hosted::errors::{in_the_way, told};
use crate::forge::{Error, Forge, Right, ServerForge};
use crate::git::Account;
use crate::http::{Count, Host};
use crate::secret::known;

/// What a server tells about our account so soon after we have written is what we wrote.
const ECHO: Duration = Duration::from_secs(15);

impl Gitlab {
    /// The project, once it has been looked at. What stands in the way is for a person to change.
    fn ready(&self) -> Result<&Self, Error> {
        self.look().map_err(in_the_way)?;
        Ok(self)
    }

    fn link(&self, what: &str, number: Number) -> String {
        format!("{}/{}/-/{what}/{number}", self.url, self.path)
    }
}

impl ServerForge for Gitlab {
    fn look(&self) -> Result<(), Error> {
        Gitlab::look(self)
    }

    fn host(&self) -> &Arc<Host> {
        self.dev.host()
    }

    fn account(&self) -> Account {
        self.account.clone()
    }

    fn version(&self) -> Option<(String, Vec<&'static str>)> {
        self.release()
    }
}

impl Forge for Gitlab {
    fn me(&self) -> &str {
        Gitlab::me(self)
    }

    fn reviewer(&self) -> Option<&str> {
        self.reviewer_name()
    }

    fn remote(&self) -> String {
        format!("{}/{}.git", self.url, self.path)
    }

    fn open_issues(&self) -> Result<Vec<Issue>, Error> {
        let gitlab = self.ready()?;
        let issues = gitlab.list_open_issues()?;
        Ok(issues.into_iter().map(|issue| issue.plain(self.dev.host(), Gitlab::me(self))).collect())
    }

    fn is_echo(&self, who: &str) -> bool {
        who == Gitlab::me(self) && self.dev.host().wrote_within(ECHO)
    }

    fn issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        self.ready()?.read_issue(number)
    }

    fn file_issue_once(
        &self,
        marker: &str,
        title: &str,
        body: &str,
        labels: &[&str],
    ) -> Result<Number, Error> {
        let known = known();
        self.ready()?.file_once(marker, &known.mask(title), &known.mask(body), labels)
    }

    fn rights(&self, branch: &str) -> Vec<Right> {
        self.rights_there(branch)
    }

    fn ensure_labels(&self, names: &[&str]) -> Result<(), Error> {
        let gitlab = self.ready()?;
        names.iter().try_for_each(|name| gitlab.ensure_label(name))
    }

    fn set_labels(&self, number: Number, add: &[String], remove: &[String]) -> Result<Vec<String>, Error> {
        self.ready()?.change_labels(number, add, remove)
    }

    fn assign_me(&self, number: Number) -> Result<(), Error> {
        let gitlab = self.ready()?;
        gitlab.assign_to(number, Some(Gitlab::me(self)))
    }

    fn assign(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        self.ready()?.assign_to(number, who)
    }

    fn comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        self.ready()?.write_comment_once(Noteable::Issue(number), marker, &known().mask(body))
    }

    fn comment_on_pull_request_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        self.ready()?.write_comment_once(Noteable::MergeRequest(number), marker, &known().mask(body))
    }

    fn comments_after(&self, number: Number, after: u64) -> Result<Vec<Comment>, Error> {
        let comments = self.ready()?.read_comments(Noteable::Issue(number))?;
        Ok(comments.into_iter().filter(|comment| comment.id > after).collect())
    }

    fn close_issue(&self, number: Number) -> Result<(), Error> {
        self.ready()?.change_issue("close an issue", number, &json!({ "state_event": "close" })).map(drop)
    }

    fn close_pull_request(&self, number: Number) -> Result<(), Error> {
        self.ready()?.close("close a merge request", number)
    }

    fn may_direct(&self, who: &str) -> Result<bool, Error> {
        self.ready()?.has_a_say(who)
    }

    fn ensure_pull_request(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        let known = known();
        self.ready()?.open_once(head, base, &known.mask(title), &known.mask(body))
    }

    fn pull_request(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        self.ready()?.read_merge_request(number)
    }

    fn open_reviews(&self, number: Number, _head: Option<&Sha>) -> Result<Vec<Review>, Error> {
        self.ready()?.reviews_of(number)
    }

    fn pull_request_from(&self, head: &str, base: &str) -> Result<Option<PullRequest>, Error> {
        self.ready()?.newest(head, base)
    }

    fn open_pull_requests(&self) -> Result<Vec<PullRequest>, Error> {
        self.ready()?.open_merge_requests()
    }

    fn withdraw_change_requests(&self, pr: Number, keep: &Sha) -> Result<(), Error> {
        self.ready()?.withdraw_reviews(pr, keep)
    }

    fn review_once(&self, pr: Number, sha: &Sha, verdict: ReviewVerdict, body: &str) -> Result<(), Error> {
        self.ready()?.write_review_once(pr, sha, verdict, &known().mask(body))
    }

    fn record_merge(&self, pr: Number, sha: &Sha) -> Result<(), Error> {
        self.ready()?.record(pr, sha)
    }

    fn branch_head(&self, branch: &str) -> Result<Option<Sha>, Error> {
        self.ready()?.read_branch(branch)
    }

    fn pull_request_of(&self, sha: &Sha, _parents: &[Sha]) -> Result<Option<Number>, Error> {
        self.ready()?.explain(sha)
    }

    fn pusher_of(&self, branch: &str, sha: &Sha) -> Result<Option<String>, Error> {
        let newest = self.ready()?.get("read who pushed", &["events"]);
        let newest = newest.query("action", "pushed").query("per_page", PAGE);
        let moves: Option<Vec<PushEvent>> = self.dev.find(&newest).map_err(told)?;
        let is_it = |one: &PushEvent| {
            let push = &one.push_data;
            push.ref_type == "branch" && push.r#ref == branch && push.commit_to == sha.as_str()
        };
        let found = moves.unwrap_or_default().into_iter().find(is_it);
        Ok(found.map(|found| found.author_username).filter(|login| !login.is_empty()))
    }

    fn costs(&self) -> Vec<(&'static str, Count)> {
        self.dev.host().counts().all()
    }

    fn issue_link(&self, number: Number) -> String {
        self.link("issues", number)
    }

    fn pull_request_link(&self, number: Number) -> String {
        self.link("merge_requests", number)
    }

    fn checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        self.ready()?.read_checks(sha)
    }

    fn show_check(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        self.ready()?.write_status(sha, name, state)
    }
}
