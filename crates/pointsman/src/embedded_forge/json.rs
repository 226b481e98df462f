//! Issues and pull requests as scripts see them.

use pointsman_core::forge::{Comment, Issue, PullRequest, Review};
use pointsman_core::time::Timestamp;
use serde_json::{Value, json};

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
        "created_at": at(issue.created_at),
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
    let one = |c: &Comment| json!({ "author": c.author, "body": c.body, "at": at(c.at) });
    comments.iter().map(one).collect()
}

fn review(review: &Review) -> Value {
    json!({
        "author": review.author,
        "verdict": review.verdict,
        "body": review.body,
        "sha": review.sha,
        "at": at(review.at),
        "dismissed": review.dismissed,
    })
}

/// RFC 3339 in UTC; nothing for a moment that has no date.
fn at(moment: Timestamp) -> Option<String> {
    jiff::Timestamp::from_millisecond(moment.0).ok().map(|moment| moment.to_string())
}
