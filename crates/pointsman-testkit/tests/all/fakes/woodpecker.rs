//! Woodpecker 3.x, by its published description and by what a real 3.0.0 did.

use pointsman_testkit::fake_woodpecker::{FakeWoodpecker, TOKEN};
use serde_json::Value;

use super::Asker;

fn start(version: &str) -> (FakeWoodpecker, Asker<'static>) {
    let fake = FakeWoodpecker::start(version);
    let asker = Asker { url: fake.url(), base: "", scheme: "Bearer", headers: "" };
    (fake, asker)
}

/// Errors are plain text, not JSON.
#[test]
fn woodpecker_token() {
    let (_fake, asker) = start("3.17.0");
    assert_eq!(asker.get("/api/repos/7/pipelines", "wrong"), (401, "User not authorized".into()));
}

/// An address that it does not know is its start page.
#[test]
fn woodpecker_old_version() {
    let (_fake, asker) = start("0.15.11");
    let (status, head, _) = asker.exchange("GET", "/version", TOKEN, &Value::Null);
    assert!(status == 200 && head.contains("text/html"), "{head}");
}

/// A list has no workflows; one pipeline has.
#[test]
fn woodpecker_list_without_workflows() {
    let (fake, asker) = start("3.17.0");
    let number = fake.run("push", &"a".repeat(40));
    fake.end(number, "failure", &[("test", 1, "red")]);
    assert_eq!(asker.get("/api/repos/7/pipelines", TOKEN).1[0]["workflows"], Value::Null);
    let (_, one) = asker.get(&format!("/api/repos/7/pipelines/{number}"), TOKEN);
    assert_eq!(one["workflows"][0]["children"][0]["exit_code"], 1);
}

/// A restart is a new pipeline that names its parent.
#[test]
fn woodpecker_restart() {
    let (fake, asker) = start("3.17.0");
    let number = fake.run("push", &"a".repeat(40));
    let (_, made) = asker.ask("POST", &format!("/api/repos/7/pipelines/{number}"), TOKEN, &Value::Null);
    assert_eq!((&made["number"], &made["parent"]), (&2.into(), &1.into()));
}

/// The log is stored a moment after the status; until then it is `null`.
#[test]
fn woodpecker_late_log() {
    let (fake, asker) = start("3.17.0");
    fake.logs_come_late();
    let number = fake.run("push", &"a".repeat(40));
    fake.end(number, "failure", &[("test", 1, "red")]);
    let path = format!("/api/repos/7/logs/{number}/{}", number * 100);
    assert_eq!(asker.get(&path, TOKEN).1, Value::Null);
    asker.get(&path, TOKEN);
    assert_eq!(asker.get(&path, TOKEN).1[0]["data"], "cmVk", "in base64");
}
