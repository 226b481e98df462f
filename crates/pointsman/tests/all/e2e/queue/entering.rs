//! How branches get into the merge queue, and which do not.

use super::{GATE, Rig};
use crate::e2e::{LAND, adds, shop};

#[test]
fn e2e_queue_add_takes_the_branch_from_the_checkout_or_from_the_forge() {
    let daemon = shop().start();
    let checkout = daemon.checkout();
    let url = daemon.run(&["forge", "url"]).stdout.trim().to_owned();
    for name in ["here", "there"] {
        daemon.git_in(&checkout, &["switch", "--quiet", "--create", name, "main"]);
        std::fs::write(checkout.join(format!("src/{name}.txt")), name).unwrap();
        daemon.git_in(&checkout, &["add", "src"]);
        daemon.git_in(&checkout, &["commit", "--quiet", "--message", name]);
    }
    daemon.git_in(&checkout, &["push", "--quiet", &url, "there"]);
    daemon.git_in(&checkout, &["switch", "--quiet", "main"]);
    daemon.git_in(&checkout, &["branch", "--quiet", "--delete", "--force", "there"]);
    for name in ["here", "there"] {
        let added = daemon.json(&["merge-queue", "add", name]);
        assert_eq!(added["branch"], name);
        daemon.wait_for("it to land", || {
            let history = daemon.json(&["merge-queue", "history"]);
            history.as_array()?.iter().any(|e| e["branch"] == name && e["status"] == "landed").then_some(())
        });
    }
    assert_eq!(daemon.main_log(), ["there", "here", "Open the shop"]);
    let branches = daemon.forge_git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    assert_eq!(branches, "main");
    assert_eq!(
        daemon.git_in(&checkout, &["branch", "--format=%(refname:short)"]),
        "here\nmain",
        "yours stay"
    );
    assert_eq!(daemon.json(&["merge-queue", "status"])["direct_merges_total"], 0);
}

#[test]
fn e2e_queue_a_new_head_replaces_the_older_one() {
    // Nobody looks before `add` does.
    let rig = Rig::start(&["--poll", "1h"]);
    rig.hold();
    rig.enter("first");
    rig.wait_gates(1);
    rig.enter("one");
    rig.push_on("one", "src/more.txt", "more\n");
    let second = rig.add("one");
    let history = rig.json(&["history"]);
    let older = &history.as_array().unwrap()[1];
    assert_eq!((&older["branch"], &older["status"]), (&"one".into(), &"removed".into()));
    assert!(older["reason"].as_str().unwrap().starts_with("replaced by "), "{older:#}");
    // The same head again is the same entry.
    assert_eq!(rig.add("one")["entry"], second["entry"]);
    rig.let_go();
    rig.wait("one", "landed");
    assert_eq!(rig.main_log().len(), 4);
}

#[test]
fn e2e_queue_a_branch_that_moves_without_being_added_again_is_stale() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("first");
    rig.wait_gates(1);
    rig.enter("one");
    rig.push_on("one", "src/more.txt", "more\n");
    // Before its turn comes: until the queue looks again, what it saw before counts.
    let entry = rig.wait("one", "stale");
    rig.let_go();
    assert!(entry["reason"].as_str().unwrap().contains("while it waited"), "{entry:#}");
    rig.wait("first", "landed");
    assert_eq!(rig.main_log().len(), 2);
}

#[test]
fn e2e_queue_what_cannot_land_is_refused_at_the_door() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    rig.person(&["checkout", "--quiet", "--orphan", "alien"]);
    rig.push_on("alien", "src/alien.txt", "from elsewhere\n");
    let first = rig.git(&["rev-list", "--max-parents=0", "main"]);
    rig.git(&["branch", "old", &first]);
    for (branch, code, words) in [
        ("main", 3, "main is the branch that the others land on"),
        ("alien", 3, "alien shares no history with main"),
        ("old", 3, "everything on old is already on main"),
        ("nowhere", 4, "there is no branch nowhere"),
    ] {
        let answer = rig.mq(&["add", branch]);
        assert_eq!(answer.code, Some(code), "{branch}: {answer:#?}");
        assert!(answer.stderr.contains(words), "{branch}: {answer:#?}");
    }
    assert_eq!(rig.json(&["list"]), serde_json::json!([]));
}

/// No name is ever a word of a shell, an option or a revision.
#[test]
fn e2e_queue_hostile_names_are_names_or_refused() {
    let rig = Rig::start(&[]);
    let begin = rig.git(&["rev-parse", "main"]);
    let names = ["$(touch${IFS}pwned)", "a;id", "'quoted'", "%2f", "ünïcode"];
    for (at, name) in names.iter().enumerate() {
        rig.person(&["checkout", "--quiet", "-B", "wip", &begin]);
        rig.push_on(name, &format!("src/{at}.txt"), name);
        rig.json(&["add", "--", name]);
        rig.wait(name, "landed");
    }
    assert_eq!(rig.main_log().len(), names.len() + 1);
    assert_eq!(rig.branches(), ["main"]);
    for name in
        ["-x", "@{u}", "@", "HEAD^", "a b", "two\nlines", "main:x", "../../main", "refs/heads/main", ""]
    {
        let answer = rig.mq(&["add", "--", name]);
        assert!(matches!(answer.code, Some(3 | 4)), "{name:?}: {answer:#?}");
        assert!(!answer.stderr.contains("two\nlines"), "{answer:#?}");
    }
    assert_eq!(rig.json(&["list"]), serde_json::json!([]));
    assert!(!rig.daemon.path("work/pwned").exists());
}

#[test]
fn e2e_queue_a_tasks_branch_enters_by_its_task() {
    let daemon = shop().reviewed().start();
    let script = format!("{}\nexpect CI passed\nphase awaiting_review\n{LAND}", adds("apples"));
    let issue = daemon.file_issue("Apples", &script);
    let task = daemon.wait_state(issue, "awaiting_review");
    let branch = task["branch"].as_str().unwrap();
    let answer = daemon.run(&["merge-queue", "add", branch]);
    assert_eq!(answer.code, Some(3), "{answer:#?}");
    assert!(answer.stderr.contains("belongs to the task of issue #1"), "{answer:#?}");
    assert_eq!(daemon.main_log(), ["Open the shop"]);
}

#[test]
fn e2e_queue_serve_refuses_a_repository_with_main_checked_out() {
    let rig = Rig::new(GATE, &[]);
    let work = rig.work();
    let work = work.to_str().unwrap();
    let serve = |repo: &str| rig.daemon.run(&["merge-queue", "serve", "--repo", repo, "--gate", "true"]);
    let answer = serve(work);
    assert_eq!(answer.code, Some(3), "{answer:#?}");
    assert!(
        answer.stderr.contains("has main checked out") && answer.stderr.contains("clone --bare"),
        "{answer:#?}"
    );
    assert_eq!(serve(rig.daemon.path("home").to_str().unwrap()).code, Some(4));
    assert_eq!(serve("/nowhere/at/all").code, Some(4));
    let other = rig.mq(&["list"]);
    assert_eq!(other.code, Some(4), "no queue was ever served here: {other:#?}");
    rig.serve();
    let twice = serve(&rig.repo);
    assert_eq!(twice.code, Some(3), "{twice:#?}");
}

#[test]
fn e2e_queue_union_globs_take_both_sides() {
    let daemon = shop().set("merge.union", "[\"CHANGES\"]").file("CHANGES", "first\n").start();
    let checkout = daemon.checkout();
    for name in ["one", "two"] {
        daemon.git_in(&checkout, &["switch", "--quiet", "--create", name, "main"]);
        std::fs::write(checkout.join("CHANGES"), format!("first\n{name}\n")).unwrap();
        daemon.git_in(&checkout, &["commit", "--quiet", "--all", "--message", name]);
        daemon.json(&["merge-queue", "add", name]);
    }
    let answer = daemon.run(&["merge-queue", "process", "--all"]);
    assert_eq!(answer.code, Some(0), "{answer:#?}");
    daemon.wait_for("both to land", || (daemon.main_log().len() == 3).then_some(()));
    let both = daemon.on_main("CHANGES").unwrap();
    assert_eq!(both.lines().collect::<std::collections::BTreeSet<_>>(), ["first", "one", "two"].into());
}
