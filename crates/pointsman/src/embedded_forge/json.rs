//! Issues and pull requests as scripts see them.

use pointsman_core::forge::{Comment, Issue, PullRequest, Review};
use serde_json::{Value, json};

use crate::daemon::clock::rfc3339;

/// An issue, as `forge issue …` prints it.
pub(super) fn issue(issue: &Issue) -> Value {
    json!({
        "number": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "labels": issue.labels,
        "comments": comments(&issue.comments),
        "assignee": issue.assignee,
        "author": issue.author,
        "created_at": rfc3339(issue.created_at),
    })
}

/// A pull request with its comments, as `forge pr …` prints it.
pub(super) fn pull_request(pr: &PullRequest, discussion: &[Comment]) -> Value {
    json!({
        "number": pr.number,
        "title": pr.title,
        "body": pr.body,
        "head": pr.head,
        "base": pr.base,
        "head_sha": pr.head_sha,
        "state": pr.state,
        "merged": pr.merged,
        "merge_sha": pr.merge_sha,
        "reviews": pr.reviews.iter().map(review).collect::<Vec<_>>(),
        "comments": comments(discussion),
        "author": pr.author,
    })
}

fn comments(comments: &[Comment]) -> Vec<Value> {
    let one = |c: &Comment| json!({ "author": c.author, "body": c.body, "at": rfc3339(c.at) });
    comments.iter().map(one).collect()
}

fn review(review: &Review) -> Value {
    json!({
        "author": review.author,
        "verdict": review.verdict,
        "body": review.body,
        "sha": review.sha,
        "at": rfc3339(review.at),
        "dismissed": review.dismissed,
    })
}
