//! Pull requests and what became of them.

use pointsman_core::forge::{IssueState, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::words;
use serde_json::json;

use super::wire::{Branch, Commit, WirePull};
use super::{Forgejo, LONGEST_BODY, PAGE, cut, told};
use crate::forge::Error;
use crate::http::Method;

const MERGE: &str = "record a merge";
/// The longest title, in characters.
const TITLE_CHARS: usize = 250;
/// Merged pull requests whose commits are looked through for one that nobody else explains.
const LOOKED_THROUGH: usize = 5;

impl Forgejo {
    /// The open pull request between two branches of this very repository.
    pub(super) fn find_open(&self, head: &str, base: &str) -> Result<Option<WirePull>, Error> {
        self.find_pull(head, base, "open")
    }

    /// The newest in this state.
    pub(super) fn find_pull(&self, head: &str, base: &str, state: &str) -> Result<Option<WirePull>, Error> {
        let request = self.get("list pull requests", &["pulls"]).query("state", state);
        let listed: Vec<WirePull> = self.dev.list(&request, PAGE).map_err(told)?;
        let ours = |pr: &WirePull| {
            let here = pr.head.repo.as_ref().is_none_or(|repo| self.is_here(&repo.full_name));
            here && pr.head.r#ref == head && pr.base.r#ref == base
        };
        Ok(listed.into_iter().filter(ours).max_by_key(|pr| pr.number))
    }

    fn is_here(&self, full_name: &str) -> bool {
        full_name.is_empty() || full_name.eq_ignore_ascii_case(&format!("{}/{}", self.owner, self.repo))
    }

    pub(super) fn open_pull(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        if let Some(open) = self.find_open(head, base)? {
            return Ok(open.number);
        }
        let title: String = title.chars().take(TITLE_CHARS).collect();
        let body = json!({ "head": head, "base": base, "title": title, "body": cut(body, LONGEST_BODY) });
        let order = self.request("open a pull request", Method::Post, &["pulls"]).body(&body);
        match self.dev.read::<WirePull>(&order) {
            Ok(opened) => Ok(opened.number),
            // Somebody was faster, or an earlier answer got lost.
            Err(error) if error.status() == Some(409) => {
                self.find_open(head, base)?.map(|open| open.number).ok_or_else(|| told(error))
            }
            Err(error) => Err(told(error)),
        }
    }

    pub(super) fn read_pull(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        let request = self.get("read a pull request", &["pulls", &number.to_string()]);
        let found: Option<WirePull> = self.dev.find(&request).map_err(told)?;
        found.map(|wire| self.complete(wire)).transpose()
    }

    /// With its reviews, and with what we noted about it where the server shows no merge.
    pub(super) fn complete(&self, wire: WirePull) -> Result<PullRequest, Error> {
        let mut pr = wire.plain();
        pr.reviews = self.read_reviews(&pr)?;
        if pr.state == IssueState::Closed
            && !pr.merged
            && let Some(sha) = self.noted_merge(pr.number)?
        {
            pr.merged = true;
            pr.merge_sha = Some(sha);
        }
        Ok(pr)
    }

    /// Tells the server that the work is on the base branch: as merged by hand if it takes that, else by a comment
    /// that is found again, and closed.
    pub(super) fn show_merged(&self, number: Number, sha: &Sha) -> Result<(), Error> {
        let Some(pr) = self.read_pull(number)? else {
            return Err(Error::NotFound { what: format!("pull request #{number}") });
        };
        if pr.merged {
            return Ok(());
        }
        // Older versions have the one spelling, newer ones the other.
        let body = json!({
            "Do": "manually-merged", "MergeCommitID": sha, "do": "manually-merged", "merge_commit_id": sha,
        });
        let path = ["pulls", &number.to_string(), "merge"];
        match self.dev.send(&self.request(MERGE, Method::Post, &path).body(&body)) {
            Ok(_) => Ok(()),
            // The repository does not allow it, or this server never heard of it.
            Err(error) if matches!(error.status(), Some(403 | 404 | 405 | 422)) => {
                self.note_merge(number, sha)
            }
            Err(error) => Err(told(error)),
        }
    }

    fn note_merge(&self, number: Number, sha: &Sha) -> Result<(), Error> {
        self.write_comment_once(number, &landed_mark(sha), &words::comment::landed(sha))?;
        let path = ["pulls", &number.to_string()];
        let order = self.request(MERGE, Method::Patch, &path).body(&json!({ "state": "closed" }));
        self.dev.send(&order).map(drop).map_err(told)
    }

    /// The commit that a comment of ours names as the landing of this pull request.
    fn noted_merge(&self, number: Number) -> Result<Option<Sha>, Error> {
        let comments = self.read_comments(number)?;
        let ours = comments.iter().rev().filter(|comment| comment.author == self.me());
        Ok(ours.filter_map(|comment| landed_as(&comment.body)).next())
    }

    pub(super) fn read_branch(&self, branch: &str) -> Result<Option<Sha>, Error> {
        let found: Option<Branch> =
            self.dev.find(&self.get("read a branch", &["branches", branch])).map_err(told)?;
        Ok(found.and_then(|branch| Sha::new(&branch.commit.id)))
    }

    /// The merged pull request that explains a commit on the base branch.
    pub(super) fn explain(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error> {
        const OPERATION: &str = "find a pull request";
        let direct: Option<WirePull> =
            self.dev.find(&self.get(OPERATION, &["commits", sha.as_str(), "pull"])).map_err(told)?;
        if let Some(pr) = direct.filter(|pr| pr.merged) {
            return Ok(Some(pr.number));
        }
        let recent = self.get(OPERATION, &["pulls"]).query("state", "closed").query("sort", "recentupdate");
        let closed: Option<Vec<WirePull>> = self.dev.read(&recent.query("limit", PAGE)).map_err(told)?;
        let merged: Vec<WirePull> = closed.unwrap_or_default().into_iter().filter(|pr| pr.merged).collect();
        let named = |pr: &&WirePull| {
            let is = |sha: &Sha| pr.head.sha == sha.as_str() || pr.merge_commit_sha == sha.as_str();
            is(sha) || parents.iter().any(|parent| pr.head.sha == parent.as_str())
        };
        if let Some(pr) = merged.iter().find(named) {
            return Ok(Some(pr.number));
        }
        // Merged by rebase: as many commits before the last one as the pull request had.
        for pr in merged.iter().take(LOOKED_THROUGH).filter(|pr| !pr.merge_commit_sha.is_empty()) {
            let own = self.get(OPERATION, &["pulls", &pr.number.to_string(), "commits"]);
            let count = self.dev.list::<Commit>(&own, PAGE).map_err(told)?.len();
            let landed =
                self.get(OPERATION, &["commits"]).query("sha", &pr.merge_commit_sha).query("stat", "false");
            let landed: Option<Vec<Commit>> =
                self.dev.read(&landed.query("limit", count.max(1))).map_err(told)?;
            if landed.unwrap_or_default().iter().take(count).any(|commit| commit.sha == sha.as_str()) {
                return Ok(Some(pr.number));
            }
        }
        Ok(None)
    }
}

fn landed_mark(sha: &Sha) -> String {
    format!("landed:{sha}")
}

fn landed_as(body: &str) -> Option<Sha> {
    let (_, mark) = body.trim_end().rsplit_once("<!-- pointsman:landed:")?;
    Sha::new(mark.strip_suffix(" -->")?)
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::Sha;
    use pointsman_core::words;

    use super::{landed_as, landed_mark};

    #[test]
    fn a_landing_is_read_back_from_the_end_of_a_comment_alone() {
        let sha = Sha::new(&"a".repeat(40)).unwrap();
        let mark = words::comment::marker(&landed_mark(&sha));
        assert_eq!(landed_as(&format!("Landed.\n\n{mark}\n")), Some(sha));
        assert_eq!(landed_as(&format!("{mark}\nquoted above")), None);
        assert_eq!(landed_as("no mark"), None);
    }
}
