//! Databases that are older than the world: restored, put back by hand, or removed.

use std::fs;

use serde_json::Value;

use super::{clean, shop};

/// Asks first, so that a test decides when it goes on.
fn asks(fruit: &str) -> String {
    format!("phase escalate go on?\nexpect Answer\n{}", clean(fruit))
}

fn merged(daemon: &pointsman_testkit::TestDaemon) -> Vec<(Value, Value)> {
    let pulls = daemon.json(&["forge", "pr", "list", "--state", "all"]);
    let pulls = pulls.as_array().unwrap().iter();
    pulls.map(|pr| (pr["number"].clone(), pr["merged"].clone())).collect()
}

fn is_quiet(daemon: &pointsman_testkit::TestDaemon) {
    let inbox = daemon.json(&["inbox"]);
    assert_eq!(inbox, serde_json::json!([]), "nobody has anything to decide");
    let queue = daemon.json(&["status"])["projects"].to_string();
    assert!(!queue.contains("\"frozen_by_audit\":true"), "{queue}");
}

#[test]
fn e2e_an_older_database_doubles_nothing_raises_no_alarm_and_stops_nothing() {
    let daemon = shop().set("dev.concurrency", "3").start();
    let first = daemon.file_issue("Apples", &asks("apples"));
    let second = daemon.file_issue("Pears", &asks("pears"));
    let third = daemon.file_issue("Plums", &asks("plums"));
    for issue in [first, second, third] {
        daemon.wait_state(issue, "escalated");
    }
    let file = daemon.path("old.backup");
    daemon.json(&["backup", file.to_str().unwrap()]);
    for issue in [first, second] {
        daemon.answer(issue, "Yes.");
        daemon.wait_closed(issue);
        daemon.wait_settled(issue);
    }
    let (log, pulls) = (daemon.main_log(), merged(&daemon));
    assert_eq!(pulls.len(), 2);
    daemon.stop_daemon();
    let restored = daemon.json(&["restore", file.to_str().unwrap(), "--only", "pointsman.db"]);
    assert_eq!(restored["databases"][0]["name"], "pointsman.db", "{restored}");
    daemon.start();
    for issue in [first, second] {
        daemon.wait_state(issue, "closed");
        daemon.wait_settled(issue);
        assert_eq!(daemon.sessions(issue).len(), 1, "nobody began again");
    }
    assert_eq!(merged(&daemon), pulls);
    assert_eq!(daemon.main_log(), log);
    assert_eq!(daemon.tmux_sessions(), [format!("dev-shop-{third}")]);
    // What was not over goes on, and the merge queue takes it.
    daemon.answer(third, "Yes.");
    daemon.wait_closed(third);
    daemon.wait_settled(third);
    assert_eq!(daemon.main_log().len(), log.len() + 1);
    assert_eq!(merged(&daemon).len(), 3);
    is_quiet(&daemon);
}

#[test]
fn e2e_an_older_forge_closes_what_landed_and_gives_no_number_twice() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", &asks("apples"));
    daemon.wait_state(issue, "escalated");
    let file = daemon.path("old.backup");
    daemon.json(&["backup", file.to_str().unwrap()]);
    daemon.answer(issue, "Yes.");
    daemon.wait_closed(issue);
    daemon.wait_settled(issue);
    let pr = merged(&daemon)[0].0.as_u64().unwrap();
    daemon.stop_daemon();
    daemon.json(&["restore", file.to_str().unwrap(), "--only", "projects/shop/forge.db"]);
    daemon.start();
    daemon.wait_for("the issue to be closed", || {
        let shown = daemon.json(&["forge", "issue", "show", &issue.to_string()]);
        (shown["state"] == "closed" && shown["labels"] == serde_json::json!([])).then_some(())
    });
    let next = daemon.file_issue("Pears", &clean("pears"));
    assert!(next > pr, "#{next} was given to the pull request of #{issue}, #{pr}");
    daemon.wait_closed(next);
    daemon.wait_settled(next);
    assert_eq!(daemon.sessions(issue).len(), 1, "what landed is not begun again");
    assert_eq!(daemon.main_log().len(), 3);
    is_quiet(&daemon);
}

#[test]
fn e2e_an_agent_of_which_no_record_is_left_is_ended_and_its_tree_stays() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt precious\nsay at work\nhang");
    daemon.wait_shown(issue, "at work");
    let (pid, tree) = (daemon.session_pid(issue), daemon.tree(issue));
    daemon.kill_daemon();
    for ending in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(daemon.path(&format!("state/pointsman.db{ending}")));
    }
    daemon.start();
    daemon.wait_for("the agent to end", || (!fs::exists(format!("/proc/{pid}/exe")).unwrap()).then_some(()));
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(fs::read_to_string(tree.join("src/apples.txt")).unwrap(), "precious\n");
    assert!(!daemon.log_lines("there is no record").unwrap_or_default().is_empty());
}
