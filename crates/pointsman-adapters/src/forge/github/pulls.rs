//! Pull requests, their reviews, and what became of them.

use pointsman_core::forge::{IssueState, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::clean_line;
use pointsman_core::words;
use serde_json::json;

use super::wire::{Branch, Comparison, Remark, WirePull, WireReview};
use super::{Github, LONGEST_BODY, PAGE, TITLE_CHARS, cut, landed_as, landed_mark, told};
use crate::forge::Error;
use crate::http::Method;

const REVIEW: &str = "review a pull request";
const MERGE: &str = "record a merge";

impl Github {
    /// The newest pull request between two branches of this very repository, in this state.
    pub(super) fn find_pull(&self, head: &str, base: &str, state: &str) -> Result<Option<WirePull>, Error> {
        let request = self.get("list pull requests", &["pulls"]).query("state", state).query("base", base);
        let request = request.query("head", format!("{}:{head}", self.owner));
        let listed: Vec<WirePull> = self.dev.list(&request, PAGE).map_err(told)?;
        let here = format!("{}/{}", self.owner, self.repo);
        let ours = |pr: &WirePull| {
            // A fork of the same owner looks the same in the question.
            let same = pr.head.repo.as_ref().is_none_or(|repo| repo.full_name.eq_ignore_ascii_case(&here));
            same && pr.head.r#ref == head && pr.base.r#ref == base
        };
        Ok(listed.into_iter().filter(ours).max_by_key(|pr| pr.number))
    }

    pub(super) fn open_pull(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error> {
        if let Some(open) = self.find_pull(head, base, "open")? {
            return Ok(open.number);
        }
        let title: String = title.chars().take(TITLE_CHARS).collect();
        let body = json!({ "head": head, "base": base, "title": title, "body": cut(body, LONGEST_BODY) });
        let order = self.request("open a pull request", Method::Post, &["pulls"]).body(&body);
        match self.dev.read::<WirePull>(&order) {
            Ok(opened) => Ok(opened.number),
            // Somebody was faster, or an earlier answer got lost; or there is nothing to pull.
            Err(error) if error.status() == Some(422) => {
                self.find_pull(head, base, "open")?.map(|open| open.number).ok_or_else(|| told(error))
            }
            Err(error) => Err(told(error)),
        }
    }

    pub(super) fn read_pull(&self, number: Number) -> Result<Option<PullRequest>, Error> {
        let request = self.get("read a pull request", &["pulls", &number.to_string()]);
        let found: Option<WirePull> = self.dev.find(&request).map_err(told)?;
        found.map(|wire| self.complete(wire)).transpose()
    }

    /// With its reviews, and with what we noted about it where GitHub shows no merge.
    pub(super) fn complete(&self, wire: WirePull) -> Result<PullRequest, Error> {
        let mut pr = wire.plain();
        pr.reviews = self.read_reviews(&pr)?;
        if pr.state == IssueState::Closed
            && !pr.merged
            && let Some(sha) = landed_as(&self.read_comments(pr.number)?, self.me())
        {
            pr.merged = true;
            pr.merge_sha = Some(sha);
        }
        Ok(pr)
    }

    fn wire_reviews(&self, pr: Number) -> Result<Vec<WireReview>, Error> {
        let request = self.get("read reviews", &["pulls", &pr.to_string(), "reviews"]);
        let mut listed: Vec<WireReview> = self.dev.list(&request, PAGE).map_err(told)?;
        listed.sort_by_key(|review| review.id);
        listed.dedup_by_key(|review| review.id);
        Ok(listed)
    }

    /// All reviews with a verdict, oldest first; those that ask for changes of the present head with their remarks.
    fn read_reviews(&self, pr: &PullRequest) -> Result<Vec<Review>, Error> {
        let reviewer = self.reviewer();
        let mut reviews = Vec::new();
        for wire in self.wire_reviews(pr.number)? {
            let Some(verdict) = wire.verdict(reviewer) else { continue };
            let ours = reviewer == Some(wire.user.login.as_str());
            let counts = ours || self.has_a_say(&wire.user.login)?;
            let of_interest = pr.state == IssueState::Open
                && verdict == ReviewVerdict::RequestChanges
                && pr.head_sha.as_ref().is_some_and(|head| head.as_str() == wire.commit_id);
            let remarks = if of_interest { self.remarks(pr.number, wire.id)? } else { String::new() };
            reviews.extend(wire.plain(self.host(), verdict, counts, &remarks));
        }
        Ok(reviews)
    }

    /// What a review says about single lines. It is said once and does not change.
    fn remarks(&self, pr: Number, review: u64) -> Result<String, Error> {
        if let Some(known) = self.known().remarks.get(&review) {
            return Ok(known.clone());
        }
        let path = ["pulls", &pr.to_string(), "reviews", &review.to_string(), "comments"];
        let listed: Vec<Remark> = self.dev.list(&self.get("read remarks", &path), PAGE).map_err(told)?;
        let one = |remark: &Remark| {
            let line = remark.line.max(remark.original_line);
            let at = if line > 0 { format!(":{line}") } else { String::new() };
            format!("\n\n{}{at}: {}", clean_line(&remark.path, 200), remark.body)
        };
        let text: String = listed.iter().map(one).collect();
        self.known().remarks.insert(review, text.clone());
        Ok(text)
    }

    /// Reviews a commit as the review account, unless it has.
    pub(super) fn write_review_once(
        &self,
        pr: Number,
        sha: &Sha,
        verdict: ReviewVerdict,
        body: &str,
    ) -> Result<(), Error> {
        let (Some(client), Some(reviewer)) = (&self.reviewer, self.reviewer()) else {
            let hint =
                "there is no review account: see review.token_env, review.token_file, review.token_command";
            return Err(Error::Refused { operation: REVIEW, reason: hint.to_owned() });
        };
        let ours = |r: &WireReview| {
            r.user.login == reviewer && r.commit_id == sha.as_str() && r.verdict(Some(reviewer)).is_some()
        };
        if self.wire_reviews(pr)?.iter().any(ours) {
            return Ok(());
        }
        let event = match verdict {
            ReviewVerdict::Approve => "APPROVE",
            ReviewVerdict::RequestChanges => "REQUEST_CHANGES",
            ReviewVerdict::Discuss => "COMMENT",
        };
        let words = if body.trim().is_empty() { "(no words)" } else { body };
        let order = json!({ "event": event, "body": cut(words, LONGEST_BODY), "commit_id": sha });
        let path = ["pulls", &pr.to_string(), "reviews"];
        client.send(&self.request(REVIEW, Method::Post, &path).body(&order)).map(drop).map_err(told)
    }

    /// GitHub shows a merge itself when the head is part of the base; otherwise a comment names the landing.
    pub(super) fn show_merged(&self, number: Number, sha: &Sha) -> Result<(), Error> {
        let Some(pr) = self.read_pull(number)? else {
            return Err(Error::NotFound { what: format!("pull request #{number}") });
        };
        if pr.merged || pr.head_sha.as_ref() == Some(sha) {
            return Ok(());
        }
        if let Some(head) = &pr.head_sha {
            let range = format!("{sha}...{head}");
            let compared: Comparison = self.dev.read(&self.get(MERGE, &["compare", &range])).map_err(told)?;
            if matches!(compared.status.as_str(), "identical" | "behind") {
                return Ok(());
            }
        }
        self.write_comment_once(number, &landed_mark(sha), &words::comment::landed(sha))?;
        let path = ["pulls", &number.to_string()];
        let order = self.request(MERGE, Method::Patch, &path).body(&json!({ "state": "closed" }));
        self.dev.send(&order).map(drop).map_err(told)
    }

    pub(super) fn read_branch(&self, branch: &str) -> Result<Option<Sha>, Error> {
        let found: Option<Branch> =
            self.dev.find(&self.get("read a branch", &["branches", branch])).map_err(told)?;
        Ok(found.and_then(|branch| Sha::new(&branch.commit.sha)))
    }

    /// The merged pull request that explains a commit on the base branch.
    pub(super) fn explain(&self, sha: &Sha) -> Result<Option<Number>, Error> {
        let request = self.get("find a pull request", &["commits", sha.as_str(), "pulls"]);
        let listed: Option<Vec<WirePull>> = self.dev.find(&request).map_err(told)?;
        Ok(listed.unwrap_or_default().iter().find(|pr| pr.merged_at.is_some()).map(|pr| pr.number))
    }
}
