//! A person is asked, and answers or does not.

use super::{LAND, adds, shop};

fn asks(phase: &str) -> String {
    format!("phase {phase} Which apples?\nexpect Answer\n{}\n{LAND}", adds("apples"))
}

#[test]
fn e2e_a_question_reaches_people_again_and_again_until_it_is_answered() {
    let daemon = shop().set("timing.escalation_renotify", "\"300ms\"").start();
    let issue = daemon.file_issue("Apples", &asks("escalate"));
    let task = daemon.wait_state(issue, "escalated");
    assert_eq!(task["reason"], "Which apples?");
    let marker = "dev-renotify-shop-1".to_owned();
    daemon.wait_for("the question to be asked again", || {
        (daemon.notices().iter().any(|n| n["repeat"] == 1) && daemon.phase_files().contains(&marker))
            .then_some(())
    });
    let notices = daemon.notices();
    assert_eq!((&notices[0]["issue"], &notices[0]["urgent"]), (&issue.into(), &true.into()));
    assert_eq!(notices[0]["link"], "pointsman forge issue show 1");
    assert!(notices[0]["body"].as_str().unwrap().contains("Why: Which apples?"), "{notices:?}");
    let session = daemon.session(issue);
    assert!(session["ended_at"].is_null(), "the session stays alive: {session}");

    daemon.answer(issue, "The red ones, $(id).");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    let comments = daemon.comments(issue);
    assert_eq!(comments.len(), 1, "asked once on the issue: {comments:?}");
    let inbox = daemon.session_files(issue).join("inbox-1");
    let told = std::fs::read_dir(inbox).unwrap().map(|e| e.unwrap().path());
    let told = told.into_iter().find(|p| p.to_string_lossy().contains("answer")).expect("a message");
    assert!(std::fs::read_to_string(told).unwrap().contains("The red ones, $(id)."));
    assert_eq!(daemon.phase_files(), [""; 0], "the marker goes with the task");
    assert_eq!(daemon.run(&["task", "answer", "1", "late"]).code, Some(3));
}

#[test]
fn e2e_a_comment_on_the_issue_is_an_answer_and_ours_is_not() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", &asks("needs_human"));
    daemon.wait_state(issue, "escalated");
    daemon.wait_for("the question to be on the issue", || (daemon.comments(issue).len() == 1).then_some(()));
    daemon.json(&["forge", "issue", "comment", &issue.to_string(), "--body", "The green ones."]);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    let answers = daemon.events(issue).into_iter().filter(|e| e["kind"] == "answered").collect::<Vec<_>>();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["data"]["by"], crate::login());
}

#[test]
fn e2e_nobody_answers_so_the_task_is_blocked_and_its_session_ended() {
    let daemon = shop().set("timing.escalation_timeout", "\"400ms\"").start();
    let issue = daemon.file_issue("Apples", &asks("escalate"));
    let task = daemon.wait_state(issue, "blocked");
    daemon.wait_settled(issue);
    assert_eq!(task["reason"], "nobody answered within 400ms: Which apples?");
    assert_eq!(daemon.labels(issue), ["backlog", "blocked"]);
    assert_eq!(daemon.session(issue)["exit"], "escalation_timeout");
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.phase_files(), [""; 0]);
}
