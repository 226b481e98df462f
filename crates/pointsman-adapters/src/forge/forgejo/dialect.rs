//! The calls that Forgejo and Gitea do in their own way.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use pointsman_core::forge::Check;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use serde_json::{Value, json};

use super::{Forgejo, MANNER, Version};
use crate::forge::Error;
use crate::forge::hosted::errors::told;
use crate::forge::hosted::wire::{Label, User, WireIssue, WirePull, WireReview, wire};
use crate::forge::hosted::{Dialect, Hosted, MERGE};
use crate::http::Method;

/// How long it is remembered who has a say.
const PEOPLE_FOR: Duration = Duration::from_secs(300);
/// Native dependencies of an issue are read again when it has changed, which the server says, or after this long.
const DEPENDENCIES_FOR: Duration = Duration::from_secs(6 * 3600);
/// Merged pull requests whose commits are looked through for one that nobody else explains.
const LOOKED_THROUGH: usize = 5;

/// The server's words about a pull request that it has not checked since the last push.
const NOT_YET: &str = "try again later";

wire! { Commit { sha: String, } }
wire! { Release { version: String, } }
wire! { Activity { op_type: String, ref_name: String, content: String, act_user: User, } }

impl Dialect for Forgejo {
    fn hosted(&self) -> &Hosted {
        &self.hosted
    }

    fn look(&self) -> Result<(), Error> {
        if !self.hosted.was_looked_at() {
            let question = self.hosted.anywhere("read the version", Method::Get, &["version"]);
            let release: Release = self.hosted.dev.read(&question).map_err(told)?;
            let version = self.version.get_or_init(|| Version::parse(&release.version));
            self.hosted.look()?;
            for lack in version.lacks() {
                tracing::warn!(host = self.host().name(), %version, "{lack}");
            }
        }
        Ok(())
    }

    fn version(&self) -> Option<(String, Vec<&'static str>)> {
        self.version.get().map(|version| (version.to_string(), version.lacks()))
    }

    fn listed(&self, issues: &[WireIssue]) {
        let mut known = self.cache();
        known.updated = issues.iter().map(|issue| (issue.number, issue.updated_at.clone())).collect();
        let open: BTreeSet<Number> = known.updated.keys().copied().collect();
        known.dependencies.retain(|number, _| open.contains(number));
    }

    fn label_to_add(&self, name: &str) -> Result<Value, Error> {
        self.label(name).map(Value::from)
    }

    fn label_to_remove(&self, label: &Label) -> String {
        // By name the server does nothing and says that all is well.
        label.id.to_string()
    }

    fn forget_labels(&self) {
        // Somebody may have deleted one: they are looked up anew next time.
        self.cache().labels.clear();
    }

    /// Those who may be assigned are those who may write.
    fn has_a_say(&self, who: &str) -> Result<bool, Error> {
        if let Some((read, people)) = &self.cache().people
            && read.elapsed() < PEOPLE_FOR
        {
            return Ok(people.contains(who));
        }
        let listed: Vec<User> =
            self.hosted.belongings(&self.hosted.get("read who may write", &["assignees"]))?;
        let people: BTreeSet<String> = listed.into_iter().map(|user| user.login).collect();
        let has = people.contains(who);
        self.cache().people = Some((Instant::now(), people));
        Ok(has)
    }

    /// Native dependencies of an open issue, read again when the issue has changed.
    fn read_dependencies(&self, number: Number) -> Result<Vec<Number>, Error> {
        if !self.version().is_some_and(Version::has_dependencies) {
            return Ok(Vec::new());
        }
        let updated = self.cache().updated.get(&number).cloned().unwrap_or_default();
        if let Some((at, read, known)) = self.cache().dependencies.get(&number)
            && *at == updated
            && read.elapsed() < DEPENDENCIES_FOR
        {
            return Ok(known.clone());
        }
        let request = self.hosted.get("read dependencies", &["issues", &number.to_string(), "dependencies"]);
        let listed: Vec<WireIssue> = match self.hosted.dev.list(&request, MANNER.page) {
            // They are switched off for this repository.
            Err(error) if error.status() == Some(404) => Vec::new(),
            listed => listed.map_err(told)?,
        };
        let numbers: Vec<Number> = listed.into_iter().map(|issue| issue.number).collect();
        self.cache().dependencies.insert(number, (updated, Instant::now(), numbers.clone()));
        Ok(numbers)
    }

    /// A review that was dismissed, or is not by somebody whose word counts on that branch, does not. Whether it is stale is
    /// not the server's to say: every review is bound to its commit, and a Gitea calls one of the head stale that was
    /// written within a moment of the push.
    fn counts(&self, review: &WireReview, verdict: ReviewVerdict) -> Result<bool, Error> {
        let official = review.official || verdict == ReviewVerdict::Discuss;
        Ok(official && !review.dismissed)
    }

    /// As merged by hand, if it takes that.
    fn show_merge(&self, pr: Number, sha: &Sha) -> Result<bool, Error> {
        // Older versions have the one spelling, newer ones the other.
        let body = json!({
            "Do": "manually-merged", "MergeCommitID": sha, "do": "manually-merged", "merge_commit_id": sha,
        });
        let path = ["pulls", &pr.to_string(), "merge"];
        match self.hosted.dev.send(&self.hosted.request(MERGE, Method::Post, &path).body(&body)) {
            Ok(_) => Ok(true),
            // It is still being checked whether it can be merged.
            Err(error) if error.status() == Some(405) && error.words().contains(NOT_YET) => {
                Err(Error::Unavailable { reason: error.to_string() })
            }
            // It is merged, or the repository does not allow it, or this server never heard of it.
            Err(error) if matches!(error.status(), Some(403 | 404 | 405 | 422)) => Ok(false),
            Err(error) => Err(told(error)),
        }
    }

    fn explain(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error> {
        const OPERATION: &str = "find a pull request";
        let (hosted, page) = (&self.hosted, MANNER.page);
        let direct: Option<WirePull> =
            hosted.dev.find(&hosted.get(OPERATION, &["commits", sha.as_str(), "pull"])).map_err(told)?;
        if let Some(pr) = direct.filter(WirePull::is_merged) {
            return Ok(Some(pr.number));
        }
        let recent = hosted.get(OPERATION, &["pulls"]).query("state", "closed").query("sort", "recentupdate");
        let closed: Option<Vec<WirePull>> = hosted.dev.read(&recent.query("limit", page)).map_err(told)?;
        let merged: Vec<WirePull> =
            closed.unwrap_or_default().into_iter().filter(WirePull::is_merged).collect();
        let named = |pr: &&WirePull| {
            let is = |sha: &Sha| pr.head.sha == sha.as_str() || pr.merge_commit_sha == sha.as_str();
            // A merge has it as a further parent; the first one only says on top of what.
            is(sha) || parents.iter().skip(1).any(|parent| pr.head.sha == parent.as_str())
        };
        if let Some(pr) = merged.iter().find(named) {
            return Ok(Some(pr.number));
        }
        // Merged by rebase: as many commits before the last one as the pull request had.
        for pr in merged.iter().take(LOOKED_THROUGH).filter(|pr| !pr.merge_commit_sha.is_empty()) {
            let own = hosted.get(OPERATION, &["pulls", &pr.number.to_string(), "commits"]);
            let count = hosted.list::<Commit>(&own)?.len();
            let landed =
                hosted.get(OPERATION, &["commits"]).query("sha", &pr.merge_commit_sha).query("stat", "false");
            let landed: Option<Vec<Commit>> =
                hosted.dev.read(&landed.query("limit", count.max(1))).map_err(told)?;
            if landed.unwrap_or_default().iter().take(count).any(|commit| commit.sha == sha.as_str()) {
                return Ok(Some(pr.number));
            }
        }
        Ok(None)
    }

    /// Servers before 1.19 have no such list.
    fn pusher(&self, branch: &str, sha: &Sha) -> Result<Option<String>, Error> {
        let newest = self.hosted.get("read who pushed", &["activities", "feeds"]).query("limit", MANNER.page);
        let moves: Option<Vec<Activity>> = self.hosted.dev.find(&newest).map_err(told)?;
        let full = format!("refs/heads/{branch}");
        let is_it = |one: &Activity| {
            let pushed: Value = serde_json::from_str(&one.content).unwrap_or_default();
            one.op_type == "commit_repo"
                && (one.ref_name == full || one.ref_name == branch)
                && pushed["HeadCommit"]["Sha1"] == sha.as_str()
        };
        let found = moves.unwrap_or_default().into_iter().find(is_it);
        Ok(found.map(|found| found.act_user.login).filter(|login| !login.is_empty()))
    }

    fn read_checks(&self, sha: &Sha) -> Result<Vec<Check>, Error> {
        Ok(self.hosted.statuses(sha)?.unwrap_or_default())
    }
}
