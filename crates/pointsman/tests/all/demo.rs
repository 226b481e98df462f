//! The whole play, by the built program: real git, real tmux, real processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use pointsman_adapters::process::{End, Run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The demo's own limit is two minutes.
const LIMIT: Duration = Duration::from_secs(150);

fn demo(cache: &Path) -> Run {
    let run = Run::new(env!("CARGO_BIN_EXE_pointsman")).arg("demo").inherit(&["PATH", "HOME", "TERM"]);
    run.env("XDG_CACHE_HOME", cache).time_limit(LIMIT)
}

fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn e2e_every_story_goes_as_told_and_nothing_is_left() {
    let cache = tempfile::tempdir().unwrap();
    let done = demo(cache.path()).arg("--json").finish().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.end, End::Exited(0), "{said}");

    let board: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(board["ok"], Value::Bool(true));
    assert!(board["seconds"].is_number());
    let tasks = board["tasks"].as_array().unwrap();
    let told = |key: &str| -> Vec<&str> { tasks.iter().map(|t| t[key].as_str().unwrap()).collect() };
    let stories = [
        "clean",
        "ci_fix",
        "changes_requested",
        "killed",
        "dependency",
        "dependency",
        "escalation",
        "hopeless",
        "handoff",
        "daemon_killed",
        "conflict",
        "conflict",
        "trio",
        "trio",
        "trio",
        "review",
        "vault",
    ];
    assert_eq!(told("story"), stories);
    let outcomes: Vec<&str> =
        stories.iter().map(|story| if *story == "hopeless" { "blocked" } else { "merged" }).collect();
    assert_eq!(told("outcome"), outcomes);
    assert_eq!(tasks[3]["sessions"], 2, "a killed session has a successor");
    assert_eq!(tasks[8]["sessions"], 2, "a full context is handed over");
    assert_eq!(tasks[9]["sessions"], 1, "a session outlives the daemon");
    let states =
        |task: &Value| task["states"].as_array().unwrap().iter().filter(|s| *s == "merge_queue").count();
    assert_eq!([states(&tasks[10]), states(&tasks[11])], [1, 2], "the second of two that want the same line");
    assert!(is_empty(cache.path()), "{said}");
    // Progress of a demo without a terminal is plain.
    assert!(!said.contains('\u{1b}'), "{said}");
}

#[test]
fn e2e_an_interrupted_demo_cleans_up_and_says_so_by_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let (cache, log) = (dir.path().join("cache"), dir.path().join("log"));
    let job = demo(&cache).start_job(&log).unwrap();
    let pid = Pid::from_raw(job.pid().cast_signed()).unwrap();
    let waiting = std::thread::spawn(move || job.wait(LIMIT).unwrap());
    pointsman_testkit::eventually("a session gets to work", LIMIT, || {
        assert!(!waiting.is_finished(), "the demo ended");
        fs::read_to_string(&log).unwrap_or_default().contains("awaiting_ci").then_some(())
    });
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(waiting.join().unwrap().end, End::Exited(130));
    assert!(is_empty(&cache), "{}", fs::read_to_string(&log).unwrap());
}
