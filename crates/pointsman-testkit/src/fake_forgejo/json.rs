//! Shapes, as recorded from a real server.

use serde_json::{Value, json};

use super::{Comment, Issue, Pull, REPO, Review, State, Status};
use crate::mutation::broken;

pub(super) fn time(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}

pub(super) fn user(login: &str) -> Value {
    json!({ "id": 1, "login": login, "full_name": "", "email": format!("{login}@lab.invalid"), "username": login })
}

pub(super) fn message(text: &str) -> Value {
    json!({ "message": text, "url": "http://lab.invalid/api/swagger" })
}

pub(super) fn repository(state: &State, viewer: &str) -> Value {
    let admin = state.accounts.get(viewer).is_some_and(|account| account.admin);
    json!({
        "id": 1, "full_name": REPO, "default_branch": "main", "archived": false, "has_issues": true,
        "has_pull_requests": true, "allow_manual_merge": state.rules.manual_merge,
        "permissions": { "admin": admin, "push": state.writes(viewer), "pull": true },
    })
}

pub(super) fn label(state: &State, id: u64) -> Value {
    let label = state.labels.iter().find(|label| label.id == id);
    label.map_or(
        Value::Null,
        |l| json!({ "id": l.id, "name": l.name, "color": l.color, "description": "", "url": "" }),
    )
}

pub(super) fn issue(state: &State, number: u64, issue: &Issue) -> Value {
    let people: Vec<Value> = issue.assignees.iter().map(|login| user(login)).collect();
    json!({
        "id": number, "number": number, "title": issue.title, "body": issue.body, "user": user(&issue.author),
        "state": if issue.open { "open" } else { "closed" }, "comments": issue.comments.len(),
        "labels": issue.labels.iter().map(|id| label(state, *id)).collect::<Vec<_>>(),
        "assignee": people.first(), "assignees": if people.is_empty() { Value::Null } else { json!(people) },
        "milestone": null, "created_at": time(issue.created), "updated_at": time(issue.updated), "closed_at": null,
        "pull_request": state.pulls.get(&number).map(|pull| json!({ "merged": pull.merged_as.is_some() })),
    })
}

pub(super) fn comment(comment: &Comment) -> Value {
    json!({
        "id": comment.id, "user": user(&comment.author), "body": comment.body, "created_at": time(comment.at),
        "updated_at": time(comment.at), "original_author": "",
    })
}

pub(super) fn pull(state: &State, number: u64, pull: &Pull) -> Value {
    let shared = &state.issues[&number];
    let repo = json!({ "full_name": REPO });
    json!({
        "id": number, "number": number, "title": shared.title, "body": shared.body, "user": user(&shared.author),
        "state": if shared.open { "open" } else { "closed" }, "labels": [], "comments": shared.comments.len(),
        // Found out some time after it was opened.
        "mergeable": pull.changed.elapsed() >= state.rules.check_lag, "merged": pull.merged_as.is_some(), "merge_commit_sha": pull.merged_as,
        "head": { "label": pull.head, "ref": pull.head, "sha": pull.head_sha, "repo_id": 1, "repo": repo },
        "base": { "label": pull.base, "ref": pull.base, "sha": "", "repo_id": 1, "repo": repo },
        "created_at": time(shared.created), "updated_at": time(shared.updated),
    })
}

pub(super) fn review(state: &State, pull: &Pull, review: &Review) -> Value {
    let newer =
        pull.reviews.iter().any(|r| r.author == review.author && r.id > review.id && r.event != "COMMENT");
    let stale = review.early || (review.sha != pull.head_sha && !broken("forgejo-stale-review"));
    json!({
        "id": review.id, "user": user(&review.author), "team": null, "state": review.event, "body": review.body,
        "commit_id": review.sha, "stale": stale, "dismissed": review.dismissed,
        // The last word of somebody who may write.
        "official": state.writes(&review.author) && !newer,
        "comments_count": review.remarks.len(), "submitted_at": time(review.at),
    })
}

pub(super) fn status(status: &Status) -> Value {
    json!({
        "id": status.id, "status": status.state, "context": status.context, "description": "", "target_url": "",
        "creator": user(&status.creator), "created_at": time(0), "updated_at": time(0),
    })
}
