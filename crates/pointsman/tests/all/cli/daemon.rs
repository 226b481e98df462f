//! The commands that look at a running daemon and steer it.

use serde_json::Value;

use super::environment::Environment;

/// A project whose agent does nothing at all, with an issue.
fn prepared() -> Environment {
    let environment = Environment::with_repository();
    let phases = environment.path("phases");
    environment.write(
        "pointsman.toml",
        &format!(
            "name = \"shop\"\n[agent]\ncommand = [\"sleep\", \"1000\"]\n[dev]\nphase_dir = \"{}\"\n\
             [timing]\nstop_grace = \"200ms\"\nforge_poll = \"200ms\"\n",
            phases.display()
        ),
    );
    environment.run(&["project", "add", "."]).ok();
    environment.run(&["forge", "issue", "create", "--title", "#(touch x)", "--label", "backlog"]).ok();
    environment
}

pub(super) fn running() -> Environment {
    let environment = prepared();
    environment.run(&["up", "--detach"]).ok();
    environment
}

pub(super) fn working(tasks: &Value) -> bool {
    tasks[0]["state"] == "working" && tasks[0]["waiting_for"] == "the agent's next phase"
}

#[test]
fn a_task_is_seen_explained_and_steered() {
    let environment = running();
    environment.run(&["up"]).code(3).says("already running");
    environment.run(&["up", "--detach"]).ok();
    let tasks = environment.json_until(&["task", "list"], working);
    assert_eq!((&tasks[0]["issue"], &tasks[0]["title"]), (&1.into(), &"#(touch x)".into()));
    assert_eq!(tasks[0]["session"], "dev-shop-1.1");
    assert_eq!(environment.json(&["task", "show", "1"])["branch"], "pointsman/issue-1");

    let explained = environment.json(&["task", "explain", "1"]);
    for field in ["state", "facts", "waiting_for", "deadline", "history"] {
        assert!(!explained[field].is_null(), "{field} is missing in {explained}");
    }
    let began = explained["history"]
        .as_array()
        .unwrap()
        .iter()
        .any(|e| e["from"] == "backlog" && e["to"] == "working");
    assert!(began, "{explained}");
    assert!(environment.run(&["task", "explain", "1"]).ok().stdout.contains("session dev-shop-1.1 is alive"));

    let session = &environment.json(&["session", "list"])[0];
    assert_eq!(
        (&session["session"], &session["role"], &session["task"]),
        (&"dev-shop-1.1".into(), &"dev".into(), &1.into())
    );
    assert_eq!(session["tmux_session"], "dev-shop-1");
    assert!(session["pid"].is_number() && session["exit"].is_null(), "{session}");

    let status = environment.json(&["status"]);
    let daemon = status["daemon"]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap();
    let daemon = rustix::process::Pid::from_raw(daemon).unwrap();
    assert_eq!(rustix::process::getsid(Some(daemon)), Ok(daemon), "it has left our terminal");
    assert_eq!(status["projects"][0]["tasks"]["working"], 1);

    environment.run(&["task", "resume", "1"]).code(3);
    environment.run(&["session", "stop", "1"]).ok().says("pointsman task resume 1");
    let ended = environment.json_until(&["session", "list"], |sessions| !sessions[0]["exit"].is_null());
    assert_eq!(ended[0]["exit"], "stopped");
    environment.run(&["session", "attach", "1"]).code(3).says("has ended");
    environment.run(&["session", "logs", "1"]).ok();

    environment.run(&["down"]).ok();
    environment.run(&["down"]).code(5);
    assert_eq!(environment.json(&["task", "show", "1"])["state"], "paused");
    environment.run(&["task", "resume", "1"]).ok().says("The daemon is not running");
    assert_eq!(environment.json(&["task", "show", "1"])["state"], "working");
}

#[test]
fn events_are_lines_of_json_that_can_be_resumed() {
    let environment = running();
    environment.json_until(&["task", "list"], working);
    let events = |args: &[&str]| -> Vec<Value> {
        let answer = environment.run(&[&["events", "--json"], args].concat());
        answer.ok().stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = events(&["--since", "0"]);
    assert!(all.len() > 2, "{all:?}");
    for event in &all {
        for field in ["seq", "at", "kind", "project", "issue", "session", "data"] {
            assert!(event.get(field).is_some(), "{field} is missing in {event}");
        }
    }
    let first = all[0]["seq"].as_i64().unwrap();
    let later = events(&["--since", &first.to_string()]);
    assert_eq!(later.first().map(|event| &event["seq"]), all.get(1).map(|event| &event["seq"]));
    assert!(events(&["--kind", "session_started"]).iter().all(|event| event["kind"] == "session_started"));
}

#[test]
fn following_goes_on_as_things_happen_and_an_interrupt_is_130() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let environment = prepared();
    let mut child = environment
        .command(&["events", "--follow", "--json", "--since", "0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    environment.run(&["up", "--detach"]).ok();
    let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(event["seq"].is_number());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
