//! The disk is full for a while.

use std::process::Command;

use super::shop;

/// Sets how large a file the daemon may write; what it wrote before stays. Sessions are not limited.
fn limit_files(daemon: &pointsman_testkit::TestDaemon, bytes: &str) {
    let pid = daemon.pid().to_string();
    let set = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:unlimited")]).status();
    assert!(set.unwrap().success());
}

/// Hands in its work when it is told to.
const AGENT: &str = r#"
read -r prompt
echo apples > src/apples.txt; git add --all; git commit --quiet --message 'Add apples'; git push --quiet origin HEAD
while [ ! -e "$HOME/go" ]; do sleep 0.02; done
echo PHASE:awaiting_ci > "$PHASE_FILE"
while read -r line; do case $line in *"] Merged"*) echo PHASE:done > "$PHASE_FILE" ;; esac; done
"#;

#[test]
fn e2e_a_full_disk_stops_the_daemon_and_loses_nothing() {
    let daemon = shop().agent(AGENT).start();
    let issue = daemon.file_issue_with("Apples", "Please.");
    let pid = daemon.wait_session(issue, 1);
    daemon.wait_settled(issue);

    // Room for the log, and none for the database.
    let size = |path: std::path::PathBuf| std::fs::metadata(path).unwrap().len();
    let room = size(daemon.path("daemon.log")) + 16 * 1024;
    assert!(size(daemon.state().join("pointsman.db-wal")) > room);
    limit_files(&daemon, &room.to_string());
    let refused = daemon.run(&["task", "pause", &issue.to_string()]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("disk"), "{refused:?}");
    std::fs::write(daemon.path("home/go"), "").unwrap();
    let said =
        daemon.wait_for("the daemon to say that it cannot write", || daemon.log_lines("not written yet"));
    assert!(said[0].contains("disk"), "{said:?}");
    let task = daemon.task(issue);
    assert_eq!((&task["state"], &task["phase"]), (&"working".into(), &serde_json::Value::Null));

    limit_files(&daemon, "unlimited");
    daemon.wait_closed(issue);
    assert_eq!(daemon.main_log(), ["Add apples", "Open the shop"]);
    assert_eq!(daemon.session(issue)["pid"], pid);
    assert!(!daemon.has_ended());
}
