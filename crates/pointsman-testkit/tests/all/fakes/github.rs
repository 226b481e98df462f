//! GitHub. Its own description is the source; `forge_contract::github_shapes` compares every answer's shape with it.

use pointsman_testkit::fake_forgejo::{DEV, FakeForgejo, OUTSIDER, OWNER, Rules};
use serde_json::{Value, json};

use super::Asker;

const HEADERS: &str = "Accept: application/vnd.github+json\r\n";

fn start() -> (FakeForgejo, Asker<'static>) {
    let fake = FakeForgejo::start(Rules::default());
    let asker = Asker { url: fake.url(), base: "/api/v3", scheme: "Bearer", headers: HEADERS };
    (fake, asker)
}

fn pull(fake: &FakeForgejo, asker: &Asker<'_>) -> (u64, String) {
    let head = fake.make_commit(&fake.branch("main").unwrap(), "work");
    fake.set_branch("work", &head);
    let order = json!({ "head": "work", "base": "main", "title": "T", "body": "B" });
    let (status, made) = asker.ask("POST", "/repos/ann/shop/pulls", &fake.token(DEV), &order);
    assert_eq!(status, 201, "{made}");
    (made["number"].as_u64().unwrap(), head)
}

#[test]
fn github_token() {
    let (_fake, asker) = start();
    assert_eq!(asker.get("/user", "no-such-token").0, 401);
}

#[test]
fn github_rights() {
    let (fake, asker) = start();
    let issue = fake.create_issue(OWNER, "T", "B", &[]);
    let path = format!("/repos/ann/shop/issues/{issue}");
    assert_eq!(asker.ask("PATCH", &path, &fake.token(OUTSIDER), &json!({ "state": "closed" })).0, 403);
}

/// Whom it does not take, it leaves out without a word.
#[test]
fn github_assignee_left_out() {
    let (fake, asker) = start();
    let issue = fake.create_issue(OWNER, "T", "B", &[]);
    let path = format!("/repos/ann/shop/issues/{issue}");
    let (status, said) = asker.ask("PATCH", &path, &fake.token(DEV), &json!({ "assignees": [OUTSIDER] }));
    assert_eq!((status, &said["assignees"]), (200, &json!([])));
}

#[test]
fn github_pull_twice() {
    let (fake, asker) = start();
    pull(&fake, &asker);
    let order = json!({ "head": "work", "base": "main", "title": "T", "body": "B" });
    assert_eq!(asker.ask("POST", "/repos/ann/shop/pulls", &fake.token(DEV), &order).0, 422);
}

#[test]
fn github_unchanged() {
    let (fake, asker) = start();
    let (status, head, _) = asker.exchange("GET", "/repos/ann/shop/issues", &fake.token(DEV), &Value::Null);
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("a tag").to_owned();
    assert_eq!(status, 200);
    let headers = format!("{HEADERS}If-None-Match: {}\r\n", tag.replace("w/", "W/"));
    let again = Asker { headers: &headers, ..asker };
    assert_eq!(again.get("/repos/ann/shop/issues", &fake.token(DEV)).0, 304);
}

/// A pull request is an issue too, with a field that no other issue has.
#[test]
fn github_pulls_are_issues() {
    let (fake, asker) = start();
    let (number, _) = pull(&fake, &asker);
    let issue = fake.create_issue(OWNER, "T", "B", &[]);
    let (_, listed) = asker.get("/repos/ann/shop/issues", &fake.token(DEV));
    let find = |wanted: u64| listed.as_array().unwrap().iter().find(|i| i["number"] == wanted).unwrap();
    assert!(find(number)["pull_request"].is_object());
    assert!(find(issue).get("pull_request").is_none());
}

/// A push of the head to the base merges the pull request.
#[test]
fn github_merged_by_push() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    fake.set_branch("main", &head);
    let (_, said) = asker.get(&format!("/repos/ann/shop/pulls/{number}"), &fake.token(DEV));
    assert!(said["merged_at"].is_string(), "{said}");
}

#[test]
fn github_unknown_commit() {
    let (fake, asker) = start();
    let path = format!("/repos/ann/shop/commits/{}/status", "a".repeat(40));
    assert_eq!(asker.get(&path, &fake.token(DEV)).0, 422);
}

#[test]
fn github_label_colour() {
    let (fake, asker) = start();
    let order = json!({ "name": "x", "color": "#00aabb" });
    assert_eq!(asker.ask("POST", "/repos/ann/shop/labels", &fake.token(DEV), &order).0, 422);
    let order = json!({ "name": "x", "color": "00aabb" });
    assert_eq!(asker.ask("POST", "/repos/ann/shop/labels", &fake.token(DEV), &order).0, 201);
}

#[test]
fn github_merge_sha() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    let path = format!("/repos/ann/shop/pulls/{number}/merge-async");
    let order = |sha: &str| json!({ "sha": sha, "merge_method": "rebase", "merge_action": "default" });
    let (status, said) = asker.ask("PUT", &path, &fake.token(DEV), &order(&"a".repeat(40)));
    assert_eq!((status, &said["status"]), (400, &"failed".into()));
    assert_eq!(asker.ask("PUT", &path, &fake.token(DEV), &order(&head)).0, 202);
}

#[test]
fn github_merge_once() {
    let (fake, asker) = start();
    let (number, head) = pull(&fake, &asker);
    let path = format!("/repos/ann/shop/pulls/{number}/merge-async");
    let order = json!({ "sha": head, "merge_method": "rebase", "merge_action": "default" });
    let (_, first) = asker.ask("PUT", &path, &fake.token(DEV), &order);
    let (status, second) = asker.ask("PUT", &path, &fake.token(DEV), &order);
    assert_eq!((status, &second["details"]["uuid"]), (409, &first["details"]["uuid"]));
    let one = format!("{path}/{}", first["details"]["uuid"].as_str().unwrap());
    let (_, done) = asker.get(&one, &fake.token(DEV));
    assert_eq!(
        (&done["status"], &done["details"]["sha"]),
        (&"merged".into(), &fake.branch("main").unwrap().into())
    );
}
