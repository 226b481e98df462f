//! `dev.plan`: the agent's plan is a question before it works.

use pointsman_testkit::TestDaemon;
use serde_json::{Value, json};

use super::{LAND, adds, shop};

fn planning() -> TestDaemon {
    shop().set("dev.plan", "true").start()
}

/// The open question about a plan, which has these words in it.
fn question(daemon: &TestDaemon, issue: u64, words: &str) -> Value {
    daemon.wait_for("the question about its plan", || {
        let open = daemon.json(&["inbox"]);
        let about = |asked: &&Value| asked["issue"] == issue && asked["kind"] == "plan";
        let found = open.as_array()?.iter().find(about)?.clone();
        found["body"].as_str()?.contains(words).then_some(found)
    })
}

fn number(question: &Value) -> String {
    question["id"].to_string()
}

#[test]
fn e2e_a_plan_is_sent_back_once_and_accepted_once_with_a_kill_in_between() {
    let daemon = planning();
    let script = format!(
        "plan Sell figs for 3 crowns.\nexpect Answer\nplan Sell figs for 4 crowns.\nexpect Answer\n{}\n{LAND}",
        adds("figs")
    );
    let issue = daemon.file_issue("Figs", &script);
    let first = question(&daemon, issue, "Sell figs for 3 crowns.");
    assert!(first["body"].as_str().unwrap().contains("Words send the plan back"), "{first}");
    assert!(daemon.prompt(issue, 1).contains("The plan comes first"));
    assert_eq!(daemon.task(issue)["state"], "escalated");
    daemon.wait_for("the plan below the issue", || {
        daemon.comments(issue).iter().any(|text| text.contains("Sell figs for 3 crowns.")).then_some(())
    });
    assert!(daemon.run(&["status"]).stdout.contains("Sell figs for 3 crowns."));

    daemon.json(&["forge", "issue", "comment", &issue.to_string(), "--body", "Too cheap."]);
    let second = question(&daemon, issue, "Sell figs for 4 crowns.");
    assert_ne!(first["id"], second["id"]);
    let settled = daemon.json(&["inbox", "show", &number(&first)]);
    assert_eq!(settled["settled"]["how"], "answered", "{settled}");

    daemon.kill_daemon();
    daemon.restart();
    assert_eq!(question(&daemon, issue, "4 crowns")["id"], second["id"], "nobody was asked again");
    let accepted = daemon.json(&["inbox", "approve", &number(&second)]);
    assert_eq!(accepted["settled"]["how"], "approved");
    let late = daemon.run(&["inbox", "approve", &number(&second)]);
    assert_eq!(late.code, Some(3));
    assert!(late.stderr.contains(&format!("was approved by {}", crate::login())), "{late:?}");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add figs", "Open the shop"]);
}

#[test]
fn e2e_a_comment_that_says_yes_accepts_a_plan_and_a_no_blocks_the_task() {
    let daemon = planning();
    let good = daemon.file_issue("Plums", &format!("plan Plums.\nexpect Answer\n{}\n{LAND}", adds("plums")));
    question(&daemon, good, "Plums.");
    daemon.json(&["forge", "issue", "comment", &good.to_string(), "--body", "Yes!"]);
    daemon.wait_closed(good);

    let bad = daemon.file_issue("Guns", &format!("plan Guns.\nexpect Answer\n{}\n{LAND}", adds("guns")));
    let asked = number(&question(&daemon, bad, "Guns."));
    daemon.json(&["inbox", "reject", &asked, "--body", "We sell fruit"]);
    let task = daemon.wait_state(bad, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("rejected the plan: We sell fruit"), "{task}");
    assert_eq!(daemon.json(&["inbox", "show", &asked])["settled"]["how"], json!("rejected"));
}

#[test]
fn e2e_work_that_is_handed_in_without_a_plan_is_not_taken() {
    let daemon = planning();
    let script = format!(
        "{}\nexpect Write a phase\nplan Kiwis, as committed.\nexpect Answer\nphase awaiting_ci\n{LAND}",
        adds("kiwis")
    );
    let issue = daemon.file_issue("Kiwis", &script);
    let asked = number(&question(&daemon, issue, "Kiwis, as committed."));
    assert!(daemon.task(issue)["pr"].is_null(), "{}", daemon.task(issue));
    daemon.json(&["inbox", "approve", &asked]);
    daemon.wait_closed(issue);
}
