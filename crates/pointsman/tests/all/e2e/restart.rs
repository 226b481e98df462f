//! The daemon goes and comes back while sessions live.

use pointsman_adapters::process;

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
        let phase = std::fs::read_to_string(daemon.phase_file(issue)).unwrap_or_default();
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
