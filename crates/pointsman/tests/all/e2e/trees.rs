//! Working trees as teams need them: set up once, with the files and ports that they need, and gone with their task.

use std::collections::BTreeSet;
use std::fs;

use pointsman_adapters::process::census;
use pointsman_core::ids::ProjectName;
use pointsman_store::Store;
use pointsman_testkit::TestDaemon;
use serde_json::Value;

use super::{clean, shop};

/// Waits, tells what it finds, and goes on when it is told to.
const AGENT: &str = r#"
read -r prompt
{
    echo "ports=$POINTSMAN_PORT_1,$POINTSMAN_PORT_2"
    cat set-up .env app/.env 2>&1
    test -e .npmrc && echo "a credential was copied"
    git status --porcelain
} > "$(dirname "$POINTSMAN_RESULT_FILE")/found.tmp"
mv "$(dirname "$POINTSMAN_RESULT_FILE")/found.tmp" "$(dirname "$POINTSMAN_RESULT_FILE")/found"
while read -r line; do :; done
"#;

/// Refuses to run in a tree that is not as git made it.
const SETUP: &str = "#!/bin/sh\n\
    test -z \"$(git status --porcelain)\" || { echo 'the tree is not clean'; git status --porcelain; exit 9; }\n\
    test ! -e half || exit 8\n\
    echo half > half\n\
    cat .env > /dev/null || exit 7\n\
    echo \"set up for #$ISSUE with $POINTSMAN_PORT_1\" > set-up\n\
    rm half\n";

fn ports_of(daemon: &TestDaemon, issue: u64) -> Vec<u16> {
    let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
    let tasks = store.tasks(Some(&ProjectName::new("shop").unwrap())).unwrap();
    tasks.into_iter().find(|task| task.key.issue == issue).map(|task| task.ports).unwrap_or_default()
}

fn found(daemon: &TestDaemon, issue: u64, generation: u32) -> String {
    let path = daemon.session_files(issue).join(format!("run-{generation}/found"));
    daemon.wait_for("the agent to look around", || fs::read_to_string(&path).ok())
}

fn asked(daemon: &TestDaemon, kind: &str) -> Value {
    daemon.wait_for(&format!("a question of kind {kind}"), || {
        let inbox = daemon.json(&["inbox"]);
        let one = inbox.as_array()?.iter().find(|asked| asked["kind"] == kind)?;
        Some(one.clone())
    })
}

#[test]
fn e2e_a_tree_is_set_up_once_with_its_files_and_ports_and_again_only_if_it_is_new() {
    let daemon = shop()
        .agent(AGENT)
        .file("setup.sh", SETUP)
        .file("teardown.sh", "#!/bin/sh\necho \"torn down $POINTSMAN_PORT_1, $(cat set-up)\"\n")
        .file(".gitignore", "set-up\n.env\n")
        .file(".worktreeinclude", "# what every tree needs\n.env\n.npmrc\n")
        .set("tree.setup", "[\"./setup.sh\"]")
        .set("tree.teardown", "[\"./teardown.sh\"]")
        .set("tree.copy", "[\"notes/*.txt\"]")
        .set("tree.ports", "2")
        .build();
    let put = |path: &str, text: &str| {
        let path = daemon.checkout().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put(".env", "COLOUR=green\n");
    put("app/.env", "COLOUR=red\n");
    put(".npmrc", "//registry.example.org/:_authToken=abc\n");
    put("notes/plan.txt", "not ignored by anything\n");
    daemon.start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    let first = found(&daemon, issue, 1);
    let ports = ports_of(&daemon, issue);
    assert_eq!(ports.len(), 2, "{first}");
    let expected = format!(
        "ports={},{}\nset up for #{issue} with {}\nCOLOUR=green\nCOLOUR=red\n",
        ports[0], ports[1], ports[0]
    );
    // Copied files are no part of the work, even if git ignores none of them.
    assert_eq!(first, expected);
    assert!(daemon.tree(issue).join("notes/plan.txt").exists());
    let log = daemon.json(&["session", "logs", &issue.to_string(), "--setup"]);
    assert_eq!(log["session"], format!("dev-shop-{issue}"));
    let explained = daemon.json(&["task", "explain", &issue.to_string()])["facts"].to_string();
    assert!(explained.contains(&format!("reserved ports: {}, {}", ports[0], ports[1])), "{explained}");

    // Once per tree: what the set-up would find fault with is there by now, and nobody looks.
    fs::write(daemon.tree(issue).join("half"), "of an agent").unwrap();
    daemon.kill_session(issue);
    assert!(found(&daemon, issue, 2).starts_with(&expected), "the same ports, set up before");
    daemon.stop_daemon();
    daemon.start();
    assert_eq!(ports_of(&daemon, issue), ports);
    // A new tree is set up anew; what the agent left stays with the old one.
    daemon.json(&["task", "restart", &issue.to_string(), "--fresh"]);
    assert_eq!(found(&daemon, issue, 3), expected);

    daemon.run(&["forge", "issue", "close", &issue.to_string()]);
    daemon.wait_state(issue, "closed");
    daemon.wait_settled(issue);
    assert!(!daemon.tree(issue).exists() && !daemon.session_files(issue).join("gateway.git").exists());
    assert!(ports_of(&daemon, issue).is_empty());
    let log = daemon.state().join(format!("projects/shop/logs/dev-shop-{issue}-teardown.log"));
    let torn_down = fs::read_to_string(log).unwrap();
    assert_eq!(torn_down, format!("torn down {}, set up for #{issue} with {}\n", ports[0], ports[0]));
    let rescued = daemon.rescues();
    assert!(!rescued.is_empty(), "the file that the set-up would have refused was captured: {rescued:?}");
}

#[test]
fn e2e_a_set_up_that_fails_is_a_question_and_a_yes_tries_it_again() {
    let daemon = shop()
        .file("setup.sh", "#!/bin/sh\necho looking for the key\ncat the.key > set-up\n")
        .file(".gitignore", "set-up\n")
        .set("tree.setup", "[\"./setup.sh\"]")
        .set("tree.copy", "[\"the.key\"]")
        .set("dev.concurrency", "2")
        .start();
    let issues = [daemon.file_issue("Apples", &clean("apples")), daemon.file_issue("Pears", &clean("pears"))];
    for issue in issues {
        daemon.wait_state(issue, "escalated");
    }
    let question = asked(&daemon, "setup");
    let number = question["id"].to_string();
    let shown = daemon.json(&["inbox", "show", &number]);
    let text = shown.to_string();
    assert!(text.contains("looking for the key") && text.contains("No such file"), "{text}");
    assert_eq!(daemon.json(&["inbox"]).as_array().unwrap().len(), 2, "one for each task");
    let issue = question["issue"].as_u64().unwrap();
    let task = daemon.task(issue);
    assert_eq!(
        (&task["attempts"]["restarts"], &task["attempts"]["ci_fixes"]),
        (&0.into(), &0.into()),
        "{task}"
    );
    let log = daemon.run(&["session", "logs", &issue.to_string(), "--setup"]);
    assert!(log.stdout.starts_with("looking for the key\n"), "{log:?}");
    // A new beginning finds the same, and counts on.
    daemon.json(&["task", "restart", &issue.to_string(), "--fresh"]);
    let again = daemon.wait_for("the next question", || {
        let inbox = daemon.json(&["inbox"]);
        let mine = inbox.as_array()?.iter().find(|asked| asked["issue"] == issue)?.clone();
        (mine["id"] != question["id"] && mine["kind"] == "setup").then_some(mine)
    });
    let text = daemon.json(&["inbox", "show", &again["id"].to_string()]).to_string();
    assert!(text.contains("It failed 2 times."), "{text}");

    fs::write(daemon.checkout().join("the.key"), "key\n").unwrap();
    // One yes is enough for all: they failed for the same reason.
    daemon.json(&["inbox", "approve", &again["id"].to_string()]);
    for issue in issues {
        daemon.wait_closed(issue);
        assert_eq!(daemon.task(issue)["attempts"]["restarts"], 0);
    }
}

#[test]
fn e2e_a_set_up_that_is_killed_at_any_instant_repeats_cleanly() {
    let slow = SETUP.replace("rm half", "n=0; while [ $n -lt 20 ]; do n=$((n+1)); sleep 0.01; done\nrm half");
    let daemon = shop()
        .file("setup.sh", &slow)
        .file(".gitignore", "set-up\nhalf\n.env\n")
        .file(".worktreeinclude", ".env\n")
        .set("tree.setup", "[\"./setup.sh\"]")
        .set("tree.ports", "1")
        .build();
    fs::write(daemon.checkout().join(".env"), "A=1\n").unwrap();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    for place in ["tree-copied", "job-started", "tree-set-up"] {
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        daemon.wait_for_death();
    }
    // And in the middle of it.
    for _ in 0..2 {
        daemon.start();
        let half = daemon.tree(issue).join("half");
        daemon.wait_for("half a set-up", || half.exists().then_some(()));
        daemon.kill_daemon();
    }
    daemon.start();
    daemon.wait_closed(issue);
    let task = daemon.task(issue);
    assert_eq!(task["attempts"]["restarts"], 0, "{task}");
    assert_eq!(daemon.json(&["inbox"]), serde_json::json!([]));
    let session = daemon.session(issue);
    assert_eq!(session["generation"], 1, "no session was wasted: {session}");
}

#[test]
fn e2e_without_room_on_the_disk_no_tree_is_made_and_one_question_says_why() {
    let daemon = shop().set("tree.free_disk", "\"1000000GB\"").set("dev.concurrency", "2").start();
    let issues = [daemon.file_issue("Apples", &clean("apples")), daemon.file_issue("Pears", &clean("pears"))];
    let question = asked(&daemon, "disk");
    assert!(question["subject"].as_str().unwrap().contains("tree.free_disk"), "{question}");
    let text = daemon.json(&["inbox", "show", &question["id"].to_string()]).to_string();
    assert!(text.contains("projects/shop/"), "what takes the room: {text}");
    for issue in issues {
        daemon.wait_for("the task to wait for room", || {
            let facts = daemon.json(&["task", "explain", &issue.to_string()])["facts"].to_string();
            facts.contains("a new working tree needs at least").then_some(())
        });
        assert!(!daemon.tree(issue).exists());
    }
    let disk = daemon.json(&["inbox"]);
    assert_eq!(disk.as_array().unwrap().iter().filter(|asked| asked["kind"] == "disk").count(), 1, "{disk}");
    let file = daemon.checkout().join("pointsman.toml");
    let config = fs::read_to_string(&file).unwrap().replace("1000000GB", "1MB");
    fs::write(file, config).unwrap();
    for issue in issues {
        daemon.wait_closed(issue);
    }
    daemon.wait_for("the question to go", || {
        let inbox = daemon.json(&["inbox"]);
        (!inbox.to_string().contains("\"disk\"")).then_some(())
    });
}

/// How many tasks; `POINTSMAN_TREES` asks for more.
fn tasks() -> u64 {
    std::env::var("POINTSMAN_TREES").ok().and_then(|count| count.parse().ok()).unwrap_or(20)
}

#[test]
fn e2e_many_tasks_leave_no_trees_ports_processes_or_megabytes_behind() {
    let setup = "#!/bin/sh\n\
        (setsid sleep 1000 > /dev/null 2>&1 < /dev/null &)\n\
        head -c 3000000 /dev/zero > node_modules\n\
        cat .env > set-up\n";
    let daemon = shop()
        .file("setup.sh", setup)
        .file(".gitignore", "set-up\nnode_modules\n.env\n")
        .set("tree.setup", "[\"./setup.sh\"]")
        .set("tree.teardown", "[\"rm\", \"node_modules\"]")
        .set("tree.copy", "[\".env\"]")
        .set("tree.ports", "2")
        .set("dev.concurrency", "4")
        .build();
    fs::write(daemon.checkout().join(".env"), "A=1\n").unwrap();
    let issues: Vec<u64> = (0..tasks())
        .map(|n| daemon.file_issue(&format!("Fruit {n}"), &clean(&format!("fruit{n}"))))
        .collect();
    daemon.start();
    let mut most = 0;
    for issue in &issues {
        daemon.wait_for("a task to be closed", || {
            let store = Store::open_read_only(&daemon.state().join("pointsman.db")).ok()?;
            let tasks = store.tasks(Some(&ProjectName::new("shop").unwrap())).ok()?;
            let ports: Vec<u16> = tasks.iter().flat_map(|task| task.ports.clone()).collect();
            let distinct: BTreeSet<u16> = ports.iter().copied().collect();
            assert_eq!(distinct.len(), ports.len(), "two tasks have the same port: {ports:?}");
            most = most.max(ports.len());
            (daemon.task(*issue)["state"] == "closed" && daemon.is_settled(*issue)).then_some(())
        });
    }
    assert!(most >= 2, "tasks had ports");
    let sessions = daemon.state().join("projects/shop/sessions");
    let trees: Vec<_> = issues.iter().map(|issue| daemon.tree(*issue)).filter(|tree| tree.exists()).collect();
    let ports: Vec<u16> = issues.iter().flat_map(|issue| ports_of(&daemon, *issue)).collect();
    let processes = daemon.wait_for("no process to be left", || {
        let left = census::working_on(&sessions);
        left.is_empty().then_some(left)
    });
    let mut bytes = 0;
    let mut dirs = vec![sessions];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() { dirs.push(entry.path()) } else { bytes += meta.len() }
        }
    }
    let count = u64::try_from(issues.len()).unwrap();
    println!(
        "{count} tasks: {} trees, {} ports, {} processes and {} MB left",
        trees.len(),
        ports.len(),
        processes.len(),
        bytes >> 20
    );
    assert_eq!((trees.len(), ports.len(), processes.len()), (0, 0, 0));
    assert!(bytes < count * 256 * 1024, "{bytes} bytes of {count} tasks are left");
}

/// Plants whatever it can in its checkout, and fails if it finds what somebody else planted.
const PLANTS: &str = r#"#!/bin/sh
if [ -e planted ] || [ -e src/planted ] || grep -q poison src/lemons.txt ci.sh.d 2> /dev/null; then
    echo "somebody was here before"; exit 1
fi
test -z "$(git status --porcelain --ignored)" || { echo "not clean:"; git status --porcelain --ignored; exit 1; }
test "$(git rev-parse HEAD)" = "$POINTSMAN_SHA" || { echo "another commit"; exit 1; }
test ! -e .git/hooks/post-checkout || { echo "a hook"; exit 1; }
grep -q upperdir /proc/self/mountinfo && echo layered
echo poison > planted; echo poison > src/planted; echo poison >> src/lemons.txt; rm -f ci.sh.d/*
mkdir -p .git/hooks node_modules; echo poison > .git/hooks/post-checkout; echo poison > node_modules/x
git config core.fsmonitor /bin/false; echo '[core]' >> .git/config
rm -rf ci.sh.d; chmod 700 src; touch -d '2001-01-01' src
"#;

#[test]
fn e2e_what_a_branchs_ci_or_a_session_plants_no_other_run_ever_sees() {
    if !super::sandbox_works() {
        return;
    }
    let planting =
        format!("write planted.txt from a session\n{}\nexpect Merged\nphase done", super::adds("apples"));
    let daemon = shop()
        .file("ci.sh", PLANTS)
        .file("ci.sh.d/part", "a directory that a run removes\n")
        .set("merge.gate", "[\"./ci.sh\"]")
        .set("sandbox.mode", "\"require\"")
        .set("dev.concurrency", "2")
        .start();
    let first = daemon.file_issue("Apples", &planting);
    daemon.wait_closed(first);
    let others = [
        daemon.file_issue("Pears", &clean("pears")),
        daemon.file_issue("Plums", &clean("plums")),
        daemon.file_issue("Figs", &clean("figs")),
    ];
    for issue in others {
        daemon.wait_closed(issue);
        assert_eq!(daemon.task(issue)["attempts"]["ci_fixes"], 0);
    }
    assert_eq!(daemon.on_main("src/lemons.txt").unwrap(), "lemons 1 crown");
    let logs = daemon.state().join("projects/shop/logs");
    let logs = fs::read_dir(logs).unwrap().flatten().map(|entry| entry.path());
    let ci: Vec<String> = logs
        .filter(|path| path.to_string_lossy().contains("-ci-") || path.to_string_lossy().contains("-gate-"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let layered = ci.iter().filter(|log| log.contains("layered\n")).count();
    assert!(ci.len() >= 4 && layered == ci.len(), "every run was on layers: {ci:?}");
    let project = daemon.state().join("projects/shop");
    let count = |name: &str| fs::read_dir(project.join(name)).unwrap().count();
    daemon.wait_for("private layers to be gone", || (count("checkouts") == 0).then_some(()));
    assert_eq!(count("warm"), 1);
    let warm = fs::read_dir(project.join("warm")).unwrap().next().unwrap().unwrap().path().join("tree");
    assert_eq!(daemon.git_in(&warm, &["status", "--porcelain", "--ignored"]), "", "nobody wrote there");
}
