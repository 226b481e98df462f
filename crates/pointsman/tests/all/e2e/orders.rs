//! People steer.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{LAND, adds, clean, shop};

#[test]
fn e2e_a_paused_task_goes_on_where_it_was() {
    let daemon = shop().start();
    let script = format!("write src/apples.txt half\nsay at work\nexpect Answer\n{}\n{LAND}", adds("apples"));
    let issue = daemon.file_issue("Apples", &script);
    let number = issue.to_string();
    daemon.wait_shown(issue, "at work");
    daemon.json(&["task", "pause", &number]);
    daemon.wait_settled(issue);
    let task = daemon.task(issue);
    assert_eq!((&task["state"], &task["reason"]), (&"paused".into(), &"paused by a person".into()));
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.session(issue)["exit"], "stopped");
    assert!(daemon.tree(issue).join("src/apples.txt").exists());
    assert_eq!(daemon.run(&["task", "pause", &number]).code, Some(3));

    daemon.json(&["task", "resume", &number]);
    daemon.wait_session(issue, 2);
    daemon.json(&["session", "send", &number, "Go on."]);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert_eq!(daemon.task(issue)["attempts"]["restarts"], 0, "nothing had crashed");
}

#[test]
fn e2e_a_stopped_task_is_blocked_until_a_person_starts_it() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", "write src/apples.txt half\nsay at work\nhang");
    let number = issue.to_string();
    daemon.wait_shown(issue, "at work");
    assert_eq!(daemon.run(&["task", "start", &number]).code, Some(3));
    assert_eq!(daemon.run(&["task", "resume", &number]).code, Some(3));
    daemon.json(&["task", "stop", &number]);
    daemon.wait_settled(issue);
    let task = daemon.wait_state(issue, "blocked");
    assert_eq!(task["reason"], "stopped by a person");
    assert_eq!(daemon.session(issue)["exit"], "stopped");
    assert_eq!(daemon.tmux_sessions(), [""; 0]);
    assert_eq!(daemon.labels(issue), ["backlog", "blocked"]);

    daemon.json(&["task", "start", &number]);
    daemon.wait_session(issue, 2);
    assert!(daemon.prompt(issue, 2).contains("src/apples.txt"), "it finds its work again");
    assert_eq!(daemon.labels(issue), ["in-progress"]);
}

#[test]
fn e2e_a_task_paused_in_the_queue_does_not_land() {
    let gate = "#!/bin/sh\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";
    let daemon = shop().file("gate.sh", gate).set("merge.gate", "[\"./gate.sh\"]").build();
    std::fs::write(daemon.path("home/hold"), "").unwrap();
    daemon.start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    let number = issue.to_string();
    daemon.wait_for("it to be tested", || {
        (daemon.json(&["merge-queue", "list"])[0]["status"] == "testing").then_some(())
    });
    daemon.json(&["task", "pause", &number]);
    daemon.wait_settled(issue);
    std::fs::remove_file(daemon.path("home/hold")).unwrap();
    let history = || daemon.json(&["merge-queue", "history"]);
    daemon.wait_for("the entry to be removed", || {
        history().as_array().is_some_and(|h| h.iter().any(|e| e["status"] == "removed")).then_some(())
    });
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    daemon.json(&["task", "resume", &number]);
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
}

/// Nobody who only wants to look waits for a daemon that is frozen.
#[test]
fn e2e_reading_commands_answer_while_the_daemon_is_frozen_and_say_so() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", &clean("apples"));
    daemon.wait_closed(issue);
    let frozen = Frozen::new(daemon.pid());
    let number = issue.to_string();
    let forge: &[&[&str]] = &[
        &["forge", "issue", "list", "--state", "all"],
        &["forge", "issue", "show", &number],
        &["forge", "pr", "list", "--state", "all"],
    ];
    for command in forge.iter().chain(&[&["health"][..]]) {
        let answer = daemon.run(command);
        assert_eq!(answer.code, Some(0), "{command:?}: {answer:?}");
        assert!(answer.stderr.contains("The daemon does not answer."), "{command:?}: {answer:?}");
    }
    assert!(daemon.run(forge[0]).stdout.contains("Apples"));
    let status = daemon.json(&["status"]);
    assert_eq!((&status["daemon"], &status["daemon_silent"]), (&Value::Null, &Value::Bool(true)));
    assert!(daemon.run(&["status"]).stdout.contains("daemon does not answer"));
    let check = |name: &str| {
        let doctor: Value = serde_json::from_str(&daemon.run(&["doctor", "--json"]).stdout).unwrap();
        let checks = doctor["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["id"] == name).unwrap()
    };
    assert_eq!(check("daemon")["status"], "fail");
    drop(frozen);
    let status = daemon.json(&["status"]);
    assert_eq!((&status["daemon"]["pid"], &status["daemon_silent"]), (&daemon.pid().into(), &false.into()));
}

/// A process that is stopped until this goes.
struct Frozen(Pid);

impl Frozen {
    fn new(pid: u32) -> Self {
        let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}
