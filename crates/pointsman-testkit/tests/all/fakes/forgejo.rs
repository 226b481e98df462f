//! Forgejo and Gitea. Numbers in comments are the recorded exchanges that a rule rests on.

use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OUTSIDER, OWNER, REVIEWER, Rules};
use serde_json::{Value, json};

use super::Asker;

fn asker(fake: &FakeForgejo) -> Asker<'static> {
    Asker { url: fake.url(), base: "/api/v1", scheme: "token", headers: "" }
}

fn start() -> (FakeForgejo, Asker<'static>) {
    let fake = FakeForgejo::start(Rules::default());
    let asker = asker(&fake);
    (fake, asker)
}

/// A branch with a commit, and its pull request.
fn pull(fake: &FakeForgejo, asker: &Asker<'_>) -> (u64, String) {
    let head = fake.make_commit(&fake.branch("main").unwrap(), "work");
    fake.set_branch("work", &head);
    let order = json!({ "head": "work", "base": "main", "title": "T", "body": "B" });
    let (status, made) = asker.ask("POST", "/repos/ann/shop/pulls", &fake.token(DEV), &order);
    assert_eq!(status, 201, "{made}");
    (made["number"].as_u64().unwrap(), head)
}

#[test]
fn forgejo_token() {
    let (_fake, asker) = start();
    let (status, said) = asker.get("/user", "no-such-token");
    assert_eq!((status, &said["message"]), (401, &"invalid username, password or token".into()));
}

#[test]
fn forgejo_rights() {
    let (fake, asker) = start();
    let issue = fake.create_issue(OWNER, "T", "B", &[]);
    let path = format!("/repos/ann/shop/issues/{issue}");
    assert_eq!(asker.ask("PATCH", &path, &fake.token(OUTSIDER), &json!({ "state": "closed" })).0, 403);
    let comment = format!("{path}/comments");
    assert_eq!(asker.ask("POST", &comment, &fake.token(OUTSIDER), &json!({ "body": "hello" })).0, 201);
}

/// 47
#[test]
fn forgejo_own_approval() {
    let (fake, asker) = start();
    let (number, _) = pull(&fake, &asker);
    let path = format!("/repos/ann/shop/pulls/{number}/reviews");
    let order = json!({ "event": "APPROVED", "body": "fine" });
    let (status, said) = asker.ask("POST", &path, &fake.token(DEV), &order);
    assert_eq!((status, &said["message"]), (422, &"approve your own pull is not allowed".into()));
    assert_eq!(asker.ask("POST", &path, &fake.token(REVIEWER), &order).0, 200);
}

/// 63
#[test]
fn forgejo_pull_twice() {
    let (fake, asker) = start();
    pull(&fake, &asker);
    let order = json!({ "head": "work", "base": "main", "title": "T", "body": "B" });
    assert_eq!(asker.ask("POST", "/repos/ann/shop/pulls", &fake.token(DEV), &order).0, 409);
}

/// 20
#[test]
fn forgejo_label_by_name() {
    let (fake, asker) = start();
    let issue = fake.create_issue(OWNER, "T", "B", &["backlog"]);
    let path = format!("/repos/ann/shop/issues/{issue}/labels/backlog");
    assert_eq!(asker.ask("DELETE", &path, &fake.token(DEV), &Value::Null).0, 204);
    assert_eq!(fake.issue(issue).labels, ["backlog"], "nothing happened, and all is well");
}

#[test]
fn forgejo_label_id() {
    let (fake, asker) = start();
    let issue = fake.create_issue(OWNER, "T", "B", &[]);
    let path = format!("/repos/ann/shop/issues/{issue}/labels");
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &json!({ "labels": [4711] })).0, 422);
}

#[test]
fn forgejo_assignee() {
    let (fake, asker) = start();
    let issue = fake.create_issue(OWNER, "T", "B", &[]);
    let path = format!("/repos/ann/shop/issues/{issue}");
    assert_eq!(asker.ask("PATCH", &path, &fake.token(DEV), &json!({ "assignees": [OUTSIDER] })).0, 422);
}

/// 26: an issue that waits for another cannot be closed.
#[test]
fn forgejo_close_with_dependencies() {
    let (fake, asker) = start();
    let first = fake.create_issue(OWNER, "T", "B", &[]);
    let second = fake.create_issue(OWNER, "T", "B", &[]);
    fake.depend(second, first);
    let path = format!("/repos/ann/shop/issues/{second}");
    assert_eq!(asker.ask("PATCH", &path, &fake.token(DEV), &json!({ "state": "closed" })).0, 412);
}

/// 17
#[test]
fn forgejo_page_size() {
    let (fake, asker) = start();
    for _ in 0..60 {
        fake.create_issue(OWNER, "T", "B", &[]);
    }
    let (_, head, body) =
        asker.exchange("GET", "/repos/ann/shop/issues?limit=100", &fake.token(DEV), &Value::Null);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&body).unwrap().len(), 50);
    assert!(head.contains("x-total-count: 60") && head.contains("rel=\"next\""), "{head}");
}

/// 54, 55
#[test]
fn forgejo_merge_commit_on_base() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    let path = format!("/repos/ann/shop/pulls/{number}/merge");
    let order = json!({ "Do": "manually-merged", "MergeCommitID": head });
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 409, "it is not on main");
    fake.set_branch("main", &head);
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 200);
}

#[test]
fn forgejo_manual_merge_allowed() {
    let (fake, asker) = start();
    fake.change(|rules| rules.manual_merge = false);
    let (number, head) = pull(&fake, &asker);
    fake.set_branch("main", &head);
    let path = format!("/repos/ann/shop/pulls/{number}/merge");
    let order = json!({ "Do": "manually-merged", "MergeCommitID": head });
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 405);
}

/// 49: a review of a commit that is not the head any more is stale.
#[test]
fn forgejo_stale_review() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    fake.review(number, REVIEWER, "APPROVED", "fine", &[]);
    let path = format!("/repos/ann/shop/pulls/{number}/reviews");
    assert_eq!(asker.get(&path, &fake.token(DEV)).1[0]["stale"], false);
    fake.set_branch("work", &fake.make_commit(&head, "more"));
    assert_eq!(asker.get(&path, &fake.token(DEV)).1[0]["stale"], true);
}

/// Seen on a Gitea: the head's own review, written within a moment of the push, was stale for good.
#[test]
fn forgejo_stale_head() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    let path = format!("/repos/ann/shop/pulls/{number}/reviews");
    let order = json!({ "event": "APPROVED", "body": "fine", "commit_id": head });
    fake.change(|rules| rules.check_lag = std::time::Duration::from_secs(600));
    assert_eq!(asker.ask("POST", &path, &fake.token(REVIEWER), &order).1["stale"], true);
    fake.change(|rules| rules.check_lag = std::time::Duration::ZERO);
    assert_eq!(asker.ask("POST", &path, &fake.token(REVIEWER), &order).1["stale"], false);
}

#[test]
fn forgejo_dismiss_needs_admin() {
    let (fake, asker) = start();
    let (number, _) = pull(&fake, &asker);
    fake.review(number, REVIEWER, "REQUEST_CHANGES", "no", &[]);
    let reviews = format!("/repos/ann/shop/pulls/{number}/reviews");
    let id = asker.get(&reviews, &fake.token(DEV)).1[0]["id"].to_string();
    let path = format!("{reviews}/{id}/dismissals");
    assert_eq!(asker.ask("POST", &path, &fake.token(REVIEWER), &json!({ "message": "m" })).0, 403);
    assert_eq!(asker.ask("POST", &path, &fake.token(OWNER), &json!({ "message": "m" })).0, 200);
}

/// 41: a commit that nobody spoke of has `null` and not a list.
#[test]
fn forgejo_no_statuses() {
    let (fake, asker) = start();
    let main = fake.branch("main").unwrap();
    let (status, said) = asker.get(&format!("/repos/ann/shop/commits/{main}/status"), &fake.token(DEV));
    assert_eq!((status, &said["statuses"], &said["total_count"]), (200, &Value::Null, &json!(0)));
}

/// A real server moves the head a moment after the push has returned.
#[test]
fn forgejo_late_head() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    fake.change(|rules| rules.head_lag = std::time::Duration::from_secs(3600));
    fake.set_branch("work", &fake.make_commit(&head, "more"));
    let path = format!("/repos/ann/shop/pulls/{number}");
    assert_eq!(asker.get(&path, &fake.token(DEV)).1["head"]["sha"], head.as_str());
}

/// A real server checks a pull request a moment later, and merges nothing before.
#[test]
fn forgejo_late_check() {
    let (fake, asker) = start();
    fake.change(|rules| rules.check_lag = std::time::Duration::from_secs(3600));
    let (number, head) = pull(&fake, &asker);
    fake.set_branch("main", &head);
    let path = format!("/repos/ann/shop/pulls/{number}/merge");
    let order = json!({ "Do": "manually-merged", "MergeCommitID": head });
    let (status, said) = asker.ask("POST", &path, &fake.token(DEV), &order);
    assert_eq!((status, &said["message"]), (405, &"Please try again later".into()));
}
