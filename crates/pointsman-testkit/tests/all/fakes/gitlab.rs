//! GitLab, by its published description.

use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OUTSIDER, OWNER, REVIEWER, Rules};
use serde_json::{Value, json};

use super::Asker;

const PROJECT: &str = "/projects/ann%2Fshop";

fn start() -> (FakeForgejo, Asker<'static>) {
    let fake = FakeForgejo::start(Rules::default());
    let asker = Asker { url: fake.url(), base: "/api/v4", scheme: "Bearer", headers: "" };
    (fake, asker)
}

fn merge_request(fake: &FakeForgejo, asker: &Asker<'_>) -> (String, String) {
    let head = fake.make_commit(&fake.branch("main").unwrap(), "work");
    fake.set_branch("work", &head);
    let order = json!({ "source_branch": "work", "target_branch": "main", "title": "T" });
    let (status, made) = asker.ask("POST", &format!("{PROJECT}/merge_requests"), &fake.token(DEV), &order);
    assert_eq!(status, 201, "{made}");
    (format!("{PROJECT}/merge_requests/{}", made["iid"]), head)
}

#[test]
fn gitlab_token() {
    let (_fake, asker) = start();
    assert_eq!(asker.get("/user", "no-such-token"), (401, json!({ "message": "401 Unauthorized" })));
}

#[test]
fn gitlab_rights() {
    let (fake, asker) = start();
    fake.create_issue(OWNER, "T", "B", &[]);
    let path = format!("{PROJECT}/issues/1");
    assert_eq!(asker.ask("PUT", &path, &fake.token(OUTSIDER), &json!({ "state_event": "close" })).0, 403);
    let notes = format!("{path}/notes");
    assert_eq!(asker.ask("POST", &notes, &fake.token(OUTSIDER), &json!({ "body": "hello" })).0, 201);
}

/// Issues and merge requests are numbered apart.
#[test]
fn gitlab_numbers_apart() {
    let (fake, asker) = start();
    fake.create_issue(OWNER, "An issue", "B", &[]);
    let (path, _) = merge_request(&fake, &asker);
    assert!(path.ends_with("/merge_requests/1"), "{path}");
    let (_, issue) = asker.get(&format!("{PROJECT}/issues/1"), &fake.token(DEV));
    assert_eq!(issue["title"], "An issue");
    assert_eq!(asker.get(&format!("{PROJECT}/issues/2"), &fake.token(DEV)).0, 404);
}

#[test]
fn gitlab_twin() {
    let (fake, asker) = start();
    merge_request(&fake, &asker);
    let order = json!({ "source_branch": "work", "target_branch": "main", "title": "T" });
    let path = format!("{PROJECT}/merge_requests");
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 409);
}

#[test]
fn gitlab_approve_sha() {
    let (fake, asker) = start();
    let (path, head) = merge_request(&fake, &asker);
    let approve = format!("{path}/approve");
    let (token, other) = (fake.token(REVIEWER), json!({ "sha": "a".repeat(40) }));
    assert_eq!(asker.ask("POST", &approve, &token, &other).0, 409);
    assert_eq!(asker.ask("POST", &approve, &token, &json!({ "sha": head })).0, 201);
    assert_eq!(asker.ask("POST", &approve, &token, &json!({ "sha": head })).0, 401, "only once");
}

#[test]
fn gitlab_own_approval() {
    let (fake, asker) = start();
    let (path, _) = merge_request(&fake, &asker);
    assert_eq!(asker.ask("POST", &format!("{path}/approve"), &fake.token(DEV), &json!({})).0, 401);
}

/// An approval outlives a push: only the versions tell what was approved.
#[test]
fn gitlab_approval_stays() {
    let (fake, asker) = start();
    let (path, head) = merge_request(&fake, &asker);
    asker.ask("POST", &format!("{path}/approve"), &fake.token(REVIEWER), &json!({}));
    fake.set_branch("work", &fake.make_commit(&head, "more"));
    let (_, said) = asker.get(&format!("{path}/approvals"), &fake.token(DEV));
    assert_eq!(said["approved_by"][0]["user"]["username"], REVIEWER);
    let (_, versions) = asker.get(&format!("{path}/versions"), &fake.token(DEV));
    assert_eq!(versions.as_array().unwrap().len(), 2);
    assert_eq!(versions[1]["head_commit_sha"], head.as_str(), "newest first");
}

#[test]
fn gitlab_system_note() {
    let (fake, asker) = start();
    let (path, _) = merge_request(&fake, &asker);
    asker.ask("POST", &format!("{path}/approve"), &fake.token(REVIEWER), &json!({}));
    let (_, notes) = asker.get(&format!("{path}/notes"), &fake.token(DEV));
    assert_eq!(
        (&notes[0]["body"], &notes[0]["system"]),
        (&"approved this merge request".into(), &true.into())
    );
}

#[test]
fn gitlab_note_of_another() {
    let (fake, asker) = start();
    let (path, _) = merge_request(&fake, &asker);
    let notes = format!("{path}/notes");
    let (_, made) = asker.ask("POST", &notes, &fake.token(REVIEWER), &json!({ "body": "hello" }));
    let one = format!("{notes}/{}", made["id"]);
    assert_eq!(asker.ask("PUT", &one, &fake.token(DEV), &json!({ "body": "no" })).0, 403);
}

#[test]
fn gitlab_same_status() {
    let (fake, asker) = start();
    let path = format!("{PROJECT}/statuses/{}", fake.branch("main").unwrap());
    let order = json!({ "name": "ci", "state": "pending" });
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 201);
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 400);
}

#[test]
fn gitlab_label_twice() {
    let (fake, asker) = start();
    let (path, order) = (format!("{PROJECT}/labels"), json!({ "name": "x", "color": "#00aabb" }));
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 201);
    assert_eq!(asker.ask("POST", &path, &fake.token(DEV), &order).0, 409);
}

#[test]
fn gitlab_page_size() {
    let (fake, asker) = start();
    for _ in 0..120 {
        fake.create_issue(OWNER, "T", "B", &[]);
    }
    let path = format!("{PROJECT}/issues?per_page=500");
    let (_, head, body) = asker.exchange("GET", &path, &fake.token(DEV), &Value::Null);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&body).unwrap().len(), 100);
    assert!(head.contains("x-next-page: 2") && head.contains("rel=\"next\""), "{head}");
}

#[test]
fn gitlab_protected_branch() {
    let (fake, asker) = start();
    fake.change(|rules| rules.protected_main = true);
    let path = format!("{PROJECT}/repository/branches/main");
    assert_eq!(asker.get(&path, &fake.token(DEV)).1["can_push"], false);
    assert_eq!(asker.get(&path, &fake.token(OWNER)).1["can_push"], true);
}

#[test]
fn gitlab_merged_by_push() {
    let (fake, asker) = start();
    let (path, head) = merge_request(&fake, &asker);
    fake.set_branch("main", &head);
    assert_eq!(asker.get(&path, &fake.token(DEV)).1["state"], "merged");
}
