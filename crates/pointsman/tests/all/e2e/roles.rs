//! Roles that look by rules and ask a model: an agent that says what a test wants, and what people see of it.

use pointsman_core::ids::ProjectName;
use pointsman_core::snapshot::Snapshot;
use pointsman_store::Store;
use pointsman_testkit::TestDaemon;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An agent that does the steps of its formula, in its checkout what is in `home/work.sh`, and leaves what is in
/// `home/result.json`, if these are there. What it was given is in
/// `home/asked`, and how often in `home/times`. As an implementer it only waits.
pub(crate) fn answering() -> String {
    format!(
        "read -r greeting\ncase \"$PHASE_FILE\" in */dev-session-*) read -r end; exit;; esac\ntask=\"$POINTSMAN_INBOX/0000-task.md\"\ncat \"$task\" >> \"$HOME/asked\"\n\
         echo once >> \"$HOME/times\"\n\
         sed -n 's/^## [0-9]*\\. \\([a-z-]*\\):.*/\\1/p' \"$task\" | while read -r step; do\n\
         {} step done \"$step\" || exit 1\ndone\n\
         [ -f \"$HOME/work.sh\" ] && . \"$HOME/work.sh\"\n\
         [ -f \"$HOME/result.json\" ] && cp \"$HOME/result.json\" \"$POINTSMAN_RESULT_FILE\"\necho PHASE:done > \"$PHASE_FILE\"\nread -r end\n",
        env!("CARGO_BIN_EXE_pointsman")
    )
}

/// What the agent says from now on.
pub(crate) fn says(daemon: &TestDaemon, result: &Value) {
    std::fs::write(daemon.path("home/result.json"), result.to_string()).unwrap();
}

/// What the agent does in its checkout from now on.
pub(crate) fn work(daemon: &TestDaemon, script: &str) {
    std::fs::write(daemon.path("home/work.sh"), script).unwrap();
}

/// What the agent was given so far.
pub(crate) fn asked(daemon: &TestDaemon) -> String {
    std::fs::read_to_string(daemon.path("home/asked")).unwrap_or_default()
}

/// How often it was asked.
pub(crate) fn times(daemon: &TestDaemon) -> usize {
    std::fs::read_to_string(daemon.path("home/times")).map_or(0, |text| text.lines().count())
}

/// Files an issue; answers its number.
pub(crate) fn file(daemon: &TestDaemon, title: &str, body: &str, label: Option<&str>) -> u64 {
    let mut arguments = vec!["forge", "issue", "create", "--title", title, "--body", body];
    arguments.extend(label.iter().flat_map(|label| ["--label", label]));
    daemon.json(&arguments)["number"].as_u64().unwrap()
}

/// The lines of a role's journal of today.
pub(crate) fn journal(daemon: &TestDaemon, role: &str) -> Vec<String> {
    let entries = daemon.json(&["journal", "--role", role]);
    let lines = |entry: &Value| entry["lines"].as_array().cloned().unwrap_or_default();
    let all = entries.as_array().unwrap().iter().flat_map(lines);
    all.filter_map(|line| line.as_str().map(str::to_owned)).collect()
}

/// Waits for a line of a role's journal.
pub(crate) fn wait_journal(daemon: &TestDaemon, role: &str, text: &str) {
    daemon.wait_for(text, || journal(daemon, role).iter().any(|line| line.contains(text)).then_some(()));
}

/// When a role looked last. A look is over when it is written down.
pub(crate) fn looked_at(daemon: &TestDaemon, role: &str) -> u64 {
    let store = Store::open_read_only(&daemon.state().join("pointsman.db")).unwrap();
    let memory: Option<Looked> = store.memory(&ProjectName::new("shop").unwrap(), role).unwrap();
    memory.map_or(0, |memory| memory.looked_at)
}

/// What all of them remember.
#[derive(Serialize, Deserialize)]
struct Looked {
    looked_at: u64,
}

impl Snapshot for Looked {}
