//! The straight way, and what is left of it in the end: nothing but the work.

use super::{adds, clean, shop};

#[test]
fn e2e_a_clean_task_lands_and_leaves_nothing_behind() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue(
        "Add apples",
        &format!(
            "summary Apples are 3 crowns.\n{}\nexpect CI passed\nphase awaiting_review\nexpect Approved\n\
             expect Merged\nphase done",
            adds("apples")
        ),
    );
    let task = daemon.wait_in_review(issue);
    assert_eq!(daemon.labels(issue), ["in-progress"]);
    let pr = task["pr"].as_u64().unwrap();
    let request = daemon.pull_request(pr);
    assert_eq!((&request["head"], &request["base"]), (&task["branch"], &"main".into()));
    assert_eq!(request["head_sha"], task["head_sha"]);
    assert!(request["body"].as_str().unwrap().contains("Apples are 3 crowns."), "{request}");
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    assert!(daemon.phase_files().contains(&"dev-session-shop-1.phase".to_owned()));
    daemon.approve(issue);

    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert_eq!(daemon.on_main("src/apples.txt").unwrap(), "apples 3 crowns");
    let closed = daemon.issue(issue);
    assert_eq!((&closed["state"], &closed["labels"]), (&"closed".into(), &serde_json::json!([])));
    assert_eq!(closed["comments"], serde_json::json!([]), "nobody needed to be told anything");
    let request = daemon.pull_request(pr);
    assert_eq!((&request["state"], &request["merged"]), (&"closed".into(), &true.into()));
    assert_eq!(daemon.task(issue)["merged_as"], daemon.forge_git(&["rev-parse", "main"]).as_str());
    assert_eq!(
        daemon.states(issue),
        ["backlog", "working", "awaiting_ci", "awaiting_review", "merge_queue", "merged", "closed"]
    );

    let session = daemon.session(issue);
    assert_eq!((&session["session"], &session["exit"]), (&"dev-shop-1.1".into(), &"done".into()));
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.phase_files(), [""; 0]);
    assert!(!daemon.tree(issue).exists());
    assert!(daemon.transcript(issue).contains("got: Merged"), "{}", daemon.transcript(issue));
    assert_eq!(daemon.rescues(), [serde_json::Value::Null; 0], "everything is on the main branch");
    let branches = daemon.forge_git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(branches, "refs/heads/main");
    // A person who is slow is told that a review waits, and nothing else.
    let review = |notice: &serde_json::Value| notice["title"] == "shop: a pull request waits for a review";
    assert!(daemon.notices().iter().all(review), "{:?}", daemon.notices());
}

#[test]
fn e2e_what_was_not_committed_is_rescued_before_the_tree_goes() {
    let daemon = shop().start();
    let issue =
        daemon.file_issue("Add pears", &clean("pears").replace("push", "push\nwrite notes.txt keep me"));
    daemon.wait_closed(issue);
    assert!(!daemon.tree(issue).exists());
    let rescues = daemon.rescues();
    let last = rescues.last().expect("the file is kept");
    assert_eq!(last["files"], serde_json::json!(["notes.txt"]), "{rescues:?}");
    let kept = last["ref"].as_str().unwrap();
    let captures = daemon.state().join("projects/shop/captures.git");
    assert_eq!(daemon.git_in(&captures, &["show", &format!("{kept}:notes.txt")]), "keep me");
    assert_eq!(daemon.on_main("notes.txt"), None);
}
