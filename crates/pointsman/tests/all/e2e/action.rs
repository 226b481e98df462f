//! The action agent: operational tasks, from an issue to its end.

use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::{LAND, shop};

fn with_actions() -> Setup {
    shop().set("roles.action.enabled", "true").set("limits.min_free_memory_mb", "0")
}

/// Files an issue with these steps of the action agent, and those of the dev agent that may follow.
fn file(daemon: &TestDaemon, title: &str, action: &str, dev: &str) -> u64 {
    let body = format!(
        "rehearsal-action:begin\n{action}\nrehearsal-action:end\nrehearsal:begin\n{dev}\nrehearsal:end\n"
    );
    let order = ["forge", "issue", "create", "--title", title, "--body", &body, "--label", "action"];
    daemon.json(&order)["number"].as_u64().unwrap()
}

fn answer(summary: &str) -> String {
    format!("answer {}", json!({ "summary": summary }))
}

fn wait_issue(daemon: &TestDaemon, issue: u64, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    daemon.wait_for(what, || Some(daemon.issue(issue)).filter(|issue| wanted(issue)))
}

#[test]
fn e2e_an_action_without_commits_is_told_and_its_issue_closed() {
    let daemon = with_actions().start();
    let issue = file(&daemon, "Count the lemons", &answer("There are <!-- pointsman:x --> seven."), "idle");
    let closed = wait_issue(&daemon, issue, "its end", |issue| {
        issue["state"] == "closed" && issue["labels"] == json!([])
    });
    let comments = closed["comments"].as_array().unwrap();
    assert_eq!(comments.len(), 1, "{closed}");
    let text = comments[0]["body"].as_str().unwrap();
    assert!(text.starts_with("**Done** (run 1).") && text.contains("seven."), "{text}");
    let run = daemon.json(&["run", "show", "1"]);
    assert_eq!((&run["status"], &run["formula"]), (&"done".into(), &"run-action".into()));
    assert_eq!(daemon.main_log(), ["Open the shop"]);
}

#[test]
fn e2e_an_action_with_commits_goes_the_way_of_every_other_change() {
    let daemon = with_actions().start();
    let action =
        format!("write src/figs.txt figs 3 crowns\ncommit Count the figs\n{}", answer("Figs are counted."));
    let issue = file(&daemon, "Count the figs", &action, &format!("push\nphase awaiting_ci\n{LAND}"));
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Count the figs", "Open the shop"]);
    assert_eq!(daemon.on_main("src/figs.txt").unwrap(), "figs 3 crowns");
    let told = daemon.comments(issue);
    assert!(told[0].starts_with("**Done, and 1 commits are to land**"), "{told:?}");
}

#[test]
fn e2e_an_action_that_fails_blocks_its_issue_and_is_tried_again_when_a_person_says_so() {
    let daemon = with_actions().start();
    let issue = file(&daemon, "Fly", "phase failed No wings.", "idle");
    let blocked = wait_issue(&daemon, issue, "the label and the word", |issue| {
        issue["labels"] == json!(["action", "blocked"]) && issue["comments"].as_array().unwrap().len() == 1
    });
    let text = blocked["comments"][0]["body"].as_str().unwrap();
    assert!(text.contains("No wings.") && text.contains("Remove the label"), "{text}");
    daemon.json(&["forge", "issue", "label", &issue.to_string(), "--remove", "blocked"]);
    daemon.wait_for("another try", || {
        let runs = daemon.json(&["run", "list"]);
        (runs.as_array()?.len() >= 2).then_some(())
    });

    // Whatever an issue names, it must be there.
    let order =
        ["forge", "issue", "create", "--title", "Odd", "--body", "Formula: nothing", "--label", "action"];
    let odd = daemon.json(&order)["number"].as_u64().unwrap();
    let blocked =
        wait_issue(&daemon, odd, "the word", |issue| issue["comments"].as_array().unwrap().len() == 1);
    assert!(
        blocked["comments"][0]["body"].as_str().unwrap().contains("there is no formula nothing"),
        "{blocked}"
    );
}
