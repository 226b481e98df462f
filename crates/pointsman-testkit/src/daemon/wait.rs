//! Waiting for what users see, and telling everything when it does not come.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{PATIENCE, TestDaemon};

/// Between two looks: each is a run of the program.
const LOOK: Duration = Duration::from_millis(30);

/// Of the daemon's log, when something went wrong.
const LOG_LINES: usize = 60;

impl TestDaemon {
    /// Looks until there is something to see.
    ///
    /// # Panics
    ///
    /// When it does not come, with everything that helps to understand why.
    #[track_caller]
    pub fn wait_for<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = look() {
                return seen;
            }
            assert!(Instant::now() < deadline, "waited in vain: {what}\n{}", self.diagnosis());
            std::thread::park_timeout(LOOK);
        }
    }

    /// Waits until a task is as wanted, and answers it.
    #[track_caller]
    pub fn wait_until(&self, issue: u64, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(&format!("issue {issue}: {what}"), || {
            let task = self.task(issue);
            (!task.is_null() && wanted(&task)).then_some(task)
        })
    }

    /// Waits for a state of a task.
    #[track_caller]
    pub fn wait_state(&self, issue: u64, state: &str) -> Value {
        self.wait_until(issue, state, |task| task["state"] == state)
    }

    /// Waits until a task's pull request waits for a review. The state may be there a moment before the number is.
    #[track_caller]
    pub fn wait_in_review(&self, issue: u64) -> Value {
        self.wait_until(issue, "its pull request", |task| {
            task["state"] == "awaiting_review" && task["pr"].is_u64()
        })
    }

    /// Waits until a task is closed and nothing is left to be done for it.
    #[track_caller]
    pub fn wait_closed(&self, issue: u64) {
        self.wait_state(issue, "closed");
        self.wait_settled(issue);
    }

    /// Waits until nothing is ordered for a task that is not done.
    #[track_caller]
    pub fn wait_settled(&self, issue: u64) {
        let settled = || self.is_settled(issue).then_some(());
        self.wait_for(&format!("issue {issue}: all effects are done"), settled);
    }

    /// Whether nothing is ordered for a task that is not done.
    pub fn is_settled(&self, issue: u64) -> bool {
        let explained = self.json(&["task", "explain", &issue.to_string()]);
        let facts = explained["facts"].as_array().cloned().unwrap_or_default();
        !facts.iter().any(|fact| fact.as_str().is_some_and(|text| text.starts_with("pending: ")))
    }

    /// Waits until a turn runs in a session without a terminal, and answers its record.
    #[track_caller]
    pub fn wait_turn(&self, issue: u64) -> Value {
        self.wait_for(&format!("issue {issue}: a turn"), || self.headless_file(issue, "turn.json"))
    }

    /// Waits until an issue has a live session of this generation, and answers its process.
    #[track_caller]
    pub fn wait_session(&self, issue: u64, generation: u32) -> u32 {
        self.wait_for(&format!("issue {issue}: session {generation} runs"), || {
            let session = self.sessions(issue).into_iter().find(|s| s["generation"] == generation)?;
            let pid = session["pid"].as_u64().filter(|_| session["ended_at"].is_null())?;
            u32::try_from(pid).ok()
        })
    }

    /// Waits until the newest session's terminal has shown this.
    #[track_caller]
    pub fn wait_shown(&self, issue: u64, text: &str) {
        self.wait_for(&format!("issue {issue} shows {text:?}"), || {
            let answer = self.run(&["session", "logs", &issue.to_string()]);
            answer.stdout.contains(text).then_some(())
        });
    }

    /// Everything that helps to understand why a test failed.
    pub fn diagnosis(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        let mut text =
            format!("daemon's log:\n{}\n", lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"));
        let tasks = self.run(&["task", "list", "--json"]);
        let tasks: Value = serde_json::from_str(&tasks.stdout).unwrap_or_default();
        for issue in tasks.as_array().into_iter().flatten().filter_map(|t| t["issue"].as_u64()) {
            let issue = issue.to_string();
            text.push_str(&self.run(&["task", "explain", &issue]).stdout);
            let shown = self.run(&["session", "logs", &issue]).stdout;
            text.push_str(&format!("\nits terminal:\n{shown}\n"));
        }
        text
    }
}
