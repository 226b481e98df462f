//! Odd branches, odd servers, and what people see of them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::super::{clean, shop};
use super::{GATE, Rig};

/// A merge with `-s ours` and an empty commit change no file. What was asked for is the history.
#[test]
fn e2e_queue_a_branch_that_changes_no_file_is_merged_or_refused_but_never_lost() {
    let rig = Rig::start(&["--style", "merge"]);
    rig.enter("one");
    rig.wait("one", "landed");
    let old = rig.push("old", "src/old.txt", "an old idea\n");
    rig.person(&["fetch", "--quiet", "origin"]);
    rig.person(&["checkout", "--quiet", "-B", "wip", "origin/main"]);
    rig.person(&["merge", "--quiet", "--strategy=ours", "--message=Close the old idea", &old]);
    rig.person(&["push", "--quiet", "origin", "HEAD:refs/heads/closes", "HEAD:refs/heads/squashed"]);
    let squashed = rig.json(&["add", "squashed", "--style", "squash"]);
    rig.wait("squashed", "stale");
    let reason = rig.entry("squashed")["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("changes nothing on main") && reason.contains("--style merge"), "{reason}");
    assert!(squashed["entry"].is_number());
    rig.add("closes");
    rig.wait("closes", "landed");
    rig.git(&["merge-base", "--is-ancestor", &old, "main"]);
    assert_eq!(rig.main_log()[0], "Merge branch 'closes'");
    assert_eq!(rig.branches(), ["main", "old", "squashed"]);
}

/// Replayed commit by commit it would take back what main did. It alone is out; the others go on.
#[test]
fn e2e_queue_a_branch_that_makes_and_undoes_what_main_did_is_a_conflict_of_its_own() {
    let rig = Rig::start(&[]);
    rig.push("landed", "src/lemons.txt", "lemons 2 crowns\n");
    rig.add("landed");
    rig.wait("landed", "landed");
    rig.push("odd", "src/lemons.txt", "lemons 2 crowns\n");
    rig.push_on("odd", "src/lemons.txt", "lemons 1 crown\n");
    rig.push_on("odd", "src/limes.txt", "limes 1 crown\n");
    rig.add("odd");
    let out = rig.wait("odd", "conflict");
    assert_eq!(out["conflict_files"], serde_json::json!(["src/lemons.txt"]), "{out:#}");
    assert_eq!(out["conflicts_with"], "landed");
    rig.enter("next");
    rig.wait("next", "landed");
    assert_eq!(rig.json(&["status"])["paused"], false);
    assert_eq!(rig.git(&["show", "main:src/lemons.txt"]), "lemons 2 crowns");
}

#[test]
fn e2e_queue_process_lands_exactly_the_next_one() {
    let rig = Rig::start(&[]);
    rig.daemon.stop_daemon();
    rig.push("one", "src/one.txt", "one\n");
    let added = rig.mq(&["add", "one"]);
    assert_eq!(added.code, Some(0), "{added:#?}");
    assert!(added.stderr.contains("pointsman merge-queue serve --repo"), "{added:#?}");
    rig.enter("two");
    let done = rig.json(&["process"]);
    assert_eq!((&done[0]["branch"], &done[0]["status"]), (&"one".into(), &"landed".into()));
    assert_eq!(done.as_array().unwrap().len(), 1);
    assert_eq!(rig.entry("two")["status"], "queued");
    assert_eq!(rig.main_log().len(), 2);
    rig.json(&["process", "--all"]);
    assert_eq!(rig.entry("two")["status"], "landed");
}

/// A rule of the server is asked twice and then told to a person, who lets the queue go on.
#[test]
fn e2e_queue_a_server_that_refuses_main_is_asked_twice_and_then_a_person_is() {
    let rig = Rig::start(&[]);
    let hooks = rig.daemon.path("line.git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let (hook, log) = (hooks.join("update"), rig.daemon.path("home/pushes"));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = refs/heads/main ] || exit 0\necho $3 >> {}\necho main is protected >&2\nexit 1\n",
        log.display()
    );
    fs::write(&hook, script).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    rig.enter("one");
    let status = rig.daemon.wait_for("the queue to pause", || {
        Some(rig.json(&["status"])).filter(|status| status["paused"] == true)
    });
    let reason = status["paused_reason"].as_str().unwrap();
    assert!(
        reason.contains("refused the push to main twice") && reason.contains("main is protected"),
        "{reason}"
    );
    assert_eq!(status["frozen_by_audit"], false, "nothing was found on main");
    // Each time with and without the deletion of the branch.
    assert_eq!(fs::read_to_string(&log).unwrap().lines().count(), 4);
    rig.daemon
        .wait_for("nothing to be shown as tested", || (rig.entry("one")["status"] == "queued").then_some(()));
    fs::remove_file(&hook).unwrap();
    rig.json(&["resume"]);
    rig.wait("one", "landed");
}

#[test]
fn e2e_queue_nothing_is_shown_as_tested_while_it_is_paused_and_no_old_conflict_after_a_landing() {
    let rig = Rig::start(&[]);
    rig.hold();
    rig.enter("one");
    rig.wait("one", "testing");
    rig.json(&["pause"]);
    rig.let_go();
    rig.daemon.wait_for("the entry to wait again", || (rig.entry("one")["status"] == "queued").then_some(()));
    rig.restart();
    assert_eq!(rig.entry("one")["status"], "queued");
    rig.json(&["resume"]);
    rig.wait("one", "landed");
    assert_eq!(rig.gates().len(), 1, "the verdict was kept");

    rig.push("same", "src/one.txt", "another price\n");
    rig.add("same");
    rig.wait("same", "conflict");
    assert!(rig.mq(&["status"]).stdout.contains("same  conflict"));
    rig.push("same", "src/same.txt", "a list of its own\n");
    rig.add("same");
    rig.wait("same", "landed");
    let picture = rig.mq(&["status"]).stdout;
    assert!(!picture.contains("conflict"), "{picture}");
}

/// A killed git left its lock in somebody's repository: it is moved aside, not deleted.
#[test]
fn e2e_queue_a_dead_lock_in_the_repository_does_not_stop_it() {
    let rig = Rig::new(GATE, &[]);
    let lock = rig.daemon.path("line.git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::open(&lock).unwrap().set_modified(hour_ago).unwrap();
    rig.serve();
    rig.enter("one");
    rig.wait("one", "landed");
    let moved = fs::read_dir(rig.daemon.path("line.git/pointsman-moved-locks")).unwrap().count();
    assert_eq!((moved, lock.exists()), (1, false));
}

/// What would only fail at the first landing is said before `ready`.
#[test]
fn e2e_queue_serve_checks_the_branch_and_the_right_to_push() {
    let rig = Rig::new(GATE, &[]);
    let serve = |more: &[&str]| {
        let words = ["merge-queue", "serve", "--repo", &rig.repo, "--gate", "true"];
        rig.daemon.run(&[&words, more].concat())
    };
    let answer = serve(&["--branch", "trunk"]);
    assert_eq!(answer.code, Some(3), "{answer:#?}");
    assert!(
        answer.stderr.contains("has no branch trunk") && answer.stderr.contains("--branch"),
        "{answer:#?}"
    );
    let answer = serve(&["--pass-env", "POINTSMAN_FORGE_TOKEN"]);
    assert_ne!(answer.code, Some(0), "{answer:#?}");
    assert!(answer.stderr.contains("ci.pass_env"), "{answer:#?}");
    // The one who runs the tests may write everywhere, or not.
    let refs = rig.daemon.path("line.git/refs/heads");
    fs::set_permissions(&refs, fs::Permissions::from_mode(0o555)).unwrap();
    let may_write_anywhere = fs::write(refs.join("probe"), "").is_ok();
    if may_write_anywhere {
        fs::remove_file(refs.join("probe")).unwrap();
    } else {
        let answer = serve(&[]);
        assert_eq!(answer.code, Some(3), "{answer:#?}");
        assert!(answer.stderr.contains("does not let you push"), "{answer:#?}");
    }
    fs::set_permissions(&refs, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn e2e_queue_a_repository_with_sha_256_is_served() {
    let rig = Rig::new(GATE, &[]);
    let (work, repo) = (rig.daemon.path("long"), rig.daemon.path("long.git"));
    fs::create_dir_all(work.join("src")).unwrap();
    fs::write(work.join("src/a.txt"), "a\n").unwrap();
    let git = |arguments: &[&str]| rig.daemon.git_in(&work, arguments);
    git(&["init", "--quiet", "--initial-branch=main", "--object-format=sha256"]);
    git(&["add", "--all"]);
    git(&["commit", "--quiet", "--message=Begin"]);
    git(&["clone", "--quiet", "--bare", ".", repo.to_str().unwrap()]);
    for name in ["one", "two"] {
        git(&["checkout", "--quiet", "-B", name, "main"]);
        fs::write(work.join(format!("src/{name}.txt")), name).unwrap();
        git(&["add", "--all"]);
        git(&["commit", "--quiet", "--message", name]);
        git(&["push", "--quiet", repo.to_str().unwrap(), name]);
    }
    let repo = repo.to_str().unwrap();
    rig.daemon.start_command(&["merge-queue", "serve", "--repo", repo, "--gate", "test -e src/a.txt"], &[]);
    for name in ["one", "two"] {
        let answer = rig.daemon.run(&["merge-queue", "add", "--repo", repo, name]);
        assert_eq!(answer.code, Some(0), "{answer:#?}");
    }
    rig.daemon.wait_for("both to land", || {
        let log = rig.daemon.git_in(repo.as_ref(), &["log", "--format=%s", "main"]);
        (log.lines().collect::<Vec<_>>() == ["two", "one", "Begin"]).then_some(())
    });
}

/// Whoever runs `serve` hears what became of each branch, and may have a command run for it.
#[test]
fn e2e_queue_serve_tells_every_outcome_and_hands_variables_to_the_gate() {
    let command = "grep NoNewPrivs: /proc/self/status > \"$HOME/mark\"; \
                   echo \"$POINTSMAN_STATUS $POINTSMAN_BRANCH $POINTSMAN_REASON $POINTSMAN_LOG\" >> \"$HOME/told\"";
    let gate = "echo \"colour is $COLOUR\"; ! grep -rn BUG src";
    let rig = Rig::new(gate, &["--on-outcome", command, "--pass-env", "COLOUR"]);
    rig.serve_with(&[("COLOUR", "blue")]);
    rig.enter("one");
    rig.wait("one", "landed");
    rig.push("bad", "src/bad.txt", "BUG\n");
    rig.add("bad");
    rig.wait("bad", "red");
    let told = rig.daemon.wait_for("both to be told", || {
        let told = fs::read_to_string(rig.daemon.path("home/told")).unwrap_or_default();
        (told.lines().count() == 2).then_some(told)
    });
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("landed one "), "{told}");
    assert!(lines[1].starts_with("red bad exit code 1 /"), "{told}");
    let log = fs::read_to_string(lines[1].rsplit(' ').next().unwrap()).unwrap();
    assert!(log.contains("colour is blue") && log.contains("BUG"), "{log}");
    let mark = fs::read_to_string(rig.daemon.path("home/mark")).unwrap();
    assert_eq!(mark, "NoNewPrivs:\t1\n", "its processes are known when they detach");
}

/// A service was missing: what was red for that is tested again when a person says so, and the log says why it was red.
#[test]
fn e2e_queue_red_can_be_asked_again_and_says_why_it_was_red() {
    let gate = "[ -e \"$HOME/service\" ] || { echo the service is missing; exit 1; }";
    let rig = Rig::new(gate, &[]);
    rig.serve();
    rig.enter("one");
    let waits = rig.daemon.wait_for("main to be found red", || {
        let entry = rig.entry("one");
        entry["reason"].as_str().filter(|reason| reason.contains("main itself is red")).map(str::to_owned)
    });
    assert!(waits.contains("as tested at ") && waits.contains("merge-queue retest main"), "{waits}");
    // A restart changes nothing about it.
    rig.restart();
    fs::write(rig.daemon.path("home/service"), "").unwrap();
    let retested = rig.json(&["retest", "main"]);
    assert!(retested["forgotten"].as_u64().unwrap() >= 1, "{retested:#}");
    rig.wait("one", "landed");

    // Now main is green, and a branch that removes the service is red for its own fault.
    fs::remove_file(rig.daemon.path("home/service")).unwrap();
    rig.enter("two");
    let red = rig.wait("two", "red");
    let shown = rig.json(&["show", "two"]);
    assert_eq!((&shown["entry"], &shown["verdict"]), (&red["entry"], &"red".into()), "{shown:#}");
    assert!(shown["log"].as_str().unwrap().contains("the service is missing"), "{shown:#}");
    assert!(shown["tested_at"].as_str().unwrap().ends_with('Z'));
    let log = red["log_path"].as_str().unwrap_or_else(|| panic!("no log in {red:#}"));
    assert!(fs::read_to_string(log).unwrap().contains("the service is missing"));
    assert!(rig.mq(&["show", "two"]).stdout.contains("the service is missing"));
    fs::write(rig.daemon.path("home/service"), "").unwrap();
    let again = rig.json(&["retest", "two"]);
    assert_ne!(again["entry"], red["entry"]);
    rig.wait("two", "landed");
    let kept = fs::read_to_string(log).unwrap();
    assert!(kept.contains("the service is missing"), "the log of the red run stays: {kept}");
    assert_eq!(rig.mq(&["retest", "two"]).code, Some(3), "it has landed");
    assert_eq!(rig.mq(&["retest", "nowhere"]).code, Some(4));
}

/// Main is red because the gate is wrong. The person mends the configuration: from then on its gate decides, without a
/// restart, and `retest` reaches the queue that is at work.
#[test]
fn e2e_queue_a_gate_that_was_mended_is_used_without_a_restart() {
    let daemon = shop().outside("its gate leaves notes in the home").set("merge.gate", "[\"false\"]").start();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    let is_red = || {
        let shown = daemon.json(&["merge-queue", "status"]);
        shown.to_string().contains("main itself is red").then_some(())
    };
    daemon.wait_for("main to be found red", is_red);
    let config = daemon.checkout().join("pointsman.toml");
    let text = fs::read_to_string(&config).unwrap();
    let gate = "gate = [\"sh\", \"-c\", \"echo x >> $HOME/gates; [ -e $HOME/service ]\"]";
    fs::write(&config, text.replace("gate = [\"false\"]", gate)).unwrap();
    daemon.json(&["project", "add", config.to_str().unwrap()]);
    let gates = || fs::read_to_string(daemon.path("home/gates")).unwrap_or_default().lines().count();
    // Twice the candidate, twice main.
    daemon.wait_for("the new gate to find main red", || (gates() >= 4).then_some(()));
    daemon.wait_for("main to be found red again", is_red);
    fs::write(daemon.path("home/service"), "").unwrap();
    daemon.json(&["merge-queue", "retest", "main"]);
    daemon.wait_closed(issue);
}

/// A command that is refused changes nothing: the tree is not tested again.
#[test]
fn e2e_queue_a_retest_that_is_refused_tests_nothing() {
    let rig = Rig::start(&[]);
    rig.enter("one");
    rig.wait("one", "landed");
    assert_eq!(rig.mq(&["retest", "one"]).code, Some(3), "it has landed");
    rig.push("bad", "src/bad.txt", "BUG\n");
    rig.add("bad");
    rig.wait("bad", "red");
    assert_eq!(rig.gates().len(), 3, "the branches, and the red one once more");
}

/// What a task wanted came to main by another branch. Nothing of its own landed, and nobody is told that something did.
#[test]
fn e2e_queue_a_task_with_nothing_left_to_land_is_done_without_a_merge() {
    let gate = "[\"sh\", \"-c\", \"while [ -e $HOME/hold ]; do sleep 0.02; done\"]";
    let daemon = shop().set("merge.gate", gate).start();
    fs::write(daemon.path("home/hold"), "").unwrap();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    let testing = || {
        let entry = daemon.json(&["merge-queue", "list"])[0].clone();
        (entry["status"] == "testing").then_some(entry)
    };
    let entry = daemon.wait_for("the task's branch to be tested", testing);
    let (branch, pr) = (entry["branch"].as_str().unwrap().to_owned(), entry["pr_number"].as_u64().unwrap());
    // The same files in another commit, ahead of it.
    let checkout = daemon.checkout();
    let url = daemon.run(&["forge", "url"]).stdout.trim().to_owned();
    daemon.git_in(&checkout, &["fetch", "--quiet", &url, &branch]);
    daemon.git_in(&checkout, &["switch", "--quiet", "--create", "same", "FETCH_HEAD"]);
    daemon.git_in(&checkout, &["commit", "--quiet", "--amend", "--message=The same apples"]);
    daemon.json(&["merge-queue", "pause"]);
    daemon.json(&["merge-queue", "add", "same", "--priority", "9"]);
    fs::remove_file(daemon.path("home/hold")).unwrap();
    daemon.wait_for("the task to wait", || {
        let listed = daemon.json(&["merge-queue", "list"]);
        listed.as_array()?.iter().all(|entry| entry["status"] == "queued").then_some(())
    });
    daemon.json(&["merge-queue", "resume"]);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["The same apples", "Open the shop"]);
    let history = daemon.json(&["merge-queue", "history"]);
    let entry = history.as_array().unwrap().iter().find(|entry| entry["branch"] == branch.as_str()).unwrap();
    assert_eq!(
        (&entry["status"], &entry["candidate_sha"]),
        (&"landed".into(), &serde_json::Value::Null),
        "{entry:#}"
    );
    let closed = daemon.wait_for("the pull request to be closed", || {
        Some(daemon.pull_request(pr)).filter(|pr| pr["state"] == "closed")
    });
    assert_eq!(closed["merged"], false, "{closed:#}");
}
