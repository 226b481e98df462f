//! Trouble outside parks the work and costs no attempt.

use super::{clean, shop};

#[test]
fn e2e_trouble_a_rate_limit_parks_the_session_until_its_reset() {
    let daemon = shop().start();
    let script = format!(
        "write src/draft.txt draft\nphase failed api_error: rate_limit retry after 5s\nexpect Answer\n{}",
        clean("apples")
    );
    let issue = daemon.file_issue("Apples", &script);
    let parked = daemon.wait_until(issue, "parked", |t| t["phase"] == "failed" && t["reason"].is_string());
    assert_eq!(parked["state"], "working", "{parked}");
    assert!(parked["reason"].as_str().unwrap().contains("rate limit"), "{parked}");
    let pid = daemon.session_pid(issue);
    daemon.wait_closed(issue);
    let task = daemon.task(issue);
    for (attempt, count) in task["attempts"].as_object().unwrap() {
        assert_eq!(count, 0, "{attempt}: {task}");
    }
    let sessions = daemon.sessions(issue);
    assert_eq!((sessions.len(), &sessions[0]["pid"]), (1, &pid.into()));
    assert_eq!(daemon.comments(issue), [""; 0]);
}

#[test]
fn e2e_trouble_the_wait_goes_on_over_a_restart_of_the_daemon() {
    let daemon = shop().start();
    let script =
        format!("phase failed api_error: rate_limit retry after 2s\nexpect Answer\n{}", clean("apples"));
    let issue = daemon.file_issue("Apples", &script);
    daemon.wait_until(issue, "parked", |t| t["phase"] == "failed");
    daemon.restart();
    daemon.wait_closed(issue);
    assert_eq!(daemon.sessions(issue).len(), 1);
}
