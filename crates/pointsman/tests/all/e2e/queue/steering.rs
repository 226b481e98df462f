//! People steer the line: order, pause, removal, working on it now, looking at it.

use serde_json::{Value, json};

use super::Rig;
use crate::e2e::shop;

fn branches(entries: &Value) -> Vec<&str> {
    entries.as_array().unwrap().iter().filter_map(|entry| entry["branch"].as_str()).collect()
}

#[test]
fn e2e_queue_a_paused_line_lands_nothing_until_it_goes_on() {
    let rig = Rig::start(&[]);
    rig.json(&["pause", "--reason", "release day"]);
    rig.enter("one");
    let status = rig.json(&["status"]);
    assert_eq!((&status["paused"], &status["paused_reason"]), (&true.into(), &"release day".into()));
    assert_eq!(status["frozen_by_audit"], false);
    // A restart changes nothing about it.
    rig.restart();
    assert_eq!(rig.json(&["status"])["paused"], true);
    assert_eq!(rig.gates(), [""; 0]);
    let process = rig.mq(&["process"]);
    assert_eq!(process.code, Some(3), "{process:#?}");
    assert_eq!(rig.json(&["resume"])["was_paused"], true);
    rig.wait("one", "landed");
    assert_eq!(rig.json(&["resume"])["was_paused"], false);
}

#[test]
fn e2e_queue_a_pause_while_a_gate_runs_keeps_its_verdict() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("one");
    rig.wait_gates(1);
    rig.json(&["pause"]);
    rig.let_go();
    let pace = || rig.json(&["status"])["gate_seconds"].as_f64();
    rig.daemon.wait_for("the verdict to be written", pace);
    assert_eq!(rig.main_log(), ["Open the shop"]);
    rig.json(&["resume"]);
    rig.wait("one", "landed");
    assert_eq!(rig.gates().len(), 1);
}

#[test]
fn e2e_queue_one_that_is_taken_out_while_it_is_tested_does_not_land() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("one");
    rig.enter("two");
    rig.wait_gates(1);
    rig.json(&["remove", "one"]);
    rig.wait("one", "removed");
    rig.let_go();
    rig.wait("two", "landed");
    assert_eq!(rig.entry("one")["reason"], format!("removed by {}", crate::login()));
    assert_eq!(rig.main_log(), ["Write src/two.txt for two", "Open the shop"]);
    assert_eq!(rig.branches(), ["main", "one"]);
    assert_eq!(rig.mq(&["remove", "one"]).code, Some(4));
}

#[test]
fn e2e_queue_urgent_ones_go_first_but_not_ahead_of_what_is_tested() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("one");
    rig.wait_gates(1);
    rig.enter("two");
    rig.push("three", "src/three.txt", "three\n");
    let entry = rig.json(&["add", "three", "--priority", "5"]);
    assert_eq!((&entry["position"], &entry["priority"]), (&2.into(), &5.into()));
    assert_eq!(branches(&rig.json(&["list"])), ["one", "three", "two"]);
    rig.let_go();
    for name in ["one", "two", "three"] {
        rig.wait(name, "landed");
    }
    let log: Vec<String> = rig.main_log().iter().map(|s| s.rsplit(' ').next().unwrap().to_owned()).collect();
    assert_eq!(log, ["two", "three", "one", "shop"]);
}

#[test]
fn e2e_queue_process_works_with_and_without_a_daemon() {
    let rig = Rig::start(&[]);
    rig.json(&["pause"]);
    rig.enter("one");
    rig.push("bad", "src/bad.txt", "BUG\n");
    rig.add("bad");
    rig.json(&["resume"]);
    let over = rig.mq(&["process", "--all"]);
    assert_eq!(over.code, Some(1), "one of them is red: {over:#?}");
    rig.daemon.stop_daemon();

    // Alone: the command does all of it.
    rig.enter("two");
    assert_eq!(rig.entry("two")["status"], "queued");
    let done = rig.json(&["process"]);
    assert_eq!((&done[0]["branch"], &done[0]["status"]), (&"two".into(), &"landed".into()));
    assert_eq!(rig.main_log().len(), 3);
    let empty = rig.mq(&["process"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
}

#[test]
fn e2e_queue_the_chain_is_drawn_and_told() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    rig.push("same", "src/one.txt", "another price\n");
    rig.add("same");
    rig.wait("same", "conflict");
    rig.hold();
    rig.enter("two");
    rig.enter("three");
    rig.wait_gates(2);
    rig.wait("two", "testing");
    let picture = rig.mq(&["status"]).stdout;
    let two = rig.entry("two");
    let short = |key: &str| two[key].as_str().unwrap()[..10].to_owned();
    assert!(picture.contains(&format!("{} on {}", short("candidate_sha"), short("base_sha"))), "{picture}");
    for words in ["two  testing", "three  queued", "same  conflict  src/one.txt", "1 landed"] {
        assert!(picture.contains(words), "{words:?} is not in\n{picture}");
    }
    let status = rig.json(&["status"]);
    assert_eq!((&status["length"], &status["landed"]), (&2.into(), &1.into()));
    assert_eq!(status["current"]["branch"], "two");
    assert_eq!(status["main_sha"], rig.git(&["rev-parse", "main"]));
    rig.let_go();
    rig.wait("three", "landed");
}

#[test]
fn e2e_queue_json_has_the_fields_that_scripts_rely_on() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.push("one", "src/one.txt", "one\n");
    let added = rig.add("one");
    rig.wait("one", "testing");
    let (list, history, status) = (rig.json(&["list"]), rig.json(&["history"]), rig.json(&["status"]));
    let fields = [
        "position",
        "entry",
        "branch",
        "pr_number",
        "issue",
        "identity_name",
        "status",
        "base_sha",
        "candidate_sha",
        "conflict_files",
        "requested_at",
        "landed_at",
        "reason",
    ];
    for value in [&added, &list[0], &history[0], &status["entries"][0], &status["current"]] {
        for field in fields {
            assert!(value.get(field).is_some(), "{field} is not in {value:#}");
        }
        assert_eq!((&value["position"], &value["branch"]), (&1.into(), &"one".into()));
        assert_eq!(value["identity_name"], crate::login());
        assert!(value["requested_at"].as_str().unwrap().ends_with('Z'), "{value:#}");
    }
    rig.let_go();
    let landed = rig.wait("one", "landed");
    assert_eq!(landed["position"], Value::Null);
    assert_eq!(landed["candidate_sha"], rig.git(&["rev-parse", "main"]));
    assert_eq!(landed["base_sha"], rig.git(&["rev-parse", "main~1"]));
    assert_eq!(landed["conflict_files"], json!([]));
    assert!(landed["landed_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(rig.json(&["list"]), json!([]));
}

/// R3.1: the file in the checkout is the line, in order.
#[test]
fn e2e_queue_r3_1_the_line_is_a_file_in_the_checkout() {
    let gate = "#!/bin/sh\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";
    let daemon = shop().file("gate.sh", gate).set("merge.gate", "[\"./gate.sh\"]").build();
    std::fs::write(daemon.path("home/hold"), "").unwrap();
    daemon.start();
    let checkout = daemon.checkout();
    for (name, priority) in [("one", "0"), ("two", "0"), ("three", "1")] {
        daemon.git_in(&checkout, &["switch", "--quiet", "--create", name, "main"]);
        std::fs::write(checkout.join(format!("src/{name}.txt")), name).unwrap();
        daemon.git_in(&checkout, &["add", "src"]);
        daemon.git_in(&checkout, &["commit", "--quiet", "--message", name]);
        daemon.json(&["merge-queue", "add", name, "--priority", priority]);
        let testing = || (daemon.json(&["merge-queue", "list"])[0]["status"] == "testing").then_some(());
        daemon.wait_for("the first one to be tested", testing);
    }
    let file = checkout.join(".claude/state/merge-queue.json");
    let read = || -> Option<Value> { serde_json::from_slice(&std::fs::read(&file).ok()?).ok() };
    let line = daemon.wait_for("the file to tell the line", || {
        read().filter(|line| branches(line) == ["one", "three", "two"])
    });
    for field in [
        "identity_name",
        "branch",
        "worktree_path",
        "pr_number",
        "bead_id",
        "node_id",
        "requested_at",
        "status",
    ] {
        assert!(line[0].get(field).is_some(), "{field} is not in {line:#}");
    }
    std::fs::remove_file(daemon.path("home/hold")).unwrap();
    daemon.wait_for("the file to be empty", || read().filter(|line| *line == json!([])));
    assert_eq!(daemon.main_log(), ["two", "three", "one", "Open the shop"]);
    let status = daemon.git_in(&checkout, &["status", "--porcelain"]);
    assert!(!status.contains(".claude"), "the checkout is not made dirty by it: {status}");
}
