//! The other notifiers: a webhook, the desktop, quiet hours, and a test of all.

use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use pointsman_testkit::http::{Reply, Request, Server};
use serde_json::Value;

use super::super::shop;
use super::asks;

/// Takes what is sent to it, after failing once.
fn hook() -> (Server, Arc<Mutex<Vec<Request>>>) {
    let taken: Arc<Mutex<Vec<Request>>> = Arc::default();
    let seen = Arc::clone(&taken);
    let server = Server::start(move |request| {
        let mut seen = seen.lock().unwrap();
        seen.push(request.clone());
        if seen.len() == 1 { Reply::empty(503).body("no") } else { Reply::empty(200).body("ok") }
    });
    (server, taken)
}

#[test]
fn e2e_a_webhook_is_called_once_for_each_notice_and_its_address_is_nobodys_business() {
    let (server, taken) = hook();
    let address = format!("{}/services/T0/hush-hush-77", server.url());
    let daemon = shop()
        .set("notify.to", "[\"webhook\"]")
        .set("webhook.token_env", "\"HOOK_TOKEN\"")
        .daemon_env("WEBHOOK_URL", &address)
        .daemon_env("HOOK_TOKEN", "bearer-hush-78")
        .start();
    let issue = daemon.file_issue("Apples", &asks());
    daemon.wait_state(issue, "escalated");
    daemon.wait_for("the webhook to be called", || (taken.lock().unwrap().len() >= 2).then_some(()));
    let calls = taken.lock().unwrap().clone();
    assert_eq!(calls[1].path, "/services/T0/hush-hush-77");
    assert_eq!(calls[1].header("authorization"), Some("Bearer bearer-hush-78"));
    let (first, second): (Value, Value) = (calls[0].json(), calls[1].json());
    assert_eq!(first, second, "the same again, under the same key");
    assert_eq!(calls[1].header("idempotency-key"), second["key"].as_str());
    assert!(second["text"].as_str().unwrap().starts_with("shop#1 needs a person\n"), "{second}");
    assert_eq!(
        (&second["issue"], &second["urgent"], &second["project"]),
        (&1.into(), &true.into(), &"shop".into())
    );
    assert_eq!(daemon.notices().len(), 0, "the log was not listed");
    let listed = daemon.wait_for("it to be written down", || {
        Some(daemon.json(&["notify", "list"])).filter(|listed| listed[0]["told"][0]["status"] == "sent")
    });
    assert_eq!(listed[0]["title"], "shop#1 needs a person");
    daemon.answer(issue, "red");
    daemon.wait_closed(issue);
    assert_eq!(taken.lock().unwrap().len(), 2);
    let everywhere = format!(
        "{}{}{}",
        daemon.log(),
        daemon.run(&["status"]).stdout,
        daemon.run(&["config", "show"]).stdout
    );
    assert!(!everywhere.contains("hush"), "{everywhere}");
}

#[test]
fn e2e_the_desktop_shows_our_words_and_no_outside_text() {
    let bin = tempfile::tempdir().unwrap();
    let program = bin.path().join("notify-send");
    let script =
        format!("#!/bin/sh\nfor a in \"$@\"; do echo \"[$a]\"; done >> {}/shown\n", bin.path().display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let daemon = shop().set("notify.to", "[\"log\", \"desktop\"]").daemon_env("PATH", &path).start();
    let issue = daemon.file_issue(
        "--hint=$(id)",
        "```text\nrehearsal:begin\nphase escalate --icon=/etc/passwd\nexpect Answer\nrehearsal:end\n```\n",
    );
    daemon.wait_state(issue, "escalated");
    let shown = daemon.wait_for("the desktop to show it", || {
        std::fs::read_to_string(bin.path().join("shown")).ok().filter(|shown| shown.lines().count() == 5)
    });
    assert_eq!(
        shown,
        "[--app-name=pointsman]\n[--urgency=critical]\n[--]\n[shop #1 needs a person]\n[pointsman task explain 1]\n"
    );
}

#[test]
fn e2e_what_can_wait_waits_through_quiet_hours() {
    let (server, taken) = hook();
    let now = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::get("Asia/Kolkata").unwrap());
    let hour = |zoned: jiff::Zoned| zoned.strftime("%H:%M").to_string();
    let (from, until) = (now.clone() - jiff::Span::new().hours(1), now + jiff::Span::new().hours(2));
    let daemon = shop()
        .set("notify.to", "[\"webhook\"]")
        .set("webhook.url", &format!("{:?}", server.url()))
        .set("notify.quiet_hours", &format!("\"{}-{}\"", hour(from), hour(until)))
        .set("notify.timezone", "\"Asia/Kolkata\"")
        .start();
    // A refusal is nothing to act on, a question is.
    let refusal = daemon.file_issue(
        "Pears",
        "```text\nrehearsal:begin\nrefuse too_large It is a forest.\nrehearsal:end\n```\n",
    );
    daemon.wait_state(refusal, "refused");
    daemon.wait_settled(refusal);
    let question = daemon.file_issue("Apples", &asks());
    daemon.wait_state(question, "escalated");
    daemon.wait_for("the question to be told", || (taken.lock().unwrap().len() >= 2).then_some(()));
    let listed = daemon.json(&["notify", "list"]);
    let of =
        |issue: u64| listed.as_array().unwrap().iter().find(|row| row["issue"] == issue).cloned().unwrap();
    let waits = &of(refusal)["told"][0];
    assert_eq!(waits["status"], "pending", "{listed}");
    let at = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let wait = at(&waits["not_before"]).duration_since(at(&of(refusal)["at"])).as_mins();
    assert!((118..=120).contains(&wait), "until the end of the hours: {wait} minutes");
    assert!(taken.lock().unwrap().iter().all(|call| call.json()["issue"] == question));
}

#[test]
fn e2e_a_test_notice_says_whether_people_can_be_told() {
    let (server, _taken) = hook();
    let daemon = shop()
        .set("notify.to", "[\"log\", \"webhook\"]")
        .set("webhook.url", &format!("{:?}", server.url()))
        .build();
    assert_eq!(daemon.run(&["notify", "test"]).code, Some(5), "that takes a daemon");
    daemon.start();
    let told = daemon.json(&["notify", "test"]);
    assert_eq!((&told[0]["notifier"], &told[0]["status"]), (&"webhook".into(), &"sent".into()));
    drop(server);
    let failed = daemon.run(&["notify", "test"]);
    assert_eq!(failed.code, Some(7), "{failed:?}");
    assert!(failed.stdout.contains("webhook  pending: cannot call the webhook"), "{failed:?}");
    let doctor: Value = serde_json::from_str(&daemon.run(&["doctor", "--json"]).stdout).unwrap();
    let check = doctor["checks"].as_array().unwrap().iter().find(|check| check["id"] == "webhook").unwrap();
    assert!(
        check["status"] == "warn" && check["detail"].as_str().unwrap().contains("one notice waits"),
        "{check}"
    );
}

#[test]
fn e2e_a_digest_is_told_once_a_day_also_across_restarts_and_sleep() {
    const DAY: i64 = 86_400_000;
    let (server, _taken) = hook();
    let daemon = shop()
        .staged()
        .reviewed()
        .set("notify.to", "[\"webhook\"]")
        .set("webhook.url", &format!("{:?}", server.url()))
        .start();
    let script = "write src/apples.txt apples\ncommit Add apples\npush\nphase awaiting_ci\nexpect CI passed\n\
                  phase awaiting_review\nexpect Merged\nphase done";
    let first = daemon.file_issue("Apples", script);
    daemon.file_issue("Pears", "hang");
    daemon.wait_in_review(first);
    let digests = || -> Vec<Value> {
        let listed = daemon.json(&["notify", "list", "-n", "200"]);
        let is_digest = |row: &&Value| row["key"].as_str().unwrap().starts_with("digest:");
        listed.as_array().unwrap().iter().filter(is_digest).cloned().collect()
    };
    assert_eq!(digests(), [Value::Null; 0], "the project is new");
    // Tomorrow at 9 in the morning: the time of the digest was slept through.
    let now = jiff::Timestamp::now().as_millisecond();
    let tomorrow = DAY - now.rem_euclid(DAY) + 9 * 3_600_000;
    daemon.stage(&serde_json::json!({ "ahead_ms": tomorrow, "asleep_ms": tomorrow }));
    let told = daemon.wait_for("the digest", || digests().first().cloned());
    assert_eq!(told["title"], "shop: 1 need you, 0 landed, 0 running, 1 waiting", "{told}");
    let body = told["body"].as_str().unwrap();
    // By then nobody has reviewed it for hours, and that is a question.
    assert!(body.contains("Needs you:\n  "), "{body}");
    assert!(body.contains("#2 Pears: concurrency is 1 and #1 waits for your "), "{body}");
    daemon.stop_daemon();
    daemon.start();
    daemon.stage(&serde_json::json!({ "ahead_ms": tomorrow + 3_600_000, "asleep_ms": tomorrow }));
    daemon.wait_for("the day after", || {
        daemon.stage(&serde_json::json!({ "ahead_ms": tomorrow + DAY, "asleep_ms": tomorrow }));
        (digests().len() > 1).then_some(())
    });
    assert_eq!(digests().len(), 2, "one for each day: {:?}", digests());
}
