//! Reviews: what people and our review account say about one commit.

use std::sync::PoisonError;

use pointsman_core::forge::{IssueState, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::words;
use serde_json::json;

use super::errors::{LONGEST_BODY, cut, told};
use super::wire::{Remark, WireReview};
use super::{Dialect, Hosted};
use crate::forge::Error;
use crate::http::Method;

const OPERATION: &str = "review a pull request";

/// All reviews with a verdict, oldest first; those that ask for changes of the present head with their remarks on lines.
pub(super) fn of<D: Dialect + ?Sized>(forge: &D, pr: &PullRequest) -> Result<Vec<Review>, Error> {
    let head = pr.head_sha.as_ref().filter(|_| pr.state == IssueState::Open);
    of_open(forge, pr.number, head)
}

/// The same of a pull request that is open, by its head.
pub(super) fn of_open<D: Dialect + ?Sized>(
    forge: &D,
    pr: Number,
    head: Option<&Sha>,
) -> Result<Vec<Review>, Error> {
    let hosted = forge.hosted();
    let mut reviews = Vec::new();
    for wire in hosted.wire_reviews(pr)? {
        let Some(verdict) = wire.verdict(hosted.reviewer()) else { continue };
        let counts = forge.counts(&wire, verdict)?;
        let of_interest = verdict == ReviewVerdict::RequestChanges
            && wire.comments_count != Some(0)
            && head.is_some_and(|head| head.as_str() == wire.commit_id);
        let remarks = if of_interest { hosted.remarks(pr, wire.id)? } else { String::new() };
        reviews.extend(wire.plain(hosted.host(), verdict, counts, &remarks));
    }
    Ok(reviews)
}

impl Hosted {
    fn wire_reviews(&self, pr: Number) -> Result<Vec<WireReview>, Error> {
        let mut listed: Vec<WireReview> =
            self.list(&self.get("read reviews", &["pulls", &pr.to_string(), "reviews"]))?;
        listed.sort_by_key(|review| review.id);
        listed.dedup_by_key(|review| review.id);
        Ok(listed)
    }

    /// What a review says about single lines.
    fn remarks(&self, pr: Number, review: u64) -> Result<String, Error> {
        let known = || self.remarks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = known().get(&review) {
            return Ok(text.clone());
        }
        let path = ["pulls", &pr.to_string(), "reviews", &review.to_string(), "comments"];
        let listed: Vec<Remark> = self.belongings(&self.get("read remarks", &path))?;
        let text: String = listed.iter().map(Remark::words).collect();
        known().insert(review, text.clone());
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
        let refused = |reason: String| Error::Refused { operation: OPERATION, reason };
        let (Some(client), Some(reviewer)) = (&self.reviewer, self.reviewer()) else {
            let hint =
                "there is no review account: see review.token_env, review.token_file, review.token_command";
            return Err(refused(hint.to_owned()));
        };
        let ours = |r: &WireReview| {
            r.user.login == reviewer && r.commit_id == sha.as_str() && r.verdict(Some(reviewer)).is_some()
        };
        if self.wire_reviews(pr)?.iter().any(ours) {
            return Ok(());
        }
        let event = match verdict {
            ReviewVerdict::Approve => self.manner.approve,
            ReviewVerdict::RequestChanges => "REQUEST_CHANGES",
            ReviewVerdict::Discuss => "COMMENT",
        };
        // The servers want words with everything but an approval.
        let words = if body.trim().is_empty() { "(no words)" } else { body };
        let order = json!({ "event": event, "body": cut(words, LONGEST_BODY), "commit_id": sha });
        let path = ["pulls", &pr.to_string(), "reviews"];
        let written: WireReview =
            client.read(&self.request(OPERATION, Method::Post, &path).body(&order)).map_err(told)?;
        match written.commit_id == sha.as_str() {
            true => Ok(()),
            false => {
                Err(refused(format!("the server bound the review to {}, not to {sha}", written.commit_id)))
            }
        }
    }

    /// Takes back what our review account asked to be changed in other commits.
    pub(super) fn withdraw_reviews(&self, pr: Number, keep: &Sha) -> Result<(), Error> {
        const OPERATION: &str = "take a review back";
        let (Some(client), Some(reviewer)) = (&self.reviewer, self.reviewer()) else { return Ok(()) };
        for review in self.wire_reviews(pr)? {
            let ours = review.user.login == reviewer && review.commit_id != keep.as_str();
            let asks = review.verdict(Some(reviewer)) == Some(ReviewVerdict::RequestChanges);
            if !ours || !asks || review.dismissed {
                continue;
            }
            let path = ["pulls", &pr.to_string(), "reviews", &review.id.to_string(), "dismissals"];
            let body = json!({ "message": words::review::WITHDRAWN });
            match client.send(&self.request(OPERATION, self.manner.dismiss, &path).body(&body)) {
                // Servers keep that to administrators; for the rest, an approval by the same account outdoes it.
                Err(error) if matches!(error.status(), Some(403 | 404 | 422)) => {
                    tracing::debug!(pr, review = review.id, %error, "an older request for changes stays");
                }
                Ok(_) => {}
                Err(error) => return Err(told(error)),
            }
        }
        Ok(())
    }
}
