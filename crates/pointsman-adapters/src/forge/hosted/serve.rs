//! The trait of a forge, on top of the parts of the API.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use pointsman_core::config::MergeStyle;
use pointsman_core::forge::{BoardItem, Check, CheckState, Comment, Issue, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use serde_json::json;

use super::errors::in_the_way;
use super::{Dialect, Hosted, checks, issues, pulls, reviews};
use crate::forge::{BoardChange, Error, Forge, ForgeMerge, MergeTies, Right, ServerForge, no_board};
use crate::git::Account;
use crate::http::{Count, Host};
use crate::secret::known;

/// What a server tells about our account so soon after we have written is what we wrote.
const ECHO: Duration = Duration::from_secs(15);

/// The repository, once it has been looked at. What stands in the way is for a person to change.
fn ready<D: Dialect>(forge: &D) -> Result<&Hosted, Error> {
    Dialect::look(forge).map_err(in_the_way)?;
    Ok(forge.hosted())
}

impl<D: Dialect> ServerForge for D {
    fn look(&self) -> Result<(), Error> {
        Dialect::look(self)
    }

    fn host(&self) -> &Arc<Host> {
        self.hosted().host()
    }

    fn account(&self) -> Account {
        self.hosted().account()
    }

    fn version(&self) -> Option<(String, Vec<&'static str>)> {
        Dialect::version(self)
    }
}

impl<D: Dialect> Forge for D {
    fn me(&self) -> &str {
        self.hosted().me()
    }

    fn reviewer(&self) -> Option<&str> {
        self.hosted().reviewer()
    }

    fn remote(&self) -> String {
        let hosted = self.hosted();
        format!("{}/{}/{}.git", hosted.url, hosted.owner, hosted.name)
    }

    fn open_issues(&self) -> Result<Vec<Issue>, Error> {
        let hosted = ready(self)?;
        let issues = hosted.open_issues()?;
        self.listed(&issues);
        Ok(issues.into_iter().map(|issue| hosted.plain(issue)).collect())
    }

    fn marks(&self) -> Option<BTreeMap<Number, String>> {
        self.hosted().marks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is_echo(&self, who: &str) -> bool {
        let hosted = self.hosted();
        who == hosted.me() && hosted.host().wrote_within(ECHO)
    }

    fn issue(&self, number: Number) -> Result<Option<Issue>, Error> {
        ready(self)?.read_issue(number)
    }

    fn file_issue_once(
        &self,
        marker: &str,
        title: &str,
        body: &str,
        labels: &[&str],
    ) -> Result<Number, Error> {
        ready(self)?;
        let known = known();
        issues::file_once(self, marker, &known.mask(title), &known.mask(body), labels)
    }

    fn rights(&self, branch: &str) -> Vec<Right> {
        let mut rights = self.hosted().rights(branch);
        if rights.iter().all(|right| right.checked.is_ok()) {
            // Its sentence names our account.
            let _ = Dialect::look(self);
            let checked = self.forbids_push(branch, self.hosted().me()).and_then(|why| match why {
                Some(reason) => Err(Error::Refused { operation: "push to the main branch", reason }),
                None => Ok(()),
            });
            rights.push(Right::new("no rule keeps us from pushing to the main branch", checked));
        }
        rights
    }

    fn ensure_labels(&self, names: &[&str]) -> Result<(), Error> {
        ready(self)?;
        names.iter().try_for_each(|name| self.label_to_add(name).map(drop))
    }

    fn set_labels(&self, number: Number, add: &[String], remove: &[String]) -> Result<Vec<String>, Error> {
        ready(self)?;
        issues::change_labels(self, number, add, remove)
    }

    fn assign_me(&self, number: Number) -> Result<(), Error> {
        let hosted = ready(self)?;
        hosted.assign_to(number, Some(hosted.me()))
    }

    fn assign_me_too(&self, number: Number) -> Result<(), Error> {
        ready(self)?.assign_beside(number)
    }

    fn assign(&self, number: Number, who: Option<&str>) -> Result<(), Error> {
        ready(self)?.assign_to(number, who)
    }

    fn comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        ready(self)?.write_comment_once(number, marker, &known().mask(body))
    }

    fn comments_after(&self, number: Number, after: u64) -> Result<Vec<Comment>, Error> {
        let comments = ready(self)?.read_comments(number)?;
        Ok(comments.into_iter().filter(|comment| comment.id > after).collect())
    }

    fn close_issue(&self, number: Number) -> Result<(), Error> {
        ready(self)?.change_issue("close an issue", number, &json!({ "state": "closed" })).map(drop)
    }

    fn dependencies(&self, number: Number) -> Result<Vec<Number>, Error> {
        ready(self)?;
        self.read_dependencies(number)
    }

    fn may_direct(&self, who: &str) -> Result<bool, Error> {
        ready(self)?;
        self.has_a_say(who)
    }

    fn ensure_pull_request(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        ready(self)?;
        let known = known();
        pulls::open(self, head, base, &known.mask(title), &known.mask(body))
    }

    fn pull_request(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        ready(self)?;
        pulls::read(self, number)
    }

    fn open_reviews(&self, number: Number, head: Option<&Sha>) -> Result<Vec<Review>, Error> {
        ready(self)?;
        reviews::of_open(self, number, head)
    }

    fn pull_request_from(&self, head: &str, base: &str) -> Result<Option<PullRequest>, Error> {
        ready(self)?;
        pulls::newest(self, head, base)
    }

    fn open_pull_requests(&self) -> Result<Vec<PullRequest>, Error> {
        ready(self)?.open_pulls()
    }

    fn withdraw_change_requests(&self, pr: Number, keep: &Sha) -> Result<(), Error> {
        ready(self)?.withdraw_reviews(pr, keep)
    }

    fn review_once(&self, pr: Number, sha: &Sha, verdict: ReviewVerdict, body: &str) -> Result<(), Error> {
        ready(self)?.write_review_once(pr, sha, verdict, &known().mask(body))
    }

    fn record_merge(&self, pr: Number, sha: &Sha) -> Result<(), Error> {
        ready(self)?;
        pulls::record(self, pr, sha)
    }

    fn merge_pull_request(&self, pr: Number, head: &Sha, style: MergeStyle) -> Result<ForgeMerge, Error> {
        ready(self)?;
        self.merge(pr, head, style).unwrap_or_else(|| {
            let reason = "this server has no merge call that we use".to_owned();
            Err(Error::Refused { operation: "merge a pull request", reason })
        })
    }

    fn merge_ties(&self, pr: Number) -> Result<MergeTies, Error> {
        ready(self)?;
        self.ties(pr)
    }

    fn merge_wishes(&self, label: &str) -> Result<Vec<PullRequest>, Error> {
        ready(self)?;
        self.wishes(label)
    }

    fn branch_head(&self, branch: &str) -> Result<Option<Sha>, Error> {
        ready(self)?.read_branch(branch)
    }

    fn pull_request_of(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error> {
        ready(self)?;
        self.explain(sha, parents)
    }

    fn pusher_of(&self, branch: &str, sha: &Sha) -> Result<Option<String>, Error> {
        ready(self)?;
        self.pusher(branch, sha)
    }

    fn costs(&self) -> Vec<(&'static str, Count)> {
        let mut all = self.hosted().host().counts().all();
        all.extend(self.further_costs());
        all
    }

    fn issue_link(&self, number: Number) -> String {
        self.hosted().link("issues", number)
    }

    fn pull_request_link(&self, number: Number) -> String {
        let hosted = self.hosted();
        hosted.link(hosted.manner.pull_link, number)
    }

    fn checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        ready(self)?;
        let mut checks = self.read_checks(sha)?;
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(checks)
    }

    fn show_check(&self, sha: &Sha, name: &str, state: CheckState) -> Result<(), Error> {
        ready(self)?;
        checks::write_status(self, sha, name, state)
    }

    fn board(&self) -> Result<Vec<BoardItem>, Error> {
        let all = self.read_board().unwrap_or_else(|| Err(no_board("read the board")))?;
        let mut open: Vec<BoardItem> =
            all.into_iter().filter(|(_, open)| *open).map(|(item, _)| item).collect();
        open.sort_by_key(|item| item.number);
        Ok(open)
    }

    fn board_item(&self, number: Number) -> Result<BoardItem, Error> {
        self.read_board_item(number).unwrap_or_else(|| Err(no_board("read the board")))
    }

    fn claimed_on_board(&self) -> Result<Vec<BoardItem>, Error> {
        let all = self.read_board().unwrap_or_else(|| Err(no_board("read the board")))?;
        Ok(all.into_iter().map(|(item, _)| item).filter(|item| !item.agent.is_empty()).collect())
    }

    fn set_board(&self, number: Number, change: &BoardChange<'_>) -> Result<(), Error> {
        self.change_board(number, change).unwrap_or_else(|| Err(no_board("change the board")))
    }
}
