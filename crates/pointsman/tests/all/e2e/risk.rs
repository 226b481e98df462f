//! `review.mode = "risk"`: the class of a change says who looks at it.

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::{LAND, adds, shop};

/// Nobody is drawn, and no agent reviews, unless a test says so.
fn by_risk() -> Setup {
    shop().set("review.mode", "\"risk\"").set("risk.sample", "0").set("risk.medium", "\"person\"")
}

fn writes(daemon: &TestDaemon, page: &str, text: &str) -> u64 {
    let script = format!("append docs/{page} {text}\ncommit Write {text}\npush\nphase awaiting_ci\n{LAND}");
    daemon.file_issue(&format!("Write {text}"), &script)
}

/// The question about the review of an issue, once it is asked.
fn question(daemon: &TestDaemon, issue: u64) -> Value {
    daemon.wait_for("the question about its review", || {
        let open = daemon.json(&["inbox"]);
        let found =
            open.as_array()?.iter().find(|asked| asked["issue"] == issue && asked["kind"] == "review");
        found.cloned()
    })
}

fn approve(daemon: &TestDaemon, issue: u64) {
    let number = question(daemon, issue)["id"].to_string();
    daemon.json(&["inbox", "approve", &number]);
    daemon.wait_closed(issue);
}

fn risk(daemon: &TestDaemon, issue: u64) -> Value {
    let pr = daemon.task(issue)["pr"].to_string();
    daemon.json(&["forge", "pr", "show", &pr])["risk"].clone()
}

#[test]
fn e2e_what_has_a_record_lands_alone_until_it_is_taken_back_and_the_rest_waits_for_people() {
    let daemon = by_risk().start();
    // No agent has landed anything in this file yet.
    let first = writes(&daemon, "prices.md", "apples");
    let asked = question(&daemon, first);
    assert_eq!((&asked["risk"]["class"], &asked["risk"]["needs"]), (&json!("medium"), &json!("person")));
    assert!(asked["risk"]["reasons"][0].as_str().unwrap().contains("landed 0 of the 1"), "{asked}");
    approve(&daemon, first);

    // Now one has, so prose in it needs nobody.
    let second = writes(&daemon, "prices.md", "pears");
    daemon.wait_closed(second);
    let pr = daemon.pull_request(daemon.task(second)["pr"].as_u64().unwrap());
    assert_eq!(pr["reviews"], json!([]));
    let low = json!({"class": "low", "needs": "nobody", "reasons": [], "sampled": false});
    assert_eq!(risk(&daemon, second), low);
    let explained = daemon.run(&["task", "explain", &second.to_string()]).stdout;
    assert!(explained.contains("risk low: needs nobody's review"), "{explained}");

    // Something that gives rights is critical, and every page says so.
    let third = daemon.file_issue(
        "Deploy",
        &format!("write deploy.sh sudo make install\ncommit Deploy\npush\nphase awaiting_ci\n{LAND}"),
    );
    let number = question(&daemon, third)["id"].to_string();
    let shown = daemon.run(&["inbox", "show", &number]).stdout;
    for words in ["risk critical: needs a person's review", "it changes permissions (deploy.sh)"] {
        assert!(shown.matches(words).count() >= 2, "beside the question and in it: {shown}");
    }
    let pr = daemon.task(third)["pr"].to_string();
    let shown = daemon.run(&["forge", "pr", "show", &pr]).stdout;
    assert!(shown.contains("risk     it changes permissions (deploy.sh)"), "{shown}");
    approve(&daemon, third);

    // What landed without anybody is taken back: from then on people look at this file.
    daemon.json(&["task", "undo", &second.to_string(), "--reason", "The pears are sold out"]);
    daemon.wait_for("the revert to land", || {
        daemon.on_main("docs/prices.md").filter(|page| !page.contains("pears"))
    });
    daemon.wait_for("the report to know it", || {
        let classes = daemon.json(&["report"])["by_class"].clone();
        let low = classes.as_array()?.iter().find(|share| share["class"] == "low")?.clone();
        (low == json!({"class": "low", "landed": 1, "reverted": 1})).then_some(())
    });
    let plain = daemon.run(&["report"]).stdout;
    assert!(plain.contains("Landed by class of risk") && plain.contains("1 landed, 1 reverted"), "{plain}");
    let fourth = writes(&daemon, "prices.md", "plums");
    let asked = question(&daemon, fourth);
    assert_eq!(asked["risk"]["class"], "high", "{asked}");
    assert!(asked["risk"]["reasons"][0].as_str().unwrap().contains("1 of 2 earlier changes"), "{asked}");
}

#[test]
fn e2e_a_change_that_is_drawn_waits_for_a_person_also_after_a_kill() {
    let daemon = by_risk().set("risk.sample", "100").set("risk.rules", "[]").start();
    let issue = writes(&daemon, "prices.md", "apples");
    let asked = question(&daemon, issue);
    assert_eq!((&asked["risk"]["class"], &asked["risk"]["sampled"]), (&json!("low"), &json!(true)));
    daemon.kill_daemon();
    daemon.restart();
    assert_eq!(question(&daemon, issue)["id"], asked["id"], "the same question");
    approve(&daemon, issue);
    // With the draw switched off, the same change needs nobody.
    assert_eq!(risk(&daemon, issue)["needs"], "person");
}

/// Approves everything; what has the price 9 with a remark.
const REVIEWER: &str = r#"#!/bin/sh
findings='[]'
grep -rq 9 src && findings='[{"file": "src/figs.txt", "line": 1, "text": "Nine is too much"}]'
printf '{"verdict": "APPROVE", "verdict_reason": "fine", "findings": %s}' "$findings" > "$POINTSMAN_RESULT_FILE"
"#;

#[test]
fn e2e_the_reviewer_lets_code_through_unless_it_finds_something() {
    let daemon = by_risk()
        .set("risk.medium", "\"agent\"")
        .set("review.command", "[\"./review.sh\"]")
        .file("review.sh", REVIEWER)
        .start();
    let plain = daemon.file_issue("Kiwis", &format!("{}\n{LAND}", adds("kiwis")));
    daemon.wait_closed(plain);
    let shown = risk(&daemon, plain);
    assert_eq!((&shown["class"], &shown["needs"]), (&json!("medium"), &json!("agent")));

    let dear = "write src/figs.txt figs 9 crowns\ncommit Add figs\npush\nphase awaiting_ci";
    let dear = daemon.file_issue("Figs", &format!("{dear}\n{LAND}"));
    let asked = question(&daemon, dear);
    assert_eq!((&asked["risk"]["class"], &asked["risk"]["needs"]), (&json!("high"), &json!("person")));
    assert!(asked["risk"]["reasons"][0].as_str().unwrap().contains("found one thing"), "{asked}");
    approve(&daemon, dear);
    let mut log = daemon.main_log();
    log.truncate(2);
    assert_eq!(log, ["Add figs", "Add kiwis"]);
}
