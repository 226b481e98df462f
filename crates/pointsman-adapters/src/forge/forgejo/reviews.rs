//! Reviews: what people and our review account say about one commit.

use pointsman_core::forge::{IssueState, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::clean_line;
use serde_json::json;

use super::wire::{Remark, WireReview};
use super::{Forgejo, LONGEST_BODY, PAGE, cut, told};
use crate::forge::Error;
use crate::http::Method;

const OPERATION: &str = "review a pull request";

impl Forgejo {
    fn wire_reviews(&self, pr: Number) -> Result<Vec<WireReview>, Error> {
        let request = self.get("read reviews", &["pulls", &pr.to_string(), "reviews"]);
        let mut listed: Vec<WireReview> = self.dev.list(&request, PAGE).map_err(told)?;
        listed.sort_by_key(|review| review.id);
        listed.dedup_by_key(|review| review.id);
        Ok(listed)
    }

    /// All reviews, oldest first; those that ask for changes of the present head with their remarks on lines.
    pub(super) fn read_reviews(&self, pr: &PullRequest) -> Result<Vec<Review>, Error> {
        let reviewer = self.reviewer();
        let mut reviews = Vec::new();
        for wire in self.wire_reviews(pr.number)? {
            let of_interest = pr.state == IssueState::Open
                && wire.comments_count > 0
                && wire.state == "REQUEST_CHANGES"
                && pr.head_sha.as_ref().is_some_and(|head| head.as_str() == wire.commit_id);
            let remarks = if of_interest { self.remarks(pr.number, wire.id)? } else { String::new() };
            reviews.extend(wire.plain(self.host(), reviewer, &remarks));
        }
        Ok(reviews)
    }

    /// What a review says about single lines. It is said once and does not change.
    fn remarks(&self, pr: Number, review: u64) -> Result<String, Error> {
        if let Some(known) = self.known().remarks.get(&review) {
            return Ok(known.clone());
        }
        let path = ["pulls", &pr.to_string(), "reviews", &review.to_string(), "comments"];
        let listed: Option<Vec<Remark>> = self.dev.read(&self.get("read remarks", &path)).map_err(told)?;
        let line =
            |remark: &Remark| [remark.line, remark.position, remark.original_position].into_iter().max();
        let text: String = listed
            .unwrap_or_default()
            .iter()
            .map(|remark| {
                let at =
                    line(remark).filter(|line| *line > 0).map_or(String::new(), |line| format!(":{line}"));
                format!("\n\n{}{at}: {}", clean_line(&remark.path, 200), remark.body)
            })
            .collect();
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
        let refused = |reason: String| Error::Refused { operation: OPERATION, reason };
        let (Some(client), Some(reviewer)) = (&self.reviewer, self.reviewer()) else {
            return Err(refused(
                "there is no review account: see review.token_env, review.token_file, review.token_command"
                    .to_owned(),
            ));
        };
        let event = match verdict {
            ReviewVerdict::Approve => "APPROVED",
            ReviewVerdict::RequestChanges => "REQUEST_CHANGES",
            ReviewVerdict::Discuss => "COMMENT",
        };
        let ours = |r: &WireReview| r.user.login == reviewer && r.commit_id == sha.as_str() && said(r);
        if self.wire_reviews(pr)?.iter().any(ours) {
            return Ok(());
        }
        // The server wants words with everything but an approval.
        let words = if body.trim().is_empty() { "(no words)" } else { body };
        let order = json!({ "event": event, "body": cut(words, LONGEST_BODY), "commit_id": sha });
        let path = ["pulls", &pr.to_string(), "reviews"];
        let written: WireReview =
            client.read(&self.request(OPERATION, Method::Post, &path).body(&order)).map_err(told)?;
        if written.commit_id != sha.as_str() {
            return Err(refused(format!(
                "the server bound the review to {}, not to {sha}",
                written.commit_id
            )));
        }
        Ok(())
    }
}

/// Whether a review has been handed in.
fn said(review: &WireReview) -> bool {
    matches!(review.state.as_str(), "APPROVED" | "REQUEST_CHANGES" | "COMMENT")
}
