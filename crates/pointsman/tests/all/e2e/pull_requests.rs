//! People act on pull requests behind the daemon's back.

use super::{adds, shop};

const SCRIPT: &str = "expect CI passed\nphase awaiting_review\nexpect Merged\nphase done";

#[test]
fn e2e_a_pull_request_closed_by_a_person_blocks_its_task() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{SCRIPT}", adds("apples")));
    let task = daemon.wait_in_review(issue);
    daemon.json(&["forge", "pr", "close", &task["pr"].to_string()]);
    let task = daemon.wait_state(issue, "blocked");
    daemon.wait_settled(issue);
    assert_eq!(task["reason"], "the pull request was closed without a merge");
    assert_eq!(daemon.labels(issue), ["backlog", "blocked"]);
    assert_eq!(daemon.comments(issue).len(), 1);
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.main_log(), ["Open the shop"]);
}

#[test]
fn e2e_a_merge_by_a_person_is_recorded_and_closes_the_issue() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{SCRIPT}", adds("apples")));
    let task = daemon.wait_in_review(issue);
    let url = daemon.json(&["forge", "url"])["url"].as_str().unwrap().to_owned();
    let clone = daemon.path("clone");
    daemon.git_in(&daemon.path("home"), &["clone", "--quiet", &url, &clone.to_string_lossy()]);
    daemon.git_in(
        &clone,
        &["merge", "--quiet", "--no-ff", "--message=Merge by hand", "origin/pointsman/issue-1"],
    );
    daemon.git_in(&clone, &["push", "--quiet", "origin", "main"]);
    daemon.wait_closed(issue);
    let merged = daemon.pull_request(task["pr"].as_u64().unwrap());
    assert_eq!((&merged["state"], &merged["merged"]), (&"closed".into(), &true.into()), "{merged}");
    assert_eq!(daemon.issue(issue)["state"], "closed");
    assert_eq!(daemon.main_log(), ["Merge by hand", "Add apples", "Open the shop"]);
    assert!(daemon.transcript(issue).contains("got: Merged"));
    assert_eq!(daemon.labels(issue), [""; 0]);
}

#[test]
fn e2e_an_issue_closed_by_a_person_ends_its_session_and_keeps_the_work() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt half\nsay at work\nhang");
    daemon.wait_shown(issue, "at work");
    daemon.json(&["forge", "issue", "close", &issue.to_string()]);
    daemon.wait_closed(issue);
    daemon.wait_for("the session to end", || daemon.tmux_sessions().is_empty().then_some(()));
    let rescues = daemon.rescues();
    assert!(rescues.iter().any(|r| r["files"] == serde_json::json!(["src/apples.txt"])), "{rescues:?}");
    assert_eq!(daemon.session(issue)["exit"], "stopped");
    assert_eq!(daemon.labels(issue), [""; 0]);
}

#[test]
fn e2e_what_landed_is_taken_back_through_ci_review_and_queue() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{SCRIPT}", adds("apples")));
    let number = issue.to_string();
    let task = daemon.wait_in_review(issue);
    let early = daemon.run(&["task", "undo", &number]);
    assert_eq!(early.code, Some(3), "{early:?}");
    assert!(early.stderr.contains("nothing has landed for #1"), "{early:?}");
    daemon.json(&["forge", "pr", "review", &task["pr"].to_string(), "--approve"]);
    daemon.wait_closed(issue);

    let undone = daemon.json(&["task", "undo", &number, "--reason", "They are rotten"]);
    let again = daemon.json(&["task", "undo", &number]);
    assert_eq!(again, undone, "a second order finds the open pull request");
    let pr = undone["pr"].to_string();
    let diff = daemon.json(&["forge", "pr", "diff", &pr])["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("-apples"), "{diff}");
    daemon.wait_for("CI of the pull request", || {
        let checks = daemon.json(&["forge", "pr", "checks", &pr]);
        (checks[0]["status"] == "passed").then_some(())
    });
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"], "nothing lands before a person's yes");
    daemon.json(&["forge", "pr", "review", &pr, "--approve"]);
    daemon.wait_for("the revert to land", || {
        (daemon.main_log() == ["Revert \"Apples\" (#1)", "Add apples", "Open the shop"]).then_some(())
    });
    let main = daemon.json(&["forge", "url"])["url"].as_str().unwrap().to_owned();
    let message =
        daemon.git_in(&daemon.path("home"), &["--git-dir", &main, "log", "-1", "--format=%B", "main"]);
    let reverts = format!("This reverts commit {}.", undone["reverts"].as_str().unwrap());
    assert!(message.contains(&reverts) && message.contains("They are rotten"), "{message}");
    daemon.wait_for("the report to count it", || (daemon.json(&["report"])["reverts"] == 1).then_some(()));
    let nothing = daemon.run(&["task", "undo", &number]);
    assert_eq!(nothing.code, Some(3), "{nothing:?}");
    assert!(nothing.stderr.contains("there is nothing left to revert"), "{nothing:?}");
}
