//! Reviews: approvals, requests for changes, and our own notes, each bound to a commit.
//!
//! GitLab keeps who approves and who asks for changes, but not of which commit. The commit is the head of the version
//! that the merge request had when it was said: the server's own note says when somebody approved, and somebody who asks
//! for changes says why. A word that may be about an older version counts for that one.

use std::collections::BTreeSet;

use pointsman_core::forge::Review;
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use serde_json::json;

use super::Gitlab;
use super::issues::Noteable;
use super::wire::{Approvals, Note, Reviewer, Version, time};
use crate::forge::Error;
use crate::forge::hosted::errors::{LONGEST_BODY, cut, told};
use crate::http::Method;

const OPERATION: &str = "review a merge request";
const READ: &str = "read reviews";
/// The server's own note about an approval.
const APPROVED: &str = "approved this merge request";
/// The state of a reviewer who asks for changes.
const ASKS: &str = "requested_changes";
/// The beginning of the mark of our reviews, and of those that were taken back.
const REVIEW: &str = "review";
const WITHDRAWN: &str = "review-withdrawn";
/// How much of a path is repeated to an agent.
const PATH_CHARS: usize = 200;

/// A review of ours, as its mark says.
struct Marked {
    verdict: ReviewVerdict,
    sha: Sha,
    withdrawn: bool,
}

/// The heads of a merge request, oldest first, with the time since which each is the head.
struct Versions(Vec<(Timestamp, Sha)>);

impl Versions {
    /// The version that was the newest at this time.
    fn at(&self, at: Timestamp) -> Option<&(Timestamp, Sha)> {
        self.0.iter().rev().find(|(since, _)| *since <= at).or(self.0.first())
    }
}

impl Gitlab {
    /// All reviews with a verdict, oldest first.
    pub(super) fn reviews_of(&self, number: Number) -> Result<Vec<Review>, Error> {
        let notes = self.read_notes(Noteable::MergeRequest(number))?;
        let versions = self.versions(number)?;
        let approving = self.approving(number)?;
        let mut reviews = self.own_reviews(&notes, &approving);
        for (who, note) in newest_approvals(&notes) {
            if Some(who) == self.reviewer_name() {
                continue;
            }
            let at = time(self.host(), &note.created_at);
            let Some((since, sha)) = versions.at(at) else { continue };
            reviews.push(Review {
                id: note.id,
                author: who.to_owned(),
                verdict: ReviewVerdict::Approve,
                body: self.said(&notes, who, *since, at),
                sha: sha.clone(),
                at,
                dismissed: !approving.contains(who) || !self.has_a_say(who)?,
            });
        }
        for who in self.asking_for_changes(number)? {
            if Some(who.as_str()) == self.reviewer_name() {
                continue;
            }
            let last = notes.iter().rev().find(|note| !note.system && note.author.username == who);
            let (id, at) =
                last.map_or((0, Timestamp(i64::MAX)), |note| (note.id, time(self.host(), &note.created_at)));
            let Some((since, sha)) = versions.at(at) else { continue };
            reviews.push(Review {
                id,
                body: self.said(&notes, &who, *since, at),
                dismissed: !self.has_a_say(&who)?,
                author: who,
                verdict: ReviewVerdict::RequestChanges,
                sha: sha.clone(),
                at,
            });
        }
        reviews.sort_by_key(|review| review.id);
        Ok(reviews)
    }

    /// Our own, by their marks. An approval counts as long as the server shows it.
    fn own_reviews(&self, notes: &[Note], approving: &BTreeSet<String>) -> Vec<Review> {
        let Some(reviewer) = self.reviewer_name() else { return Vec::new() };
        let own = notes.iter().filter(|note| !note.system && note.author.username == reviewer);
        let read = |note: &Note| {
            let (body, marked) = marked(&note.body)?;
            let approved = marked.verdict != ReviewVerdict::Approve || approving.contains(reviewer);
            Some(Review {
                id: note.id,
                author: reviewer.to_owned(),
                verdict: marked.verdict,
                body: body.to_owned(),
                sha: marked.sha,
                at: time(self.host(), &note.created_at),
                dismissed: marked.withdrawn || !approved,
            })
        };
        own.filter_map(read).collect()
    }

    /// What somebody wrote about a version until this time.
    fn said(&self, notes: &[Note], who: &str, since: Timestamp, until: Timestamp) -> String {
        let written =
            notes.iter().filter(|note| !note.system && note.author.username == who).filter(|note| {
                let at = time(self.host(), &note.created_at);
                since <= at && at <= until
            });
        let words = |note: &Note| match &note.position {
            None => note.body.clone(),
            Some(position) => {
                let line = position.new_line.max(position.old_line);
                format!("{}:{line}: {}", clean_line(&position.new_path, PATH_CHARS), note.body)
            }
        };
        written.map(words).collect::<Vec<_>>().join("\n\n")
    }

    fn versions(&self, number: Number) -> Result<Versions, Error> {
        let path = ["merge_requests", &number.to_string(), "versions"];
        let mut listed: Vec<Version> = self.list(&self.get(READ, &path))?;
        listed.sort_by_key(|version| version.id);
        let known = |version: Version| {
            Some((time(self.host(), &version.created_at), Sha::new(&version.head_commit_sha)?))
        };
        Ok(Versions(listed.into_iter().filter_map(known).collect()))
    }

    /// Who approves now.
    fn approving(&self, number: Number) -> Result<BTreeSet<String>, Error> {
        let path = ["merge_requests", &number.to_string(), "approvals"];
        let found: Approvals = self.dev.read(&self.get(READ, &path)).map_err(told)?;
        Ok(found.approved_by.into_iter().map(|approver| approver.user.username).collect())
    }

    /// Who asks for changes now; nobody where the server is too old to say.
    fn asking_for_changes(&self, number: Number) -> Result<BTreeSet<String>, Error> {
        let path = ["merge_requests", &number.to_string(), "reviewers"];
        let found: Option<Vec<Reviewer>> = self.dev.find(&self.get(READ, &path)).map_err(told)?;
        let asking = found.unwrap_or_default().into_iter().filter(|reviewer| reviewer.state == ASKS);
        Ok(asking.map(|reviewer| reviewer.user.username).collect())
    }

    /// Reviews a commit as the review account, unless it has.
    pub(super) fn write_review_once(
        &self,
        number: Number,
        sha: &Sha,
        verdict: ReviewVerdict,
        body: &str,
    ) -> Result<(), Error> {
        let (Some(client), Some(reviewer)) = (&self.reviewer, self.reviewer_name()) else {
            let reason =
                "there is no review account: see review.token_env, review.token_file, review.token_command";
            return Err(Error::Refused { operation: OPERATION, reason: reason.to_owned() });
        };
        let notes = self.read_notes(Noteable::MergeRequest(number))?;
        let is_there = |note: &Note| {
            note.author.username == reviewer && marked(&note.body).is_some_and(|(_, known)| known.sha == *sha)
        };
        if notes.iter().any(is_there) {
            return Ok(());
        }
        let merge_request = number.to_string();
        let path = |last: &'static str| ["merge_requests", merge_request.as_str(), last];
        let is_approving = self.approving(number)?.contains(reviewer);
        // Also before a new approval: the server refuses a second one, and the first was of another commit.
        if is_approving && verdict != ReviewVerdict::Discuss {
            client.send(&self.request(OPERATION, Method::Post, &path("unapprove"))).map_err(told)?;
        }
        if verdict == ReviewVerdict::Approve {
            let order = self.request(OPERATION, Method::Post, &path("approve")).body(&json!({ "sha": sha }));
            client.send(&order).map_err(|error| match error.status() {
                // It does not know that head yet, or there is a newer one.
                Some(409) => Error::Unavailable { reason: error.to_string() },
                _ => told(error),
            })?;
        }
        let words = if body.trim().is_empty() { "(no words)" } else { body };
        let mark = words::comment::marker(&mark(REVIEW, verdict, sha));
        let note = json!({ "body": format!("{}\n\n{mark}", cut(words, LONGEST_BODY)) });
        client
            .send(&self.request(OPERATION, Method::Post, &path("notes")).body(&note))
            .map(drop)
            .map_err(told)
    }

    /// Takes back what our review account asked to be changed in other commits: its notes say so from then on.
    pub(super) fn withdraw_reviews(&self, number: Number, keep: &Sha) -> Result<(), Error> {
        let (Some(client), Some(reviewer)) = (&self.reviewer, self.reviewer_name()) else { return Ok(()) };
        for note in self.read_notes(Noteable::MergeRequest(number))? {
            let Some((words, known)) = marked(&note.body) else { continue };
            let asks = known.verdict == ReviewVerdict::RequestChanges && !known.withdrawn;
            if note.author.username != reviewer || !asks || known.sha == *keep {
                continue;
            }
            let mark = words::comment::marker(&mark(WITHDRAWN, known.verdict, &known.sha));
            let body = json!({ "body": format!("{words}\n\n{}\n\n{mark}", words::review::WITHDRAWN) });
            let path = ["merge_requests", &number.to_string(), "notes", &note.id.to_string()];
            client.send(&self.request("take a review back", Method::Put, &path).body(&body)).map_err(told)?;
        }
        Ok(())
    }
}

/// The newest approval of each, as the server noted them.
fn newest_approvals(notes: &[Note]) -> Vec<(&str, &Note)> {
    let mut newest: Vec<(&str, &Note)> = Vec::new();
    for note in notes.iter().rev().filter(|note| note.system && note.body == APPROVED) {
        let who = note.author.username.as_str();
        if !newest.iter().any(|(known, _)| *known == who) {
            newest.push((who, note));
        }
    }
    newest
}

fn word(verdict: ReviewVerdict) -> &'static str {
    match verdict {
        ReviewVerdict::Approve => "approve",
        ReviewVerdict::RequestChanges => "request_changes",
        ReviewVerdict::Discuss => "discuss",
    }
}

fn mark(kind: &str, verdict: ReviewVerdict, sha: &Sha) -> String {
    format!("{kind}:{}:{sha}", word(verdict))
}

/// The text of a note and the mark at its end. Before its end a note may quote what looks like a mark.
fn marked(body: &str) -> Option<(&str, Marked)> {
    let (text, mark) = body.trim_end().rsplit_once("<!-- pointsman:")?;
    let mut parts = mark.strip_suffix(" -->")?.split(':');
    let (kind, verdict, sha) = (parts.next()?, parts.next()?, parts.next()?);
    let verdicts = [ReviewVerdict::Approve, ReviewVerdict::RequestChanges, ReviewVerdict::Discuss];
    let verdict = verdicts.into_iter().find(|known| word(*known) == verdict)?;
    let withdrawn = match kind {
        REVIEW => false,
        WITHDRAWN => true,
        _ => return None,
    };
    Some((text.trim_end(), Marked { verdict, sha: Sha::new(sha)?, withdrawn }))
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::Sha;
    use pointsman_core::task::ReviewVerdict;
    use pointsman_core::words;

    use super::{REVIEW, WITHDRAWN, mark, marked};

    #[test]
    fn a_review_of_ours_is_read_back_from_the_end_of_its_note_alone() {
        let sha = Sha::new(&"a".repeat(40)).unwrap();
        let note = |kind: &str, verdict| {
            format!("Words.\n\n{}\n", words::comment::marker(&mark(kind, verdict, &sha)))
        };
        for verdict in [ReviewVerdict::Approve, ReviewVerdict::RequestChanges, ReviewVerdict::Discuss] {
            let body = note(REVIEW, verdict);
            let (text, known) = marked(&body).unwrap();
            assert_eq!((text, known.verdict, &known.sha, known.withdrawn), ("Words.", verdict, &sha, false));
        }
        assert!(marked(&note(WITHDRAWN, ReviewVerdict::RequestChanges)).unwrap().1.withdrawn);
        let quoted = note(REVIEW, ReviewVerdict::Approve) + "\nquoted above";
        for body in
            ["Words.", quoted.as_str(), "<!-- pointsman:review:approve:x -->", "<!-- pointsman:claimed -->"]
        {
            assert!(marked(body).is_none(), "{body}");
        }
    }
}
