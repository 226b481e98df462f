//! The working trees of runs: files, ports, set-up and tear-down as those of tasks have them.

use std::fs;

use pointsman_core::ids::ProjectName;
use pointsman_store::{RunScope, Store};
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::Value;

use super::{clean, shop};

const FORMULA: &str = "name = \"tidy\"\ndescription = \"Tidies\"\nversion = 1\n\n[[steps]]\nid = \"look\"\n\
    title = \"Look\"\ndescription = \"Look.\"\n";

/// Tells what it finds, and goes on when it is told to. Sessions of tasks follow the script of their issue.
const AGENT: &str = r#"
[ -n "$POINTSMAN_RUN" ] || exec PROGRAM rehearsal-agent
run=$(dirname "$POINTSMAN_RESULT_FILE")
{ echo "ports=$POINTSMAN_PORT_1,$POINTSMAN_PORT_2"; cat set-up .env; git status --porcelain; } > "$run/found.tmp" 2>&1
mv "$run/found.tmp" "$run/found"
while ! [ -e "$run/go" ]; do sleep 0.05; done
PROGRAM step done look > /dev/null
echo '{}' > "$POINTSMAN_RESULT_FILE"
echo PHASE:done > "$PHASE_FILE"
sleep 1000
"#;

/// Refuses to run in a tree that is not as git made it.
const SETUP: &str = "#!/bin/sh\n\
    test -z \"$(git status --porcelain)\" || { echo 'the tree is not clean'; git status --porcelain; exit 9; }\n\
    test ! -e half || exit 8\n\
    echo half > half\n\
    cat .env > /dev/null || exit 7\n\
    n=0; while [ $n -lt 20 ]; do n=$((n+1)); sleep 0.01; done\n\
    echo \"set up for ${POINTSMAN_RUN:-$ISSUE} with $POINTSMAN_PORT_1\" > set-up\n\
    rm half\n";

fn tidy() -> Setup {
    shop()
        .agent(&AGENT.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman")))
        .file("formulas/tidy.toml", FORMULA)
        .file("setup.sh", SETUP)
        .file("teardown.sh", "#!/bin/sh\necho \"torn down $POINTSMAN_PORT_1, $(cat set-up)\"\n")
        .file(".gitignore", "set-up\nhalf\n")
        .file(".worktreeinclude", ".env\n")
        .set("tree.setup", "[\"./setup.sh\"]")
        .set("tree.teardown", "[\"./teardown.sh\"]")
        .set("tree.ports", "2")
}

fn with_env(daemon: &TestDaemon) {
    fs::write(daemon.checkout().join(".env"), "COLOUR=green\n").unwrap();
}

fn ports_of(daemon: &TestDaemon, run: u64) -> Vec<u16> {
    let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
    let runs = store.runs(&ProjectName::new("shop").unwrap(), RunScope::Last(10)).unwrap();
    runs.into_iter().find(|known| known.id.0 == run).map(|run| run.ports).unwrap_or_default()
}

fn files_of(daemon: &TestDaemon, run: u64) -> std::path::PathBuf {
    daemon.state().join(format!("projects/shop/sessions/action-shop-{run}"))
}

fn found(daemon: &TestDaemon, run: u64, generation: u32) -> String {
    let path = files_of(daemon, run).join(format!("run-{generation}/found"));
    daemon.wait_for("the agent to look around", || fs::read_to_string(&path).ok())
}

/// Lets the agent finish, and answers the run when it is put away.
fn over(daemon: &TestDaemon, run: u64, generation: u32) -> Value {
    let _ = fs::write(files_of(daemon, run).join(format!("run-{generation}/go")), "");
    daemon.wait_for(&format!("run {run} to be over"), || {
        let shown = daemon.json(&["run", "show", &run.to_string()]);
        (shown["open"] == false).then_some(shown)
    })
}

fn question(daemon: &TestDaemon, owner: &str) -> Value {
    daemon.wait_for(&format!("a question of {owner}"), || {
        let inbox = daemon.json(&["inbox"]);
        let mut asked = inbox.as_array()?.iter();
        asked
            .find(|one| one["kind"] == "setup" && one["owner"].as_str().is_some_and(|of| of.contains(owner)))
            .cloned()
    })
}

#[test]
fn e2e_the_tree_of_a_run_is_set_up_once_with_its_files_and_ports() {
    let daemon = tidy().build();
    with_env(&daemon);
    daemon.start();
    daemon.json(&["formula", "run", "tidy"]);
    let first = found(&daemon, 1, 1);
    let ports = ports_of(&daemon, 1);
    assert_eq!(ports.len(), 2, "{first}");
    let expected = format!("ports={},{}\nset up for 1 with {}\nCOLOUR=green\n", ports[0], ports[1], ports[0]);
    // The copied file is no part of the work.
    assert_eq!(first, expected);
    // Once per tree: what the set-up would find fault with is there by now, and nobody looks.
    fs::write(files_of(&daemon, 1).join("tree/half"), "of an agent").unwrap();
    let sessions = daemon.json(&["session", "list"]);
    let session = sessions.as_array().unwrap().iter().find(|one| one["session"] == "action-shop-1.1");
    let pid = session.unwrap_or_else(|| panic!("{sessions}"))["pid"].as_i64().unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    assert_eq!(found(&daemon, 1, 2), expected);
    let done = over(&daemon, 1, 2);
    assert_eq!(done["status"], "done", "{done}");
    assert!(ports_of(&daemon, 1).is_empty() && !files_of(&daemon, 1).join("tree").exists());
    let log = daemon.state().join("projects/shop/logs/action-shop-1-teardown.log");
    assert_eq!(
        fs::read_to_string(log).unwrap(),
        format!("torn down {}, set up for 1 with {}\n", ports[0], ports[0])
    );
    for rescue in daemon.rescues() {
        let named = rescue["ref"].as_str().unwrap_or_default();
        let captures = daemon.state().join("projects/shop/captures.git");
        let files = daemon.git_in(&captures, &["ls-tree", "-r", "--name-only", named]);
        assert!(!files.contains(".env"), "{rescue}: {files}");
    }
}

#[test]
fn e2e_a_set_up_that_fails_asks_for_a_run_as_for_a_task_and_one_yes_is_for_all() {
    let daemon = tidy().start();
    daemon.json(&["formula", "run", "tidy"]);
    let asked = question(&daemon, "run/1");
    let text = daemon.json(&["inbox", "show", &asked["id"].to_string()]).to_string();
    assert!(text.contains("the set-up of its working tree failed") && text.contains(".env"), "{text}");
    let issue = daemon.file_issue("Apples", &clean("apples"));
    let of_task = question(&daemon, "task/");
    assert_eq!(of_task["issue"], issue, "{of_task}");
    let run = daemon.json(&["run", "show", "1"]);
    assert_eq!((&run["open"], &run["generation"]), (&true.into(), &1.into()), "{run}");
    with_env(&daemon);
    daemon.json(&["inbox", "approve", &asked["id"].to_string()]);
    daemon.wait_closed(issue);
    assert!(found(&daemon, 1, 2).contains("set up for 1"));
    assert_eq!(over(&daemon, 1, 2)["status"], "done");
    assert_eq!(daemon.json(&["inbox"]), serde_json::json!([]));

    // A no gives the run up.
    fs::remove_file(daemon.checkout().join(".env")).unwrap();
    daemon.json(&["formula", "run", "tidy"]);
    let asked = question(&daemon, "run/2");
    daemon.json(&["inbox", "reject", &asked["id"].to_string(), "--body", "not today"]);
    let stopped = over(&daemon, 2, 1);
    assert_eq!(stopped["status"], "stopped", "{stopped}");
    assert!(ports_of(&daemon, 2).is_empty() && !files_of(&daemon, 2).join("tree").exists());
}

#[test]
fn e2e_the_set_up_of_a_run_that_is_killed_at_any_instant_repeats_cleanly() {
    let daemon = tidy().build();
    with_env(&daemon);
    let mut is_begun = false;
    for place in ["tree-copied", "job-started", "tree-set-up", "run-session-prepared"] {
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        if !std::mem::replace(&mut is_begun, true) {
            // Its answer may be lost with the daemon; the run is not.
            daemon.run(&["formula", "run", "tidy"]);
        }
        daemon.wait_for_death();
    }
    daemon.start();
    assert!(found(&daemon, 1, 1).contains("set up for 1"), "no session was wasted");
    assert_eq!(over(&daemon, 1, 1)["status"], "done");
    assert_eq!(daemon.json(&["inbox"]), serde_json::json!([]));
}
