//! Main moves without us, branches vanish, objects break.

use super::{GATE, Rig};
use crate::e2e::shop;

#[test]
fn e2e_queue_a_direct_push_to_main_freezes_the_line_and_is_counted() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    rig.person(&["fetch", "--quiet", "origin"]);
    rig.person(&["checkout", "--quiet", "-B", "wip", "origin/main"]);
    let direct = rig.push_on("main", "src/direct.txt", "past the queue\n");
    let frozen = || Some(rig.json(&["status"])).filter(|status| status["paused"] == true);
    let status = rig.daemon.wait_for("the line to freeze", frozen);
    assert_eq!((&status["frozen_by_audit"], &status["direct_merges_total"]), (&true.into(), &1.into()));
    let reason = status["paused_reason"].as_str().unwrap();
    assert!(reason.contains(&direct[..7]) && reason.contains("by Ann"), "{reason}");
    rig.enter("two");
    rig.restart();
    assert_eq!(rig.entry("two")["status"], "queued");
    rig.json(&["resume"]);
    rig.wait("two", "landed");
    let status = rig.json(&["status"]);
    assert_eq!((&status["paused"], &status["direct_merges_total"]), (&false.into(), &1.into()));
}

#[test]
fn e2e_queue_a_push_to_main_while_a_gate_runs_is_not_run_over() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("one");
    rig.wait_gates(1);
    rig.person(&["checkout", "--quiet", "-B", "wip", "origin/main"]);
    rig.push_on("main", "src/direct.txt", "past the queue\n");
    rig.let_go();
    rig.daemon.wait_for("the line to freeze", || (rig.json(&["status"])["paused"] == true).then_some(()));
    assert_eq!(rig.main_log(), ["Write src/direct.txt for main", "Open the shop"]);
    rig.json(&["resume"]);
    rig.wait("one", "landed");
    assert_eq!(rig.main_log().len(), 3);
    rig.check_main_was_tested();
}

#[test]
fn e2e_queue_a_rewound_main_freezes_the_line() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    let begin = rig.git(&["rev-parse", "main~1"]);
    rig.git(&["update-ref", "refs/heads/main", &begin]);
    let status = rig.daemon.wait_for("the line to freeze", || {
        Some(rig.json(&["status"])).filter(|status| status["frozen_by_audit"] == true)
    });
    assert!(status["paused_reason"].as_str().unwrap().contains("main was rewound or replaced"), "{status:#}");
    assert_eq!(status["direct_merges_total"], 1);
    rig.json(&["resume"]);
    rig.enter("two");
    rig.wait("two", "landed");
    assert_eq!(rig.main_log(), ["Write src/two.txt for two", "Open the shop"]);
}

#[test]
fn e2e_queue_a_persons_merge_of_a_pull_request_is_counted_and_lands_nothing_twice() {
    let daemon = shop().reviewed().start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt apples\ncommit Add apples\npush\nphase awaiting_ci\nexpect CI passed\nphase awaiting_review\nexpect Merged\nphase done");
    let task = daemon.wait_state(issue, "awaiting_review");
    daemon.json(&["merge-queue", "pause"]);
    daemon.approve(issue);
    daemon.wait_state(issue, "merge_queue");
    // On the forge, past us.
    let (head, branch) = (task["head_sha"].as_str().unwrap(), task["branch"].as_str().unwrap());
    assert_eq!(daemon.forge_git(&["rev-parse", branch]), head);
    daemon.forge_git(&["update-ref", "refs/heads/main", head]);
    daemon.wait_closed(issue);
    let status = daemon.wait_for("the merge to be counted", || {
        Some(daemon.json(&["merge-queue", "status"])).filter(|status| status["person_merges_total"] == 1)
    });
    assert_eq!((&status["direct_merges_total"], &status["frozen_by_audit"]), (&0.into(), &false.into()));
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

#[test]
fn e2e_queue_a_branch_that_is_deleted_while_it_waits_is_stale() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("one");
    rig.wait_gates(1);
    rig.enter("two");
    rig.git(&["update-ref", "-d", "refs/heads/two"]);
    rig.enter("three");
    // Before its turn comes: until the queue looks again, what it saw before counts.
    let entry = rig.wait("two", "stale");
    rig.let_go();
    assert_eq!(entry["reason"], "two was deleted while it waited");
    rig.wait("three", "landed");
    assert_eq!(rig.main_log().len(), 3);
}

#[test]
fn e2e_queue_work_that_comes_while_a_branch_lands_is_not_deleted() {
    let rig = Rig::start(&["--style", "merge"]);
    rig.hold();
    rig.enter("one");
    rig.wait_gates(1);
    // The gate of this head is at its end when the branch moves on.
    rig.push_on("one", "src/later.txt", "later\n");
    let later = rig.git(&["rev-parse", "one"]);
    rig.let_go();
    rig.daemon.wait_for("the entry to be over", || {
        (!["queued", "building", "testing"].iter().any(|s| rig.entry("one")["status"] == *s)).then_some(())
    });
    assert_eq!(rig.git(&["rev-parse", "one"]), later, "{:#}", rig.entry("one"));
}

#[test]
fn e2e_queue_a_branch_with_a_broken_object_holds_up_nobody() {
    // Nobody but `add` asks for the branches.
    let rig = Rig::new(GATE, &["--poll", "1h"]);
    rig.serve();
    // The first look at main is over: it asks as well.
    rig.daemon.wait_for("main to be known", || rig.json(&["status"])["main_sha"].is_string().then_some(()));
    rig.push("torn", "src/torn.txt", "this one gets lost\n");
    let blob = rig.git(&["rev-parse", "torn:src/torn.txt"]);
    let file = format!("{}/objects/{}/{}", rig.repo, &blob[..2], &blob[2..]);
    std::fs::remove_file(&file).unwrap_or_else(|e| panic!("{file}: {e}"));
    let added = rig.mq(&["add", "torn"]);
    assert_eq!(added.code, Some(7), "{added:#?}");
    rig.git(&["update-ref", "-d", "refs/heads/torn"]);
    rig.enter("two");
    rig.wait("two", "landed");
}

/// The mirror itself loses an object: one branch cannot be built, the others can.
#[test]
fn e2e_queue_a_broken_object_in_the_mirror_takes_out_its_branch_alone() {
    let rig = Rig::start(&["--poll", "1h"]);
    rig.hold();
    rig.enter("one");
    rig.wait_gates(1);
    rig.push("torn", "src/lemons.txt", "lemons 9 crowns\n");
    let blob = rig.git(&["rev-parse", "torn:src/lemons.txt"]);
    rig.json(&["pause"]);
    rig.add("torn");
    rig.enter("two");
    rig.daemon.stop_daemon();
    let served = std::fs::read_dir(rig.daemon.state().join("serve")).unwrap().next().unwrap().unwrap().path();
    let mirror = served.join("projects/line/mirror.git");
    let file = mirror.join(format!("objects/{}/{}", &blob[..2], &blob[2..]));
    std::fs::remove_file(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    rig.let_go();
    rig.serve();
    rig.json(&["resume"]);
    rig.wait("one", "landed");
    rig.wait("two", "landed");
    let torn = rig.wait("torn", "stale");
    assert!(!torn["reason"].as_str().unwrap().is_empty(), "{torn:#}");
    assert_eq!(rig.main_log().len(), 3);
}
