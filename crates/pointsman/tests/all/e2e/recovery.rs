//! Sessions die; their work and their place in the story do not.

use super::{LAND, adds, clean, shop};

#[test]
fn e2e_a_session_killed_while_working_is_replaced_with_its_work_intact() {
    let daemon = shop().start();
    let script =
        format!("write src/apples.txt half done\nsay waiting to be killed\nhang\n{}", clean("apples"));
    let issue = daemon.file_issue("Apples", &script);
    daemon.wait_shown(issue, "waiting to be killed");
    let first = daemon.session_pid(issue);
    daemon.kill_session(issue);
    daemon.wait_session(issue, 2);
    assert_ne!(daemon.session_pid(issue), first);
    let sessions = daemon.sessions(issue);
    assert_eq!(
        (&sessions[0]["exit"], &sessions[1]["predecessor"]),
        (&"crashed".into(), &"dev-shop-1.1".into())
    );
    assert_eq!(std::fs::read_to_string(daemon.tree(issue).join("src/apples.txt")).unwrap(), "half done\n");
    let prompt = daemon.prompt(issue, 2);
    for part in [
        "You are a continuation of dev-shop-1.1",
        "last known phase: none",
        "the task is: working",
        "src/apples.txt | 1 +",
        "rehearsal:begin",
    ] {
        assert!(prompt.contains(part), "no {part:?} in\n{prompt}");
    }
    assert_eq!(daemon.labels(issue), ["in-progress"]);
    assert_eq!(daemon.task(issue)["attempts"]["restarts"], 1);
}

#[test]
fn e2e_a_session_killed_while_ci_runs_hears_the_result_in_its_next_life() {
    let ci =
        "#!/bin/sh\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\ngrep -rn BUG src && exit 1\nexit 0\n";
    let daemon = shop().file("ci.sh", ci).build();
    std::fs::write(daemon.path("home/hold"), "").unwrap();
    daemon.start();
    let issue = daemon.file_issue(
        "Pears",
        &format!(
            "write src/pears.txt BUG\ncommit Add pears\npush\nphase awaiting_ci\nexpect CI failed\nwrite \
             src/pears.txt pears\ncommit Fix pears\npush\nphase awaiting_ci\n{LAND}"
        ),
    );
    daemon.wait_until(issue, "CI runs", |task| task["ci"] == "pending");
    daemon.kill_session(issue);
    daemon.wait_session(issue, 2);
    assert_eq!(daemon.task(issue)["state"], "awaiting_ci", "CI goes on");
    let prompt = daemon.prompt(issue, 2);
    assert!(prompt.contains("last known phase: awaiting_ci") && prompt.contains("Add pears"), "{prompt}");
    std::fs::remove_file(daemon.path("home/hold")).unwrap();
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Fix pears", "Add pears", "Open the shop"]);
    assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 1);
    assert_eq!(daemon.pull_requests().len(), 1);
}

#[test]
fn e2e_a_session_killed_while_under_review_is_told_ci_and_review_again() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue(
        "Plums",
        &format!(
            "{}\nexpect CI passed\nphase awaiting_review\nexpect Changes requested\nsay thinking\nhang\nwrite \
             src/plums.txt ripe\ncommit Ripen\npush\nphase awaiting_review\nexpect CI passed\n{LAND}",
            adds("plums")
        ),
    );
    daemon.wait_until(issue, "under review", |t| {
        t["state"] == "awaiting_review" && t["phase"] == "awaiting_review"
    });
    daemon.kill_session(issue);
    daemon.wait_session(issue, 2);
    assert_eq!(daemon.task(issue)["state"], "awaiting_review");
    let prompt = daemon.prompt(issue, 2);
    for part in ["last known phase: awaiting_review", "## Last CI result", "CI passed on", "pull request: #2"]
    {
        assert!(prompt.contains(part), "no {part:?} in\n{prompt}");
    }
    daemon.request_changes(issue, "Not ripe enough.");
    daemon.wait_shown(issue, "thinking");
    daemon.kill_session(issue);
    daemon.wait_session(issue, 3);
    let prompt = daemon.prompt(issue, 3);
    assert!(prompt.contains("## Review") && prompt.contains("Not ripe enough."), "{prompt}");
}

#[test]
fn e2e_when_the_tmux_server_dies_every_session_comes_back_and_nothing_is_lost() {
    let daemon = shop().set("dev.concurrency", "3").start();
    let fruits = ["apples", "pears", "plums"];
    let issues = fruits.map(|fruit| {
        let script = format!(
            "write src/{fruit}.txt draft\nphase escalate which {fruit}?\nexpect Answer\nwrite src/{fruit}.txt \
             {fruit}\ncommit Add {fruit}\npush\nphase awaiting_ci\n{LAND}"
        );
        daemon.file_issue(fruit, &script)
    });
    for issue in issues {
        daemon.wait_state(issue, "escalated");
    }
    daemon.kill_tmux();
    for (issue, fruit) in issues.into_iter().zip(fruits) {
        daemon.wait_until(issue, "its session ended", |task| task["session"].is_null());
        let draft = daemon.tree(issue).join(format!("src/{fruit}.txt"));
        assert_eq!(std::fs::read_to_string(draft).unwrap(), "draft\n");
        daemon.answer(issue, "The green ones.");
    }
    for (issue, fruit) in issues.into_iter().zip(fruits) {
        daemon.wait_closed(issue);
        assert_eq!(daemon.on_main(&format!("src/{fruit}.txt")).unwrap(), fruit);
        assert_eq!(daemon.sessions(issue).len(), 2);
    }
    assert_eq!(daemon.main_log().len(), 4);
    assert!(!daemon.has_ended());
}

#[test]
fn e2e_working_sessions_come_back_by_themselves_when_the_tmux_server_dies() {
    let daemon = shop().set("dev.concurrency", "3").start();
    let issues = ["apples", "pears", "plums"].map(|fruit| {
        daemon.file_issue(fruit, &format!("write draft-{fruit}.txt {fruit}\nsay at work\nhang"))
    });
    for issue in issues {
        daemon.wait_shown(issue, "at work");
    }
    daemon.kill_tmux();
    for issue in issues {
        daemon.wait_session(issue, 2);
        assert_eq!(daemon.task(issue)["state"], "working");
        assert!(daemon.prompt(issue, 2).contains("draft-"), "{}", daemon.prompt(issue, 2));
    }
    assert_eq!(daemon.tmux_sessions().len(), 3);
    // The breaker looked whether it can see anything at all, and then believed it.
    daemon.wait_for("the breaker's word", || daemon.log_lines("most sessions died at once"));
}

#[test]
fn e2e_a_crash_loop_is_broken_and_told() {
    let daemon = shop()
        .set("limits.restarts", "2")
        .agent("echo 'this agent is broken'\nread -r prompt\nexit 3\n")
        .start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    daemon.wait_state(issue, "blocked");
    daemon.wait_settled(issue);
    let task = daemon.task(issue);
    assert!(task["reason"].as_str().unwrap().contains("the session died again after 2 restarts"), "{task}");
    assert_eq!(daemon.sessions(issue).len(), 3);
    assert_eq!(daemon.labels(issue), ["backlog", "blocked"]);
    let comments = daemon.comments(issue);
    assert_eq!(comments.len(), 1, "{comments:?}");
    assert!(comments[0].contains("this agent is broken"), "{}", comments[0]);
}
