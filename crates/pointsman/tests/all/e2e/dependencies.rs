//! What must be done first is done first, one at a time.

use super::{clean, shop};

#[test]
fn e2e_a_chain_is_worked_off_in_order_one_at_a_time() {
    let daemon = shop().unset("dev.concurrency").build();
    let body = |fruit: &str, depends: &str| {
        format!("{depends}\n```text\nrehearsal:begin\n{}\nrehearsal:end\n```\n", clean(fruit))
    };
    // Filed against the order, and before the daemon runs.
    let last = daemon.file_issue_with("Third", &body("third", "## Dependencies\n- #2\n"));
    let middle = daemon.file_issue_with("Second", &body("second", "Depends on #3."));
    let first = daemon.file_issue_with("First", &body("first", "## Related\n- #1\n"));
    assert_eq!((last, middle, first), (1, 2, 3));
    daemon.start();
    daemon.wait_until(last, "it waits", |task| task["state"] == "waiting_dependencies");
    assert!(daemon.task(last)["waiting_for"].as_str().unwrap().contains("#2"));
    for issue in [first, middle, last] {
        daemon.wait_closed(issue);
    }
    assert_eq!(daemon.main_log(), ["Add third", "Add second", "Add first", "Open the shop"]);
    // One at a time: each began after the one before had ended.
    let span = |issue| {
        let session = daemon.session(issue);
        (session["created_at"].as_str().unwrap().to_owned(), session["ended_at"].as_str().unwrap().to_owned())
    };
    assert!(span(first).1 <= span(middle).0 && span(middle).1 <= span(last).0);
}

#[test]
fn e2e_independent_tasks_wait_for_a_free_place() {
    let daemon = shop().start();
    let first = daemon.file_issue("First", "phase escalate wait\nexpect Answer\nphase failed enough");
    daemon.wait_state(first, "escalated");
    let second = daemon.file_issue("Second", &clean("second"));
    let task = daemon.wait_state(second, "backlog");
    assert_eq!(task["waiting_for"], "a free slot (dev.concurrency)");
    assert_eq!(daemon.tmux_sessions(), ["dev-shop-1"]);
    daemon.answer(first, "Go.");
    daemon.wait_state(first, "blocked");
    daemon.wait_closed(second);
}

#[test]
fn e2e_a_cycle_is_shown_and_never_started() {
    let daemon = shop().start();
    let first = daemon.file_issue_with("First", "Depends on #2.");
    let second = daemon.file_issue_with("Second", "Blocked by #1.");
    for issue in [first, second] {
        let task = daemon.wait_until(issue, "the cycle is seen", |task| {
            task["reason"].as_str().is_some_and(|reason| reason.contains("circular dependency"))
        });
        assert_eq!(task["state"], "waiting_dependencies");
        assert_eq!(daemon.labels(issue), ["backlog"]);
    }
    let third = daemon.file_issue("Third", &clean("third"));
    daemon.wait_closed(third);
    assert!(daemon.sessions(first).is_empty() && daemon.sessions(second).is_empty());
}

#[test]
fn e2e_an_issue_that_an_open_pull_request_closes_is_waited_for_and_taken_up_when_that_is_closed() {
    let daemon = shop().start();
    let checkout = daemon.checkout();
    daemon.git_in(&checkout, &["switch", "-q", "-c", "mine"]);
    daemon.git_in(&checkout, &["commit", "-q", "--allow-empty", "-m", "Mine"]);
    let forge = daemon.state().join("projects/shop/forge.git");
    daemon.git_in(&checkout, &["push", "-q", forge.to_str().unwrap(), "mine"]);
    let create = ["forge", "pr", "create", "--head", "mine", "--title", "Mine", "--body", "Closes #2"];
    let pr = daemon.json(&create)["number"].as_u64().unwrap();
    let issue = daemon.file_issue("First", &clean("first"));
    assert_eq!((pr, issue), (1, 2));
    let task = daemon.wait_state(issue, "waiting_dependencies");
    assert!(task["waiting_for"].as_str().unwrap().contains(&format!("#{pr}")), "{task}");
    assert!(daemon.sessions(issue).is_empty(), "no session was spent");
    daemon.run(&["forge", "pr", "close", &pr.to_string()]);
    daemon.wait_closed(issue);
}
