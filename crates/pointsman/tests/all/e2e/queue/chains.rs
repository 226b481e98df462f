//! What lands and what does not: styles, batches, speculation, flakes, outages, and a memory for verdicts.

use super::{GATE, Rig};

/// How often the gate looked at each tree, at most.
fn most_runs(rig: &Rig) -> usize {
    let gates = rig.gates();
    gates.iter().map(|tree| gates.iter().filter(|other| *other == tree).count()).max().unwrap_or(0)
}

#[test]
fn e2e_queue_a_rebase_keeps_the_commits_and_the_line_straight() {
    let rig = Rig::start(&["--style", "rebase"]);
    rig.push("two", "src/plums.txt", "plums\n");
    rig.push_on("two", "src/pears.txt", "pears\n");
    rig.enter("one");
    rig.add("two");
    rig.wait("two", "landed");
    let log = [
        "Write src/pears.txt for two",
        "Write src/plums.txt for two",
        "Write src/one.txt for one",
        "Open the shop",
    ];
    assert_eq!(rig.main_log(), log);
    assert_eq!(rig.git(&["rev-list", "--merges", "main"]), "");
    rig.check_main_was_tested();
    assert_eq!(rig.branches(), ["main"]);
}

#[test]
fn e2e_queue_a_merge_commit_joins_the_branch_as_it_is() {
    let rig = Rig::start(&["--style", "merge"]);
    let head = rig.push("one", "src/one.txt", "one\n");
    rig.add("one");
    rig.wait("one", "landed");
    assert_eq!(rig.main_log(), ["Merge branch 'one'", "Open the shop"]);
    assert_eq!(rig.git(&["log", "-1", "--format=%b", "main"]), "* Write src/one.txt for one");
    assert_eq!(rig.git(&["rev-parse", "main^2"]), head);
    rig.check_main_was_tested();
    assert_eq!(rig.branches(), ["main"]);
}

#[test]
fn e2e_queue_a_squash_makes_one_commit_of_a_branch() {
    let rig = Rig::start(&["--style", "squash"]);
    rig.push("one", "src/plums.txt", "plums\n");
    rig.push_on("one", "src/pears.txt", "pears\n");
    rig.add("one");
    rig.wait("one", "landed");
    assert_eq!(rig.main_log(), ["one", "Open the shop"]);
    let body = "* Write src/plums.txt for one\n\n* Write src/pears.txt for one";
    assert_eq!(rig.git(&["log", "-1", "--format=%b", "main"]).trim(), body);
    assert_eq!(rig.git(&["rev-list", "--count", "main"]), "2");
    rig.check_main_was_tested();
    assert_eq!(rig.branches(), ["main"]);
}

/// A queue elsewhere once took back two thousand changes with groups of squashed branches, silently.
#[test]
fn e2e_queue_squashed_groups_take_nothing_back() {
    let rig = Rig::new(GATE, &["--style", "squash", "--strategy", "batch", "--batch-size", "4"]);
    rig.serve();
    rig.json(&["pause"]);
    for name in ["one", "two", "three", "four", "five"] {
        rig.enter(name);
    }
    rig.json(&["resume"]);
    for name in ["one", "two", "three", "four", "five"] {
        rig.wait(name, "landed");
    }
    let files = rig.git(&["ls-tree", "--name-only", "main", "src/"]);
    let expected =
        ["src/five.txt", "src/four.txt", "src/lemons.txt", "src/one.txt", "src/three.txt", "src/two.txt"];
    assert_eq!(files.lines().collect::<Vec<_>>(), expected);
    // Each commit changes what its branch changed, and nothing else.
    for commit in rig.git(&["rev-list", "--first-parent", "main"]).lines().take(5) {
        let changed = rig.git(&["diff-tree", "--no-commit-id", "--name-only", "-r", commit]);
        let subject = rig.git(&["log", "-1", "--format=%s", commit]);
        assert!(subject.starts_with(&format!("Write {changed} for ")), "{subject}: {changed}");
    }
}

#[test]
fn e2e_queue_an_entry_may_land_in_its_own_style() {
    let rig = Rig::start(&[]);
    rig.push("one", "src/one.txt", "one\n");
    rig.json(&["add", "one", "--style", "merge"]);
    rig.wait("one", "landed");
    assert_eq!(rig.git(&["rev-list", "--count", "--merges", "main"]), "1");
}

#[test]
fn e2e_queue_a_batch_with_one_red_branch_lands_all_others() {
    let rig = Rig::new(GATE, &["--strategy", "batch", "--batch-size", "8"]);
    rig.serve();
    rig.json(&["pause"]);
    let good = ["one", "two", "three", "four", "five", "six", "seven"];
    for (at, name) in good.iter().enumerate() {
        rig.enter(name);
        if at == 2 {
            rig.push("bad", "src/bad.txt", "BUG\n");
            rig.add("bad");
        }
    }
    rig.json(&["resume"]);
    for name in good {
        rig.wait(name, "landed");
    }
    let bad = rig.wait("bad", "red");
    assert_eq!(bad["reason"], "exit code 1", "{bad:#}");
    assert_eq!(rig.main_log().len(), 8);
    assert!(!rig.main_log().iter().any(|subject| subject.contains("bad")));
    assert_eq!(rig.branches(), ["bad", "main"], "what did not land stays");
    assert!(most_runs(&rig) <= 2, "one confirming run: {:?}", rig.gates());
    rig.check_main_was_tested();
}

#[test]
fn e2e_queue_speculation_with_one_red_branch_lands_all_others() {
    let rig = Rig::new(GATE, &["--strategy", "speculative", "--depth", "4"]);
    rig.serve();
    rig.json(&["pause"]);
    rig.enter("one");
    rig.push("bad", "src/bad.txt", "BUG\n");
    rig.add("bad");
    for name in ["two", "three", "four"] {
        rig.enter(name);
    }
    rig.json(&["resume"]);
    for name in ["one", "two", "three", "four"] {
        rig.wait(name, "landed");
    }
    rig.wait("bad", "red");
    assert_eq!(rig.main_log().len(), 5);
    assert_eq!(rig.branches(), ["bad", "main"]);
    rig.check_main_was_tested();
}

#[test]
fn e2e_queue_a_flaky_gate_costs_one_more_run_and_nobody_is_blamed() {
    // Red for the first run of all.
    let gate = "git rev-parse 'HEAD^{tree}' >> \"$HOME/gates\"; [ $(wc -l < \"$HOME/gates\") -gt 1 ]";
    let rig = Rig::new(gate, &[]);
    rig.serve();
    rig.enter("one");
    rig.wait("one", "landed");
    assert_eq!(rig.gates().len(), 2);
    assert_eq!(rig.gates()[0], rig.gates()[1]);
    assert_eq!(rig.main_log().len(), 2);
}

#[test]
fn e2e_queue_an_outage_is_neither_red_nor_green() {
    // Out of memory, says the machine: three runs and no verdict.
    let gate = "git rev-parse 'HEAD^{tree}' >> \"$HOME/gates\"; exit 137";
    let rig = Rig::new(gate, &[]);
    rig.serve();
    rig.enter("one");
    let entry = rig.wait("one", "stale");
    assert!(!entry["reason"].as_str().unwrap().is_empty(), "{entry:#}");
    assert_eq!(rig.gates().len(), 3);
    assert_eq!(rig.main_log(), ["Open the shop"]);
    assert_eq!(rig.branches(), ["main", "one"]);
}

#[test]
fn e2e_queue_a_finished_test_never_runs_again() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    rig.push("bad", "src/bad.txt", "BUG\n");
    rig.add("bad");
    rig.wait("bad", "red");
    let runs = rig.gates();
    assert_eq!(runs.len(), 3, "one green run, two red ones: {runs:?}");
    rig.daemon.stop_daemon();
    rig.serve();
    // The same branch once more, on the same main: what is known is told at once.
    rig.add("bad");
    let entry = rig.daemon.wait_for("the second verdict", || {
        let history = rig.json(&["history"]);
        let bad = history.as_array()?.iter().filter(|e| e["branch"] == "bad" && e["status"] == "red").count();
        (bad == 2).then(|| rig.entry("bad"))
    });
    assert_eq!(entry["status"], "red");
    assert_eq!(rig.gates(), runs);
}

#[test]
fn e2e_queue_a_red_main_blames_nobody() {
    let rig = Rig::new(GATE, &[]);
    rig.person(&["checkout", "--quiet", "main"]);
    rig.push_on("main", "src/broken.txt", "BUG\n");
    rig.serve();
    rig.enter("one");
    // Its own base lacks the bug, the candidate has it.
    rig.daemon.wait_for("main to be found red", || rig.daemon.log_lines("main itself is red"));
    assert_eq!(rig.entry("one")["status"], "testing");
    // A repair lands although main is red.
    rig.person(&["fetch", "--quiet", "origin"]);
    rig.person(&["checkout", "--quiet", "-B", "wip", "origin/main"]);
    rig.push_on("repair", "src/broken.txt", "good\n");
    rig.add("repair");
    rig.wait("repair", "landed");
    rig.wait("one", "landed");
    rig.check_main_was_tested();
}
