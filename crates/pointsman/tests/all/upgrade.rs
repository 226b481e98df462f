//! Work that 0.1.0 began is finished by this version: its sessions go on, its questions can still be answered, and what
//! it had remembered is kept as a copy.
//!
//! `scripts/test-upgrade` builds 0.1.0 and names it in `POINTSMAN_OLD`; without it the tests are reported as not run.

use std::fs;
use std::path::{Path, PathBuf};

use pointsman_testkit::{Setup, TestDaemon, not_run};
use tempfile::TempDir;

/// The program in the place where a user has it, which is replaced as an upgrade does.
struct Installation {
    dir: TempDir,
}

impl Installation {
    fn of_old_version() -> Option<Self> {
        let Some(old) = std::env::var_os("POINTSMAN_OLD").filter(|path| !path.is_empty()) else {
            not_run("pointsman-0.1.0", "POINTSMAN_OLD names no program; scripts/test-upgrade builds one");
            return None;
        };
        let installation = Self { dir: TempDir::new().expect("tests need a temporary directory") };
        installation.install(Path::new(&old));
        Some(installation)
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("pointsman")
    }

    /// Puts a program in place by renaming, as package managers do: running processes keep the old one.
    fn install(&self, program: &Path) {
        let new = self.dir.path().join("pointsman.new");
        fs::copy(program, &new).expect("the program is built");
        fs::rename(new, self.program()).expect("a test's own directory can be written");
    }

    fn upgrade(&self) {
        self.install(Path::new(env!("CARGO_BIN_EXE_pointsman")));
    }
}

/// The question that the agent asks first, then its work.
fn asks(fruit: &str) -> String {
    format!("phase escalate which {fruit}?\nexpect Answer\n{}", works(fruit))
}

fn works(fruit: &str) -> String {
    format!(
        "write src/{fruit}.txt {fruit} 3 crowns\ncommit Add {fruit}\npush\nphase awaiting_ci\n\
         expect CI passed\nphase awaiting_review\nexpect Merged\nphase done"
    )
}

/// Leaves a task with a question, one with a review that is missing, one in a paused merge queue and a vault action
/// that waits for approval; replaces the program; and sees all four to their end.
fn upgrade(runtime: &str, end: fn(&TestDaemon)) {
    let Some(installation) = Installation::of_old_version() else { return };
    // Not by the variable: the testkit would switch the sandbox off for it, with a key that 0.1.0 does not know.
    let handler = r#"["/bin/sh", "-c", "echo ran >> ~/fired"]"#;
    let daemon = Setup::new(installation.program())
        .set("tree.free_disk", "")
        .reviewed()
        .set("agent.runtime", &format!("{runtime:?}"))
        .set("dev.concurrency", "4")
        .set("vault.types.deploy.command", handler)
        .set("vault.types.deploy.risk", "\"high\"")
        .set("vault.types.deploy.reversible", "true")
        .start();
    let asked = daemon.file_issue("Apples", &asks("apples"));
    let reviewed = daemon.file_issue("Pears", &works("pears"));
    let queued = daemon.file_issue("Plums", &works("plums"));
    assert_eq!(daemon.run(&["merge-queue", "pause", "--reason", "an upgrade"]).code, Some(0));
    daemon.wait_state(asked, "escalated");
    daemon.wait_state(reviewed, "awaiting_review");
    daemon.wait_state(queued, "awaiting_review");
    daemon.approve(queued);
    daemon.wait_state(queued, "merge_queue");
    let action = daemon.path("home/action.json");
    fs::write(
        &action,
        r#"{"id": "deploy-1", "type": "deploy", "source": "planner", "risk": "high", "reversible": true,
            "requires_human": true, "payload": {}}"#,
    )
    .expect("a test's own directory can be written");
    assert_eq!(daemon.run(&["vault", "submit", &action.to_string_lossy()]).code, Some(0));
    let sessions = [asked, reviewed, queued].map(|issue| daemon.session(issue)["session"].clone());
    let events = daemon.events(asked);

    end(&daemon);
    installation.upgrade();
    daemon.start();
    assert!(!daemon.has_ended(), "the new version does not start: {}", daemon.log());

    let kept: Vec<_> = fs::read_dir(daemon.state())
        .expect("the state directory is there")
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.starts_with("pointsman.db.before-"))
        .collect();
    assert_eq!(kept.len(), 1, "one copy of the database of 0.1.0 is kept: {kept:?}");
    daemon.answer(asked, "The red ones.");
    daemon.approve(reviewed);
    daemon.wait_state(asked, "awaiting_review");
    daemon.approve(asked);
    assert_eq!(daemon.run(&["merge-queue", "resume"]).code, Some(0));
    for issue in [queued, reviewed, asked] {
        daemon.wait_closed(issue);
    }
    for (issue, session) in [asked, reviewed, queued].into_iter().zip(sessions) {
        let all = daemon.sessions(issue);
        assert_eq!(all.len(), 1, "no session was replaced: {all:?}");
        assert_eq!(all[0]["session"], session);
    }
    assert_eq!(daemon.main_log().len(), 4, "{:?}", daemon.main_log());
    assert_eq!(daemon.pull_requests().len(), 3);
    let later = daemon.events(asked);
    for (later, before) in later.iter().zip(&events) {
        for field in ["seq", "at", "kind", "issue", "session", "data"] {
            assert_eq!(later[field], before[field], "the history is still there: {field} of {before}");
        }
    }
    assert!(later.len() > events.len(), "{later:?}");
    assert_eq!(daemon.run(&["vault", "approve", "deploy-1"]).code, Some(0));
    daemon.wait_for("the handler to run", || daemon.path("home/fired").exists().then_some(()));
}

#[test]
fn upgrade_of_sessions_in_tmux_after_a_kill() {
    upgrade("tmux", TestDaemon::kill_daemon);
}

#[test]
fn upgrade_of_sessions_in_tmux_after_a_stop() {
    upgrade("tmux", TestDaemon::stop_daemon);
}

#[test]
fn upgrade_of_headless_sessions_after_a_kill() {
    upgrade("headless", TestDaemon::kill_daemon);
}
