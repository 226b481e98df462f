//! SIGKILL of the daemon at every named place: after a restart every story ends as it should, and nobody sees anything
//! twice.
//!
//! Each place has a round: two issues of the cheapest story that leads there, and daemons that die there one after
//! another, the first at its first pass, the next at its second, until nobody comes by there any more. `POINTSMAN_KILLS=n`
//! has n daemons die in each round at most. A death before an effect leaves nothing behind in the world that could be found
//! again: the simulation has those.

use std::collections::BTreeSet;

use pointsman::daemon::crash::NAMES;
use pointsman_core::ids::ProjectName;
use pointsman_store::{EntryScope, EntryStatus, Store};
use pointsman_testkit::TestDaemon;
use serde_json::Value;

use super::{adds, shop};

/// So many daemons die in every round at least: two issues come by.
const LEAST_KILLS: u32 = 2;
/// And so many at most: places that are passed all the time, as transactions are, are not passed more often than this
/// before the time for a test is over.
const MOST_KILLS: u32 = 12;

/// Where one death would do for both issues if they came by together: the next daemon finds both sessions in tmux.
const ONE_BY_ONE: &str = "session-in-tmux";

/// What two issues go through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Story {
    /// The straight way to the main branch, with a review. The tree changes once more after CI: a tree is saved once
    /// as it is, whoever died over it, so a second save needs a second state of it, and that comes after the first
    /// death because only a living daemon tells of CI.
    Lands,
    /// The same, but a person takes it out of the merge queue for a while.
    LeavesTheQueue,
    /// A question, a `done` too early, and the end as blocked.
    Fails,
}

/// Every kind of effect, with the story that orders it.
const EFFECTS: [(&str, Story); 17] = [
    ("claim_issue", Story::Lands),
    ("start_session", Story::Lands),
    ("end_session", Story::Lands),
    ("sync_branch", Story::Lands),
    ("open_pull_request", Story::Lands),
    ("run_checks", Story::Lands),
    ("request_review", Story::Lands),
    ("enqueue", Story::Lands),
    ("deliver", Story::Lands),
    ("set_labels", Story::Lands),
    ("close_issue", Story::Lands),
    ("record_ci_result", Story::Lands),
    ("clean_up", Story::Lands),
    ("dequeue", Story::LeavesTheQueue),
    ("comment", Story::Fails),
    ("notify", Story::Fails),
    ("verify_merge", Story::Fails),
];

#[test]
fn e2e_kill_at_the_fixed_places() {
    let places = NAMES.into_iter().filter(|place| *place != ONE_BY_ONE);
    survive(2, places.map(|place| (place.to_owned(), Story::Lands)));
}

#[test]
fn e2e_kill_when_each_session_is_in_tmux() {
    assert!(NAMES.contains(&ONE_BY_ONE));
    survive(1, [(ONE_BY_ONE.to_owned(), Story::Lands)]);
}

#[test]
fn e2e_kill_after_each_effect() {
    survive(2, EFFECTS.map(|(kind, story)| (format!("after-{kind}"), story)));
}

/// One world for all these places, with so many tasks at the same time.
fn survive(at_once: u32, places: impl IntoIterator<Item = (String, Story)>) {
    let kills = std::env::var("POINTSMAN_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(MOST_KILLS);
    let gate = "#!/bin/sh\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";
    let daemon = shop()
        .reviewed()
        .file("gate.sh", gate)
        .set("merge.gate", "[\"./gate.sh\"]")
        .set("dev.concurrency", &at_once.to_string())
        .set("timing.phase_rescan", "\"100ms\"")
        .set("timing.stop_grace", "\"200ms\"")
        .build();
    let mut landed = Vec::new();
    for (round, (place, story)) in places.into_iter().enumerate() {
        let play = Play::file(&daemon, round, story);
        landed.extend(play.issues.into_iter().filter(|_| story != Story::Fails));
        let mut killed = 0;
        start(&daemon, &place, killed, kills);
        // Each daemon has the patience of one.
        while !daemon.wait_for(&format!("the play or a daemon to end, killed at {place}"), || {
            if daemon.has_ended() {
                return Some(false);
            }
            let tasks = play.tasks();
            play.go_on(&tasks);
            play.is_over(&tasks).then_some(true)
        }) {
            killed += 1;
            assert!(killed <= kills, "{place}: nobody killed this one\n{}", daemon.log());
            start(&daemon, &place, killed, kills);
        }
        assert!(killed >= LEAST_KILLS.min(kills), "{place} was passed only {killed} times");
        println!("{place}: {killed} daemons died");
        play.check(&place);
        // Not asked to stop: it may be about to die at its place once more.
        daemon.kill_daemon();
    }
    daemon.start();
    daemon.wait_for("the history of the queue to be right", || {
        let store = Store::open_read_only(&daemon.state().join("pointsman.db")).ok()?;
        let entries = store.queue_entries(&ProjectName::new("shop").unwrap(), EntryScope::All).unwrap();
        let last =
            |issue| entries.iter().rev().find(|entry| entry.issue == Some(issue)).map(|entry| entry.status);
        landed.iter().all(|issue| last(*issue) == Some(EntryStatus::Landed)).then_some(())
    });
}

/// The daemon after `killed` dead ones.
fn start(daemon: &TestDaemon, place: &str, killed: u32, kills: u32) {
    // What was killed in the middle of an effect is passed again by the next daemon, before anything new is. A fixed
    // place that was passed may not be: what lies behind it is found done.
    let again = if NAMES.contains(&place) && !place.ends_with("-commit") { 0 } else { killed };
    let at = format!("{place}:{}", again + 1);
    let told = [("POINTSMAN_CRASH_AT", at.as_str())];
    daemon.kill_daemon();
    daemon.start_with(if killed < kills { &told } else { &[] });
}

/// Two issues, and the people who look after them.
struct Play<'d> {
    daemon: &'d TestDaemon,
    story: Story,
    fruits: [String; 2],
    issues: [u64; 2],
}

impl<'d> Play<'d> {
    /// Files the issues; no daemon runs yet.
    fn file(daemon: &'d TestDaemon, round: usize, story: Story) -> Self {
        let fruits = ["apples", "pears"].map(|fruit| format!("{fruit}{round}"));
        let issues = fruits.each_ref().map(|fruit| {
            let script = match story {
                Story::Lands | Story::LeavesTheQueue => format!(
                    "{}\nexpect CI passed\nwrite notes.txt ripe\nphase awaiting_review\nexpect Merged\nphase done",
                    adds(fruit)
                ),
                Story::Fails => {
                    "phase escalate which?\nexpect Answer\nphase done\nexpect PR not merged yet\n\
                                 phase failed no use"
                        .to_owned()
                }
            };
            daemon.file_issue(fruit, &script)
        });
        if story == Story::LeavesTheQueue {
            std::fs::write(daemon.path("home/hold"), "").unwrap();
        }
        Self { daemon, story, fruits, issues }
    }

    /// The tasks as they are.
    fn tasks(&self) -> [Value; 2] {
        let tasks = self.daemon.json(&["task", "list"]);
        let find = |issue| tasks.as_array()?.iter().find(|t| t["issue"] == issue).cloned();
        self.issues.map(|issue| find(issue).unwrap_or_default())
    }

    /// People do what is to be done now. What fails because the daemon just died is done the next time.
    fn go_on(&self, tasks: &[Value; 2]) {
        let held = self.daemon.path("home/hold");
        if tasks.iter().all(|task| task["state"] == "paused" && task["session"].is_null()) {
            std::fs::remove_file(&held).unwrap();
            for issue in self.issues {
                self.daemon.run(&["task", "resume", &issue.to_string()]);
            }
        }
        for (issue, task) in self.issues.into_iter().zip(tasks) {
            let number = issue.to_string();
            match task["state"].as_str().unwrap_or_default() {
                "escalated" => {
                    self.daemon.run(&["task", "answer", &number, "This one."]);
                }
                "awaiting_review" if task["phase"] == "awaiting_review" && task["review"] == "none" => {
                    self.daemon.run(&["forge", "pr", "review", &task["pr"].to_string(), "--approve"]);
                }
                "merge_queue" if held.exists() => {
                    self.daemon.run(&["task", "pause", &number]);
                }
                // A daemon that died between the two orders.
                "paused" if !held.exists() => {
                    self.daemon.run(&["task", "resume", &number]);
                }
                _ => {}
            }
        }
    }

    fn is_over(&self, tasks: &[Value; 2]) -> bool {
        let end = match self.story {
            Story::Lands | Story::LeavesTheQueue => "closed",
            Story::Fails => "blocked",
        };
        let settled = |issue| self.daemon.is_settled(issue);
        tasks.iter().all(|task| task["state"] == end) && self.issues.into_iter().all(settled)
    }

    /// What users see in the end is what they would have seen without the kills.
    fn check(&self, place: &str) {
        let daemon = self.daemon;
        for (issue, fruit) in self.issues.into_iter().zip(&self.fruits) {
            let comments = daemon.comments(issue);
            match self.story {
                Story::Lands | Story::LeavesTheQueue => {
                    let subjects = daemon.main_log();
                    let landed = subjects.iter().filter(|s| **s == format!("Add {fruit}")).count();
                    assert_eq!(landed, 1, "{place}: {subjects:?}");
                    let requests = daemon.pull_requests();
                    let branch = format!("pointsman/issue-{issue}");
                    let own: Vec<_> = requests.iter().filter(|pr| pr["head"] == branch.as_str()).collect();
                    assert!(own.len() == 1 && own[0]["merged"] == true, "{place}: {own:?}");
                    assert_eq!(daemon.issue(issue)["state"], "closed", "{place}");
                    assert_eq!(daemon.labels(issue), [""; 0], "{place}");
                    assert_eq!(comments, [""; 0], "{place}");
                    assert!(!daemon.tree(issue).exists(), "{place}");
                }
                Story::Fails => {
                    assert_eq!(daemon.labels(issue), ["backlog", "blocked"], "{place}");
                    assert_eq!(comments.len(), 2, "{place}: a question and a diagnosis: {comments:?}");
                }
            }
            self.check_messages(place, issue);
        }
        let notices = daemon.notices();
        let keys: BTreeSet<&str> = notices.iter().filter_map(|n| n["key"].as_str()).collect();
        assert_eq!(keys.len(), notices.len(), "{place}: somebody was told twice: {notices:?}");
        assert_eq!(daemon.tmux_sessions(), [""; 0], "{place}");
        assert_eq!(daemon.phase_files(), [""; 0], "{place}");
    }

    /// No terminal showed the same message twice, and nobody had to be brought back.
    fn check_messages(&self, place: &str, issue: u64) {
        let sessions = self.daemon.sessions(issue);
        let expected = if self.story == Story::LeavesTheQueue { 2 } else { 1 };
        assert_eq!(sessions.len(), expected, "{place}: {sessions:?}");
        for session in sessions {
            let generation = session["generation"].to_string();
            let logs = ["session", "logs", &issue.to_string(), "--generation", &generation];
            let shown = self.daemon.run(&logs).stdout;
            let mut ids = BTreeSet::new();
            for (id, _) in shown.split("[pointsman m-").skip(1).filter_map(|rest| rest.split_once(']')) {
                assert!(ids.insert(id), "{place}: m-{id} came twice:\n{shown}");
            }
        }
    }
}
