//! An agent turns a task down.

use super::{clean, shop};

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
