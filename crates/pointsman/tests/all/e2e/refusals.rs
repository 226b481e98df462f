//! An agent turns a task down.

use super::{clean, shop};

/// So often the daemon is killed while a dependency is open; `POINTSMAN_RESTARTS=n` says otherwise.
const RESTARTS: usize = 6;

#[test]
fn e2e_each_refusal_has_its_labels_and_a_comment() {
    let daemon = shop().set("dev.concurrency", "3").start();
    let cases: [(&str, &[&str]); 3] = [
        ("unmet_dependency", &["backlog", "blocked"]),
        ("too_large", &["underspecified"]),
        ("already_done", &[]),
    ];
    let issues =
        cases.map(|(status, _)| daemon.file_issue(status, &format!("refuse {status} because of {status}")));
    for (issue, (status, labels)) in issues.into_iter().zip(cases) {
        let task = daemon.wait_state(issue, "refused");
        daemon.wait_settled(issue);
        assert!(task["reason"].as_str().unwrap().contains(&format!("because of {status}")), "{task}");
        assert_eq!(daemon.labels(issue), labels, "{status}");
        assert_eq!(daemon.issue(issue)["state"], "open", "whether it is true is for a person to say");
        let comments = daemon.comments(issue);
        assert!(comments.len() == 1 && comments[0].contains(&format!("because of {status}")), "{comments:?}");
        assert_eq!(daemon.session(issue)["exit"], "failed");
    }
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.phase_files(), [""; 0]);
}

#[test]
fn e2e_a_refused_task_starts_again_when_a_person_queues_it_again() {
    let daemon = shop().start();
    let script = format!("refuse too_large split it\nexit 0\n{}", clean("apples"));
    let issue = daemon.file_issue("Apples", &script);
    daemon.wait_state(issue, "refused");
    daemon.wait_settled(issue);
    let number = issue.to_string();
    daemon.json(&["forge", "issue", "label", &number, "--remove", "underspecified", "--add", "backlog"]);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert_eq!(daemon.sessions(issue).len(), 2);
}

#[test]
fn e2e_a_task_refused_for_an_open_dependency_does_not_start_because_of_a_restart() {
    let daemon = shop().start();
    let needed = daemon.file_issue_with("Buy a scale", "Nobody works on this one: it is a person's.");
    daemon.json(&["forge", "issue", "label", &needed.to_string(), "--remove", "backlog"]);
    let script = format!("refuse unmet_dependency #{needed} no scale yet\nexit 0\n{}", clean("apples"));
    let refused = daemon.file_issue("Apples", &script);
    daemon.wait_state(refused, "refused");
    daemon.wait_until(refused, "its dependency is seen", |task| {
        task["waiting_for"].as_str().is_some_and(|waits| waits.contains(&format!("#{needed}")))
            || task["open_dependencies"] == serde_json::json!([needed])
    });
    daemon.wait_settled(refused);
    let restarts = std::env::var("POINTSMAN_RESTARTS").ok().and_then(|n| n.parse().ok()).unwrap_or(RESTARTS);
    for round in 0..restarts {
        daemon.restart();
        // Filed after the start, so that the forge was asked at least once before it is seen.
        let probe = daemon.file_issue_with("Probe", &format!("Depends on #{needed}."));
        daemon.wait_state(probe, "waiting_dependencies");
        daemon.wait_settled(refused);
        assert_eq!(daemon.labels(refused), ["backlog", "blocked"], "round {round}");
        assert_eq!(daemon.task(refused)["state"], "refused", "round {round}");
        assert_eq!(daemon.sessions(refused).len(), 1, "round {round}");
        daemon.json(&["forge", "issue", "close", &probe.to_string()]);
    }
    println!("{restarts} daemons were killed; the refused task never started");
    daemon.json(&["forge", "issue", "close", &needed.to_string()]);
    daemon.wait_closed(refused);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}
