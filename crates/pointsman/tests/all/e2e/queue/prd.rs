//! Requirements R3.1 to R3.6 and acceptance criteria AC-3.1 to AC-3.5 of the PRD, each by its number. R3.1 is in
//! `steering`, the conflict that an agent resolves (R3.6, AC-3.3) in `e2e/conflict.rs`.

use serde_json::Value;

use super::Rig;
use crate::e2e::{LAND, adds, shop};

fn signals(daemon: &pointsman_testkit::TestDaemon) -> Vec<Value> {
    let answer = daemon.run(&["signals", "--json", "--since", "0"]);
    answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// R3.2: MERGE_READY comes after the work was validated: green, and approved.
#[test]
fn e2e_queue_r3_2_merge_ready_follows_validation() {
    let daemon = shop().reviewed().start();
    let script = format!("{}\nexpect CI passed\nphase awaiting_review\n{LAND}", adds("apples"));
    let issue = daemon.file_issue("Apples", &script);
    daemon.wait_state(issue, "awaiting_review");
    let kinds = || -> Vec<String> {
        let signals = signals(&daemon);
        signals
            .iter()
            .map(|s| s["kind"].as_str().unwrap().to_owned())
            .filter(|k| k.starts_with("MERGE"))
            .collect()
    };
    assert_eq!(kinds(), [""; 0], "green alone is not enough");
    daemon.approve(issue);
    daemon.wait_closed(issue);
    assert_eq!(kinds(), ["MERGE_READY", "MERGE_COMPLETE"]);
}

/// R3.3 a to d, AC-3.2: rebased, tested as it will be, merged, the branch deleted.
#[test]
fn e2e_queue_r3_3_ac_3_2_a_clean_branch_is_rebased_tested_merged_and_deleted() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    let before = rig.git(&["rev-parse", "main"]);
    let head = rig.push("two", "src/two.txt", "two\n");
    rig.add("two");
    let entry = rig.wait("two", "landed");
    assert_eq!(rig.git(&["rev-parse", "main~1"]), before, "on top of what was there");
    assert_ne!(rig.git(&["rev-parse", "main"]), head, "it left from an older main");
    assert_eq!(entry["candidate_sha"], rig.git(&["rev-parse", "main"]));
    assert_eq!(rig.gates().last().unwrap(), &rig.git(&["rev-parse", "main^{tree}"]));
    assert_eq!(rig.branches(), ["main"]);
}

/// R3.3 e, AC-3.3: the files in conflict are named, and the branch that was first.
#[test]
fn e2e_queue_r3_3_ac_3_3_a_conflict_names_its_files() {
    let rig = Rig::start(&[]);
    rig.push("one", "src/lemons.txt", "lemons 2 crowns\n");
    rig.add("one");
    rig.wait("one", "landed");
    rig.push("two", "src/lemons.txt", "lemons 3 crowns\n");
    rig.push_on("two", "src/fine.txt", "no conflict here\n");
    rig.add("two");
    let entry = rig.wait("two", "conflict");
    assert_eq!(entry["conflict_files"], serde_json::json!(["src/lemons.txt"]));
    assert_eq!(entry["conflicts_with"], "one");
    assert_eq!(entry["reason"], "conflicts with one");
    assert_eq!(rig.gates().len(), 1, "what does not apply is not tested");
    assert_eq!(rig.git(&["show", "main:src/lemons.txt"]), "lemons 2 crowns", "no side was chosen");
    assert_eq!(rig.branches(), ["main", "two"]);
}

/// R3.4: list, add, process, status.
#[test]
fn e2e_queue_r3_4_list_add_process_and_status() {
    let rig = Rig::start(&[]);
    rig.json(&["pause"]);
    rig.push("one", "src/one.txt", "one\n");
    assert_eq!(rig.mq(&["add", "one"]).stdout, "Entry 1, number 1 in the merge queue.\n");
    assert!(rig.mq(&["list"]).stdout.contains("queued"));
    assert!(rig.mq(&["status"]).stdout.contains("paused by a person"));
    rig.json(&["resume"]);
    let process = rig.mq(&["process"]);
    // It may have landed before the command looked.
    assert!(["one: landed\n", ""].contains(&process.stdout.as_str()), "{process:#?}");
    rig.wait("one", "landed");
}

/// R3.5, AC-3.5: a session cannot land anything; what it hands in lands by the queue, and nothing else does.
#[test]
fn e2e_queue_r3_5_ac_3_5_sessions_do_not_merge() {
    let agent = r#"
read -r prompt
mkdir -p src; echo plums > src/plums.txt; git add --all; git commit --quiet --message 'Add plums'
try() { "$@" >> "$HOME/said" 2>&1; echo "$? $*" >> "$HOME/tried"; }
try git push --no-verify origin +HEAD:main
git push --quiet origin HEAD
try PROGRAM merge-queue add "$POINTSMAN_BRANCH"
try PROGRAM merge-queue process
try PROGRAM merge-queue pause
try PROGRAM merge-queue resume
try PROGRAM merge-queue remove 1
try PROGRAM merge-queue serve --repo . --gate true
try env -u POINTSMAN_SESSION PROGRAM merge-queue add "$POINTSMAN_BRANCH"
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#
    .replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"));
    let daemon = shop().agent(&agent).start();
    let issue = daemon.file_issue_with("Plums", "Please.");
    daemon.wait_closed(issue);
    let read = |name: &str| std::fs::read_to_string(daemon.path("home").join(name)).unwrap();
    let tried = read("tried");
    assert_eq!(tried.lines().count(), 8, "{tried}");
    for line in tried.lines() {
        let expected = if line.contains("git push") { "1 " } else { "3 " };
        assert!(line.starts_with(expected), "{tried}\n{}", read("said"));
    }
    assert_eq!(daemon.main_log(), ["Add plums", "Open the shop"]);
    let status = daemon.json(&["merge-queue", "status"]);
    assert_eq!((&status["direct_merges_total"], &status["landed"]), (&0.into(), &1.into()));
    let history = daemon.json(&["merge-queue", "history"]);
    assert_eq!(history[0]["candidate_sha"], daemon.forge_git(&["rev-parse", "main"]).as_str());
}

/// AC-3.1: two that are ready at the same time are processed one after the other.
#[test]
fn e2e_queue_ac_3_1_the_second_waits_for_the_first() {
    let gate = "#!/bin/sh\necho begin >> \"$HOME/gates\"\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n\
                echo end >> \"$HOME/gates\"\n";
    let daemon =
        shop().file("gate.sh", gate).set("merge.gate", "[\"./gate.sh\"]").set("dev.concurrency", "2").build();
    std::fs::write(daemon.path("home/hold"), "").unwrap();
    daemon.start();
    let issues = ["apples", "pears"].map(|f| daemon.file_issue(f, &format!("{}\n{LAND}", adds(f))));
    let list = daemon.wait_for("both to be in the merge queue and the first one to be tested", || {
        let list = daemon.json(&["merge-queue", "list"]);
        (list[0]["status"] == "testing" && list[1].is_object()).then_some(list)
    });
    assert_eq!((&list[1]["status"], &list[1]["position"]), (&"queued".into(), &2.into()));
    std::fs::remove_file(daemon.path("home/hold")).unwrap();
    for issue in issues {
        daemon.wait_closed(issue);
    }
    let gates = std::fs::read_to_string(daemon.path("home/gates")).unwrap();
    assert_eq!(gates, "begin\nend\nbegin\nend\n", "never two at a time");
    assert_eq!(daemon.main_log().len(), 3);
    let order: Vec<Value> =
        signals(&daemon).into_iter().filter(|s| s["kind"].as_str().unwrap().starts_with("MERGE")).collect();
    assert_eq!(order.len(), 4, "{order:#?}");
}

/// AC-3.4: the list shows the order.
#[test]
fn e2e_queue_ac_3_4_the_list_shows_the_order() {
    let rig = Rig::start(&[]);
    rig.json(&["pause"]);
    for name in ["one", "two", "three"] {
        rig.enter(name);
    }
    let list = rig.json(&["list"]);
    let told: Vec<(u64, &str)> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (e["position"].as_u64().unwrap(), e["branch"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [(1, "one"), (2, "two"), (3, "three")]);
    let table = rig.mq(&["list"]).stdout;
    let at = |name: &str| table.find(name).unwrap_or_else(|| panic!("{name} is not in\n{table}"));
    assert!(at("one") < at("two") && at("two") < at("three"), "{table}");
}
