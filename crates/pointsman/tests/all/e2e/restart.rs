//! The daemon goes and comes back while sessions live.

use pointsman_adapters::process;
use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_store::{Change, Memory, Store};
use pointsman_testkit::TestDaemon;
use serde_json::Value;

use super::{LAND, adds, shop};

/// A script that waits for a person in the middle.
fn asks(fruit: &str) -> String {
    format!("phase escalate which {fruit}?\nexpect Answer\n{}\n{LAND}", adds(fruit))
}

#[test]
fn e2e_a_new_daemon_adopts_the_sessions_it_finds() {
    let daemon = shop().set("dev.concurrency", "2").start();
    let issues = [daemon.file_issue("Apples", &asks("apples")), daemon.file_issue("Pears", &asks("pears"))];
    for issue in issues {
        daemon.wait_state(issue, "escalated");
    }
    let pids = issues.map(|issue| daemon.session_pid(issue));

    // Once it is killed, once it stops by itself: the sessions do not notice.
    daemon.restart();
    daemon.stop_daemon();
    assert_eq!(daemon.tmux_sessions().len(), 2);
    daemon.start();
    for issue in issues {
        daemon.answer(issue, "The red ones.");
        daemon.wait_closed(issue);
    }
    for (issue, pid) in issues.into_iter().zip(pids) {
        let sessions = daemon.sessions(issue);
        assert_eq!(sessions.len(), 1, "nothing was started again: {sessions:?}");
        assert_eq!(sessions[0]["pid"], pid);
        assert_eq!(daemon.comments(issue).len(), 1, "one question: {:?}", daemon.comments(issue));
    }
    assert_eq!(daemon.pull_requests().len(), 2);
}

#[test]
fn e2e_what_a_session_does_while_no_daemon_runs_counts_afterwards() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Plums", &asks("plums"));
    daemon.wait_state(issue, "escalated");
    let pid = daemon.session_pid(issue);
    daemon.answer(issue, "All of them.");
    daemon.wait_shown(issue, "got: Answer");
    daemon.kill_daemon();
    // The agent goes on, pushes, and writes its phase.
    daemon.wait_for("the agent to hand in its work", || {
        // Inside a sandbox the agent writes to a directory of its session; only a daemon shows it at the usual place.
        let usual = daemon.phase_file(issue);
        let own = daemon.session_files(issue).join("phases-1").join(usual.file_name().unwrap());
        let phase = std::fs::read_to_string(if own.exists() { own } else { usual }).unwrap_or_default();
        phase.contains("awaiting_ci").then_some(())
    });
    assert_eq!(daemon.main_log(), ["Open the shop"]);
    daemon.start();
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add plums", "Open the shop"]);
    assert_eq!(daemon.session(issue)["pid"], pid);
}

#[test]
fn e2e_an_agent_that_dies_while_no_daemon_runs_is_replaced() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Figs", &asks("figs"));
    daemon.wait_state(issue, "escalated");
    daemon.kill_daemon();
    daemon.kill_session(issue);
    daemon.start();
    daemon.answer(issue, "Dried ones.");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add figs", "Open the shop"]);
    let sessions = daemon.sessions(issue);
    assert_eq!(sessions.len(), 2, "{sessions:?}");
    assert_eq!(sessions[0]["exit"], "crashed");
    assert_eq!(sessions[1]["predecessor"], sessions[0]["session"]);
}

#[test]
fn e2e_a_program_of_a_killed_daemon_is_ended_however_early_it_was_killed() {
    // It leaves its group at once, and the first one never ends by itself.
    let ci = "#!/bin/sh\n[ -e \"$HOME/again\" ] && exit 0\ntouch \"$HOME/again\"\n\
              setsid sh -c 'echo $$ > \"$HOME/pid\"; exec sleep 600' &\nwait\n";
    let daemon = shop().file("ci.sh", ci).build();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    daemon.start_with(&[("POINTSMAN_CRASH_AT", "job-started")]);
    daemon.wait_for_death();
    let (pid, begun) = daemon.wait_for("the program to begin", || {
        let pid = std::fs::read_to_string(daemon.path("home/pid")).ok()?.trim().parse().ok()?;
        Some((pid, process::start_time(pid)?))
    });
    daemon.start();
    daemon.wait_closed(issue);
    assert!(!process::is_alive(pid, begun), "it was left running");
}

#[test]
fn e2e_what_a_killed_daemon_was_just_writing_is_swept_at_the_next_start() {
    let daemon = shop().build();
    // A kill between the writing of a file and its renaming; and another daemon of the same user that is not dead.
    let [left, written] =
        [".pointsman-draft-aB3dE6", ".pointsman-draft-Zz9Yy8"].map(|name| daemon.phases().join(name));
    std::fs::write(&left, "half").unwrap();
    let writer = std::fs::File::create(&written).unwrap();
    writer.lock().unwrap();
    daemon.start();
    assert_eq!(daemon.phase_files(), [".pointsman-draft-Zz9Yy8"]);
    writer.unlock().unwrap();
    daemon.restart();
    assert_eq!(daemon.phase_files(), [""; 0]);
}

#[test]
fn e2e_what_cannot_be_read_stands_still_and_is_told_once_while_the_rest_goes_on() {
    let daemon = shop().start();
    daemon.stop_daemon();
    // As a later program would leave it: with a form that this one does not know.
    let mut store = Store::open(&daemon.state().join("pointsman.db")).unwrap();
    let mut change = Change::new(Timestamp(1), "remembered");
    change.project = ProjectName::new("shop");
    let snapshot = serde_json::json!({ "open_pull_request": 12 });
    change.memories.push(Memory { name: "hand-in.gardener".to_owned(), version: 99, snapshot });
    store.commit(&[change]).unwrap();
    drop(store);
    daemon.start();
    daemon.restart();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    daemon.wait_closed(issue);

    let status = daemon.json(&["status"]);
    assert!(status["daemon"]["problems"].to_string().contains("hand-in.gardener"), "{status}");
    let checked = daemon.run(&["doctor", "--json"]);
    let checked: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    let checks = checked["checks"].as_array().unwrap();
    let unreadable: Vec<_> = checks.iter().filter(|check| check["id"] == "unreadable").collect();
    assert!(unreadable.len() == 1 && unreadable[0]["status"] == "fail", "{unreadable:?}");
    let events = lines(&daemon, &["events", "--json", "--kind", "unreadable"]);
    assert_eq!(events.len(), 1, "told once, however often a daemon starts: {events:?}");
    assert_eq!(events[0]["data"]["name"], "hand-in.gardener");
    let notices = daemon.notices();
    let told = notices.iter().filter(|notice| notice["body"].to_string().contains("hand-in.gardener"));
    assert_eq!(told.count(), 1, "{notices:?}");
    // It is as it was.
    let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
    assert_eq!(store.unreadable().unwrap()[0].version, 99);
}

#[test]
fn e2e_a_reader_of_the_log_goes_on_from_a_cursor() {
    let daemon = shop().start();
    let issue = daemon.file_issue("Apples", &format!("{}\n{LAND}", adds("apples")));
    daemon.wait_closed(issue);
    daemon.wait_settled(issue);
    daemon.stop_daemon();
    let all = lines(&daemon, &["events", "--json"]);
    let numbers: Vec<i64> = all.iter().map(|event| event["project_seq"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (1..=i64::try_from(all.len()).unwrap()).collect::<Vec<_>>(), "of one project");
    let middle = all.len() / 2;
    let cursor = all[middle]["cursor"].as_str().unwrap();
    assert_eq!(lines(&daemon, &["events", "--json", "--since", cursor]), all[middle + 1..]);
    let seq = all[middle]["seq"].to_string();
    assert_eq!(
        lines(&daemon, &["events", "--json", "--since", &seq]),
        all[middle + 1..],
        "the same by number"
    );
    assert_eq!(daemon.run(&["events", "--since", "yesterday"]).code, Some(2));
}

fn lines(daemon: &TestDaemon, arguments: &[&str]) -> Vec<Value> {
    let answer = daemon.run(arguments);
    answer.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
