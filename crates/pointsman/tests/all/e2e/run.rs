//! Runs of formulas: step by step, and at the same step again when a session or the daemon dies.

use std::fs;

use pointsman::daemon::crash::RUN_NAMES;
use pointsman_testkit::{Setup, TestDaemon};
use serde_json::{Value, json};

use super::shop;

const FORMULA: &str = r#"name = "tidy"
description = "Tidies {{project}}"
version = 1
model = "sonnet"

[context]
files = ["src/lemons.txt"]

[[steps]]
id = "look"
title = "Look"
description = "Look at {{primary_branch}}."

[[steps]]
id = "sort"
title = "Sort"
description = "Sort."
needs = ["look"]

[[steps]]
id = "write"
title = "Write"
description = "Write."
needs = ["sort"]
"#;

/// Does the steps that its prompt does not call done, writes each down, and dies after each if it is told to.
const AGENT: &str = r#"
cp "$POINTSMAN_INBOX/0000-task.md" "$HOME/prompt-$POINTSMAN_SESSION"
env > "$HOME/env"
todo=$(grep '^## ' "$POINTSMAN_INBOX/0000-task.md" | grep -v '(done)' | sed 's/^## [0-9]*\. \([a-z]*\):.*/\1/')
for step in $todo; do
    while [ -e "$HOME/hold" ]; do sleep 0.05; done
    # A daemon that was killed before it had written down the session does not know it yet.
    for try in 1 2 3 4 5 6 7 8 9 10 11 12; do
        PROGRAM step done "$step" >> "$HOME/out" 2>&1 && echo "$step" >> "$HOME/steps" && break
        sleep 0.5
    done
    [ -e "$HOME/die" ] && kill -9 $$
done
cp "$HOME/result" "$POINTSMAN_RESULT_FILE"
echo 'tidied' > notes.txt
echo PHASE:done > "$PHASE_FILE"
read -r line
"#;

fn tidy() -> Setup {
    let agent = AGENT.replace("PROGRAM", env!("CARGO_BIN_EXE_pointsman"));
    shop().agent(&agent).file("formulas/tidy.toml", FORMULA)
}

fn home(daemon: &TestDaemon, name: &str) -> String {
    fs::read_to_string(daemon.path("home").join(name)).unwrap_or_default()
}

fn say(daemon: &TestDaemon, name: &str, text: &str) {
    fs::write(daemon.path("home").join(name), text).unwrap();
}

/// The terminals of runs that are there.
fn terminals(daemon: &TestDaemon) -> Vec<String> {
    let listed = daemon.tmux(&["list-sessions", "-F", "#{session_name}"]);
    listed.lines().filter(|name| name.starts_with("action-")).map(str::to_owned).collect()
}

/// The run when it is over and its session put away.
fn over(daemon: &TestDaemon, run: u64) -> Value {
    daemon.wait_for(&format!("run {run} to be over"), || {
        let shown: Value =
            serde_json::from_str(&daemon.run(&["run", "show", &run.to_string(), "--json"]).stdout).ok()?;
        // Put away as well: a daemon that is stopped before that would do it at its next start.
        (shown["open"] == false && terminals(daemon).is_empty()).then_some(shown)
    })
}

#[test]
fn e2e_a_formula_is_run_step_by_step() {
    let daemon = tidy().daemon_env("CODEBERG_TOKEN", "secret-1").start();
    say(&daemon, "result", r#"{"tidied": true}"#);
    let dry = daemon.json(&["formula", "run", "tidy", "--dry-run"]);
    assert_eq!((&dry["status"], &dry["step"]), (&"dry_run".into(), &"look".into()));
    assert_eq!(daemon.json(&["run", "list"]), json!([]), "nothing was done");

    say(&daemon, "hold", "");
    let begun = daemon.json(&["formula", "run", "tidy"]);
    assert_eq!((&begun["run"], &begun["session"]), (&1.into(), &"action-shop-1.1".into()));
    assert_eq!(daemon.run(&["formula", "run", "tidy"]).code, Some(3), "one at a time");
    daemon.wait_for("the session", || (terminals(&daemon) == ["action-shop-1"]).then_some(()));
    fs::remove_file(daemon.path("home/hold")).unwrap();
    let done = over(&daemon, 1);
    assert_eq!((&done["status"], &done["result"]["tidied"]), (&"done".into(), &true.into()), "{done}");
    assert_eq!(home(&daemon, "steps"), "look\nsort\nwrite\n");
    let prompt = home(&daemon, "prompt-action-shop-1.1");
    assert!(prompt.contains("Look at main.") && prompt.contains("Read first: src/lemons.txt"), "{prompt}");
    let env = home(&daemon, "env");
    assert!(env.contains("POINTSMAN_MODEL=sonnet") && !env.contains("secret-1"), "{env}");
    // What it changed is kept, what it used is gone.
    let kept = daemon.wait_for("its work to be kept", || daemon.rescues().pop());
    assert_eq!(kept["session"], "action-shop-1.1");
    let tree = daemon.state().join("projects/shop/sessions/action-shop-1/tree");
    daemon.wait_for("its tree to go", || (!tree.exists()).then_some(()));
    assert_eq!(daemon.phase_files(), [""; 0]);

    // A result that is none is no result; steps of somebody else's run are not ours to do.
    say(&daemon, "result", "approve everything");
    daemon.json(&["formula", "run", "tidy"]);
    let failed = over(&daemon, 2);
    assert_eq!(failed["status"], "failed");
    assert!(failed["reason"].as_str().unwrap().starts_with("its result is not JSON"), "{failed}");
    assert_eq!(daemon.run(&["step", "done", "look", "--session", "action-shop-2.1"]).code, Some(3));
    assert_eq!(daemon.run(&["formula", "run", "nothing"]).code, Some(4));
    assert_eq!(daemon.run(&["formula", "run", "run-dev"]).code, Some(3));

    say(&daemon, "hold", "");
    daemon.json(&["formula", "run", "tidy"]);
    daemon.wait_for("the session", || (terminals(&daemon) == ["action-shop-3"]).then_some(()));
    daemon.json(&["run", "stop", "3"]);
    assert_eq!(over(&daemon, 3)["status"], "stopped");
}

#[test]
fn e2e_a_run_resumes_at_the_step_where_its_session_died() {
    let daemon = tidy().start();
    say(&daemon, "result", "{}");
    say(&daemon, "die", "");
    daemon.json(&["formula", "run", "tidy"]);
    let done = over(&daemon, 1);
    assert_eq!((&done["status"], &done["generation"]), (&"done".into(), &3.into()), "{done}");
    assert_eq!(home(&daemon, "steps"), "look\nsort\nwrite\n", "each step once");
    let second = home(&daemon, "prompt-action-shop-1.2");
    assert!(
        second.contains("## 1. look: Look (done)") && second.contains("## 2. sort: Sort (continue here)"),
        "{second}"
    );
    let third = home(&daemon, "prompt-action-shop-1.3");
    assert!(third.contains("## 3. write: Write (continue here)"), "{third}");
}

#[test]
fn e2e_kill_the_daemon_at_every_step_of_a_run() {
    let daemon = tidy().build();
    say(&daemon, "result", "{}");
    for (round, place) in RUN_NAMES.into_iter().enumerate() {
        let _ = fs::remove_file(daemon.path("home/steps"));
        daemon.start_with(&[("POINTSMAN_CRASH_AT", place)]);
        // Its answer may be lost with the daemon; the run is not.
        daemon.run(&["formula", "run", "tidy"]);
        daemon.wait_for(&format!("the daemon to die at {place}"), || daemon.has_ended().then_some(()));
        daemon.kill_daemon();
        daemon.start();
        let run = u64::try_from(round).unwrap() + 1;
        let done = over(&daemon, run);
        assert_eq!((&done["status"], &done["generation"]), (&"done".into(), &1.into()), "{place}: {done}");
        assert_eq!(home(&daemon, "steps"), "look\nsort\nwrite\n", "{place}");
        let left = daemon.state().join(format!("projects/shop/sessions/action-shop-{run}/tree"));
        daemon.wait_for("its tree to be gone", || (!left.exists()).then_some(()));
        daemon.stop_daemon();
    }
}

#[test]
fn e2e_a_formula_is_run_without_a_terminal_and_is_through_after_its_turn() {
    let daemon = tidy().set("roles.action.runtime", "\"headless\"").start();
    say(&daemon, "result", r#"{"tidied": true}"#);
    daemon.json(&["formula", "run", "tidy"]);
    let done = over(&daemon, 1);
    assert_eq!((&done["status"], &done["result"]["tidied"]), (&"done".into(), &true.into()), "{done}");
    assert_eq!(home(&daemon, "steps"), "look\nsort\nwrite\n");
    let kept = daemon.wait_for("its work to be kept", || daemon.rescues().pop());
    assert_eq!(kept["session"], "action-shop-1.1");

    // A turn that dies after each step: the next session goes on behind it.
    for name in ["steps", "out"] {
        fs::remove_file(daemon.path("home").join(name)).unwrap();
    }
    say(&daemon, "die", "");
    daemon.json(&["formula", "run", "tidy"]);
    let done = over(&daemon, 2);
    assert_eq!(home(&daemon, "steps"), "look\nsort\nwrite\n", "{done}");
    assert!(home(&daemon, "prompt-action-shop-2.3").contains("(done)"));
}
