//! R1.1–R1.8: who is there, as files that anybody can read.

use std::collections::BTreeSet;

use serde_json::json;

use super::{clean, identity_file, read, shop, signals, wait_file};

/// Looks for its own files before it does anything else.
const LOOKS_FIRST: &str = r#"
state=$HOME/../shop/.claude/state
cp "$state/identities/dev-shop-1.json" "$HOME/identity.json"
cp "$state/hooks/dev-shop-1.json" "$HOME/hook.json"
touch "$HOME/looked"
while read -r line; do :; done
"#;

const WORK_STATE: [&str; 9] = [
    "identity_name",
    "current_bead",
    "current_node",
    "work_phase",
    "work_summary",
    "last_checkpoint_at",
    "files_modified",
    "tests_status",
    "resumption_instructions",
];

/// What a script finds about an identity, in the file and in `agents --json`.
pub(crate) const SCHEMA: [&str; 16] = [
    "role",
    "name",
    "session_id",
    "pid",
    "tmux_session",
    "node_id",
    "bead_id",
    "worktree_path",
    "hook_path",
    "created_at",
    "last_seen",
    "status",
    "predecessor_id",
    "host",
    "generation",
    "model",
];

#[test]
fn e2e_r1_1_r1_2_r1_3_r2_1_r2_2_r2_7_ac_1_1_ac_2_1_a_session_finds_its_identity_and_work_state_when_it_starts()
 {
    let daemon = shop().agent(LOOKS_FIRST).build();
    let issue = daemon.file_issue_with("Apples", "Please.");
    // Nobody is there to say any more than was said before the start.
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "session-in-tmux")]);
    daemon.wait_for_death();
    daemon.wait_for("the agent to look", || daemon.path("home/looked").exists().then_some(()));

    let found = read(&daemon.path("home/identity.json"));
    let keys: BTreeSet<&str> = found.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(SCHEMA));
    assert_eq!(found["role"], "dev");
    assert_eq!(found["name"], "shop-1");
    assert_eq!(found["session_id"], "dev-shop-1.1");
    assert_eq!(found["tmux_session"], "dev-shop-1");
    assert_eq!(found["worktree_path"], daemon.tree(issue).to_str().unwrap());
    assert_eq!(found["hook_path"], super::hook_file(&daemon, issue).to_str().unwrap());
    assert_eq!(found["predecessor_id"], serde_json::Value::Null);
    assert_eq!(found["status"], "starting", "it was written before the start");

    let hook = read(&daemon.path("home/hook.json"));
    let keys: BTreeSet<&str> = hook.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(WORK_STATE));
    assert_eq!(hook["identity_name"], "dev-shop-1");
    assert_eq!(hook["work_phase"], "investigation");
    assert_eq!(hook["work_summary"], "Apples");

    // With its process as soon as that is known, and out of the way of git.
    daemon.start();
    let now = wait_file(&daemon, &identity_file(&daemon, issue), |v| v["status"] == "active");
    assert_eq!(now["pid"], daemon.session_pid(issue));
    assert_eq!(daemon.git_in(&daemon.checkout(), &["status", "--porcelain"]), "?? pointsman.toml");
    let files = std::fs::read_dir(identity_file(&daemon, issue).parent().unwrap()).unwrap();
    let names: BTreeSet<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    let others = names.iter().filter(|name| !name.starts_with("daemon-") || !name.ends_with(".json"));
    assert_eq!(others.collect::<Vec<_>>(), ["dev-shop-1.json"], "no draft of a file is left");
}

#[test]
fn e2e_r1_4_ac_1_2_last_seen_moves_while_a_session_lives() {
    let daemon = shop().set("timing.heartbeat", "\"200ms\"").start();
    let issue = daemon.file_issue("Apples", "say at work\nhang");
    daemon.wait_shown(issue, "at work");
    let file = identity_file(&daemon, issue);
    let first = wait_file(&daemon, &file, |v| v["status"] == "active");
    let later = wait_file(&daemon, &file, |v| v["last_seen"].as_str() > first["last_seen"].as_str());
    assert_eq!(later["created_at"], first["created_at"]);
    assert_eq!(later["pid"], first["pid"]);
}

#[test]
fn e2e_r1_7_a_clean_end_is_terminated_and_a_death_is_crashed() {
    let daemon = shop().set("limits.restarts", "0").set("dev.concurrency", "2").start();
    let lands = daemon.file_issue("Apples", &clean("apples"));
    let dies = daemon.file_issue("Pears", "say at work\ncrash");
    daemon.wait_closed(lands);
    daemon.wait_state(dies, "blocked");
    wait_file(&daemon, &identity_file(&daemon, lands), |v| v["status"] == "terminated");
    wait_file(&daemon, &identity_file(&daemon, dies), |v| v["status"] == "crashed");
    let signals = super::signals(&daemon, dies);
    assert!(signals.ends_with(&["AGENT_CRASHED".to_owned()]), "{signals:?}");
    let signals = super::signals(&daemon, lands);
    assert!(signals.contains(&"AGENT_TERMINATED".to_owned()), "{signals:?}");
    assert!(!signals.contains(&"AGENT_CRASHED".to_owned()), "{signals:?}");
}

#[test]
fn e2e_r1_8_ac_1_4_a_replacement_carries_its_predecessor() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "say at work\nhang");
    daemon.wait_shown(issue, "at work");
    daemon.kill_session(issue);
    let pid = daemon.wait_session(issue, 2);
    let file = wait_file(&daemon, &identity_file(&daemon, issue), |v| v["pid"] == pid);
    assert_eq!(file["session_id"], "dev-shop-1.2");
    assert_eq!(file["predecessor_id"], "dev-shop-1.1");
    assert_eq!(file["generation"], 2);
}

#[test]
fn e2e_r1_7_a_program_that_ends_by_itself_is_terminated_and_one_that_fails_has_crashed() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "say bye\nexit 0\nsay worse\nexit 3\nsay at work\nhang");
    daemon.wait_session(issue, 3);
    let exits: Vec<_> = daemon.sessions(issue).iter().map(|s| s["exit"].clone()).collect();
    assert_eq!(exits, ["exited".into(), "crashed".into(), serde_json::Value::Null]);
    let agents = daemon.json(&["agents", "--all"]);
    let statuses: Vec<_> = agents.as_array().unwrap().iter().map(|a| a["status"].clone()).collect();
    assert_eq!(statuses, ["terminated", "crashed", "active", "active"], "the last is the daemon");
    let ends =
        signals(&daemon, issue).into_iter().filter(|s| s.starts_with("AGENT_") && s != "AGENT_REGISTERED");
    assert_eq!(ends.collect::<Vec<_>>(), ["AGENT_TERMINATED", "AGENT_CRASHED"]);
}

#[test]
fn e2e_r1_6_an_agent_whose_process_is_stopped_is_yellow_until_it_goes_on() {
    // In a terminal tmux itself lets it go on.
    let daemon = shop().set("roles.dev.runtime", "\"headless\"").start();
    let issue = daemon.file_issue("Apples", "say at work\nhang");
    daemon.wait_session(issue, 1);
    let agent = || daemon.json(&["agents"])[0].clone();
    let pid = i32::try_from(agent()["pid"].as_u64().unwrap()).unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    assert_eq!(agent()["liveness"], "green");
    for (signal, colour) in
        [(rustix::process::Signal::STOP, "yellow"), (rustix::process::Signal::CONT, "green")]
    {
        rustix::process::kill_process(pid, signal).unwrap();
        daemon.wait_for(colour, || (agent()["liveness"] == colour).then_some(()));
    }
}

/// Asks, hears nothing, does nothing; with the answer it is busy for good.
const SILENT: &str = r#"
read -r greeting
echo PHASE:escalate > "$PHASE_FILE"
read -r answer
while :; do read -r -t 0.01 line; done
"#;

#[test]
fn e2e_r1_6_an_agent_that_gives_no_sign_is_yellow_until_it_does_something() {
    let daemon = shop().staged().agent(SILENT).start();
    let issue = daemon.file_issue_with("Apples", "please");
    daemon.wait_state(issue, "escalated");
    let agent = || daemon.json(&["agents"])[0].clone();
    assert_eq!(agent()["liveness"], "green");
    // Half a minute between two looks, five minutes until it is stale.
    let mut minutes = 0;
    let mut until = |colour: &str| {
        daemon.wait_for(colour, || {
            minutes += 1;
            daemon.stage(&json!({ "ahead_ms": minutes * 60_000 }));
            (agent()["liveness"] == colour).then_some(())
        });
    };
    until("yellow");
    assert_eq!(daemon.task(issue)["state"], "escalated", "it is not dead");
    daemon.run(&["task", "answer", &issue.to_string(), "Go on."]);
    until("green");
}

#[test]
fn e2e_r1_5_the_daemon_has_an_identity_whose_last_seen_goes_on_while_its_loop_turns() {
    let daemon = shop().staged().start();
    let listed = |all: &[&str]| {
        let agents = daemon.json(&[&["agents"], all].concat());
        let agents = agents.as_array().unwrap().clone();
        agents.into_iter().find(|agent| agent["role"] == "daemon")
    };
    let own = daemon.wait_for("the daemon's line", || listed(&[]));
    assert_eq!((&own["pid"], &own["liveness"]), (&json!(daemon.pid()), &json!("green")), "{own}");
    let name = format!("daemon-{}.json", own["name"].as_str().unwrap());
    let file = daemon.checkout().join(".claude/state/identities").join(name);
    wait_file(&daemon, &file, |shown| shown["session_id"] == own["session_id"]);
    daemon.stage(&json!({ "ahead_ms": 61_000 }));
    wait_file(&daemon, &file, |shown| shown["last_seen"] != own["last_seen"]);

    // Frozen: its process is there and nothing turns. Killed: it could not say so. Ended: it did.
    let pid = rustix::process::Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    daemon.stage(&json!({ "ahead_ms": 600_000 }));
    assert_eq!(listed(&[]).unwrap()["liveness"], "yellow");
    rustix::process::kill_process(pid, rustix::process::Signal::CONT).unwrap();
    daemon.kill_daemon();
    assert_eq!(listed(&[]).unwrap()["liveness"], "red");
    daemon.start();
    daemon.wait_for("the next daemon", || (listed(&[])?["liveness"] == "green").then_some(()));
    assert_eq!(daemon.run(&["down"]).code, Some(0));
    daemon.wait_for("its end", || listed(&[]).is_none().then_some(()));
    assert_eq!(listed(&["--all"]).unwrap()["liveness"], "gray");
}
