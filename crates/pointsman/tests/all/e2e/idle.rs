//! An agent that went back to its prompt, and one that only looks so.

use super::shop;

#[test]
fn e2e_an_agent_back_at_its_prompt_is_ended_and_a_busy_one_is_not() {
    let daemon = shop().set("dev.concurrency", "2").set("timing.idle_look", "\"150ms\"").start();
    let idle = daemon.file_issue("Idle", "say nothing to do\nidle");
    let busy = daemon.file_issue("Busy", "say hard at work\nhang");
    let task = daemon.wait_state(idle, "blocked");
    daemon.wait_settled(idle);
    assert!(task["reason"].as_str().unwrap().starts_with("idle_prompt: "), "{task}");
    assert_eq!(daemon.session(idle)["exit"], "idle_prompt");
    assert_eq!(daemon.labels(idle), ["backlog", "blocked"]);
    let comments = daemon.comments(idle);
    assert!(comments.len() == 1 && comments[0].contains("• at the prompt"), "{comments:?}");
    assert_eq!(daemon.tmux_sessions(), ["dev-shop-2"]);
    assert_eq!(daemon.phase_files().iter().filter(|name| name.contains("shop-1")).count(), 0);

    // It was looked at as often.
    let task = daemon.task(busy);
    assert_eq!((&task["state"], &task["reason"]), (&"working".into(), &serde_json::Value::Null));
    assert!(daemon.session(busy)["ended_at"].is_null());
}

#[test]
fn e2e_an_agent_that_waits_for_an_answer_is_not_idle() {
    let daemon = shop().set("dev.concurrency", "2").set("timing.idle_look", "\"100ms\"").start();
    let issue = daemon.file_issue("Asks", "phase escalate really?\nexpect Answer\nphase failed no use");
    daemon.wait_state(issue, "escalated");
    let pid = daemon.session_pid(issue);
    // Meanwhile another one is looked at often enough.
    let other = daemon.file_issue("Idle", "idle");
    daemon.wait_state(other, "blocked");
    assert_eq!(daemon.task(issue)["state"], "escalated");
    daemon.answer(issue, "Really.");
    let task = daemon.wait_state(issue, "blocked");
    assert!(task["reason"].as_str().unwrap().contains("no use"), "{task}");
    assert_eq!(daemon.session(issue)["pid"], pid);
}

#[test]
fn e2e_an_agent_at_whose_terminal_a_person_typed_is_not_idle() {
    let daemon = shop()
        .set("dev.concurrency", "2")
        .set("timing.idle_look", "\"150ms\"")
        // It waits for its prompt: the looks begin when the person is there.
        .set("limits.idle_looks", "20")
        .start();
    let helped = daemon.file_issue("Helped", "say look over my shoulder\nidle");
    daemon.wait_session(helped, 1);
    let mut person = daemon.attach(helped);
    // Another one, looked at as often, begins later and is given up.
    let other = daemon.file_issue("Idle", "idle");
    daemon.wait_state(other, "blocked");
    assert_eq!(daemon.task(helped)["state"], "working", "{}", daemon.task(helped));
    assert!(daemon.session(helped)["ended_at"].is_null());
    person.kill().unwrap();
    person.wait().unwrap();
}
