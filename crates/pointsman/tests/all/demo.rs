//! The whole play, by the built program: real git, real tmux, real processes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_adapters::process::{End, JobEnd, Run};
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

/// What the progress of a demo without a terminal tells.
fn assert_told(said: &str) {
    for news in [
        "was killed. A new session goes on in the same working tree",
        "has no context left. It saved its work, and a new session takes over",
        "conflicts with what landed before it",
        "asks a person: What do bananas cost?",
        "wants ring-the-bell. The vault asks a person first",
        "kill -9: the daemon is gone",
        "the daemon is back and found every session",
    ] {
        assert_eq!(said.matches(news).count(), 1, "{news}: {said}");
    }
    // Without the time, no two lines in a row about a task are the same.
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for line in said.lines().filter(|line| line.contains("  shop #") || line.contains("  market #")) {
        let (_, told) = line.split_once(" s  ").unwrap();
        let task: String = told.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        assert_ne!(last.insert(task, told.to_owned()).as_deref(), Some(told), "{said}");
    }
}

#[test]
fn e2e_every_story_goes_as_told_and_nothing_is_left() {
    let cache = tempfile::tempdir().unwrap();
    let pictures = tempfile::tempdir().unwrap();
    let picture = pictures.path().join("demo.svg");
    let done = demo(cache.path()).args(["--json", "--svg", picture.to_str().unwrap()]).finish().unwrap();
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
    assert_told(&said);
    let picture = fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("The vault asks a person first"), "{picture}");
    // Progress of a demo without a terminal is plain.
    assert!(!said.contains('\u{1b}'), "{said}");
}

/// A demo whose first sessions are at work.
struct Begun {
    pid: Pid,
    log: PathBuf,
    waiting: std::thread::JoinHandle<JobEnd>,
}

fn begin(cache: &Path, log: PathBuf) -> Begun {
    let job = demo(cache).start_job(&log).unwrap();
    let pid = Pid::from_raw(job.pid().cast_signed()).unwrap();
    let waiting = std::thread::spawn(move || job.wait(LIMIT).unwrap());
    pointsman_testkit::eventually("a session gets to work", LIMIT, || {
        assert!(!waiting.is_finished(), "the demo ended: {}", fs::read_to_string(&log).unwrap());
        fs::read_to_string(&log).unwrap_or_default().contains("awaiting_ci").then_some(())
    });
    Begun { pid, log, waiting }
}

#[test]
fn e2e_an_interrupted_demo_cleans_up_and_says_so_by_its_exit_code() {
    // A terminal that is closed sends two.
    for signals in [&[Signal::INT][..], &[Signal::HUP, Signal::HUP]] {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("cache");
        let begun = begin(&cache, dir.path().join("log"));
        for signal in signals {
            kill_process(begun.pid, *signal).unwrap();
        }
        assert_eq!(begun.waiting.join().unwrap().end, End::Exited(130));
        assert!(is_empty(&cache), "{}", fs::read_to_string(&begun.log).unwrap());
    }
}

#[test]
fn e2e_what_a_killed_demo_leaves_is_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    let killed = begin(&cache, dir.path().join("killed"));
    let root = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    let run = PathBuf::from(fs::read_to_string(root.join("run")).unwrap());
    kill_process(killed.pid, Signal::KILL).unwrap();
    killed.waiting.join().unwrap();
    assert!(root.exists() && run.exists(), "it had no time to clean up");
    let next = begin(&cache, dir.path().join("next"));
    assert!(!root.exists() && !run.exists(), "{}", fs::read_to_string(&next.log).unwrap());
    kill_process(next.pid, Signal::TERM).unwrap();
    assert_eq!(next.waiting.join().unwrap().end, End::Exited(130));
    assert!(is_empty(&cache));
}
