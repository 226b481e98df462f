//! No work is lost: identities, work states, checkpoints, hand-overs and budgets, by the numbers of the requirements.
//!
//! What a model would do first is shown by the rehearsal agent: its transcript has one line for each of its actions.
//! The rules alone are tested in the core, the tables in the store, captures in the adapters.

mod budget;
mod context;
mod gauge;
mod hostile_files;
pub(crate) mod identity;
mod recovery;
mod torn_files;
mod trouble;
mod work_state;

use std::path::PathBuf;

use pointsman::control::client;
use pointsman::control::protocol::{Reply, Request};
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_testkit::TestDaemon;
use serde_json::Value;

use super::{LAND, clean, shop};

/// The projection of an issue's identity.
fn identity_file(daemon: &TestDaemon, issue: u64) -> PathBuf {
    daemon.checkout().join(format!(".claude/state/identities/dev-shop-{issue}.json"))
}

/// The projection of an issue's work state.
fn hook_file(daemon: &TestDaemon, issue: u64) -> PathBuf {
    daemon.checkout().join(format!(".claude/state/hooks/dev-shop-{issue}.json"))
}

/// A projection; null if there is none. One that is there is whole.
fn read(path: &std::path::Path) -> Value {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .unwrap_or_else(|e| panic!("{}: {e}: {:?}", path.display(), String::from_utf8_lossy(&bytes))),
        Err(_) => Value::Null,
    }
}

/// Waits until a projection is as wanted, and answers it.
#[track_caller]
fn wait_file(daemon: &TestDaemon, path: &std::path::Path, wanted: impl Fn(&Value) -> bool) -> Value {
    daemon.wait_for(&format!("{} as wanted", path.display()), || Some(read(path)).filter(|v| wanted(v)))
}

/// The signals about an issue, in their order.
fn signals(daemon: &TestDaemon, issue: u64) -> Vec<String> {
    let kinds = daemon.events(issue).into_iter().filter_map(|e| e["kind"].as_str().map(str::to_owned));
    kinds.filter(|kind| kind.chars().all(|c| c.is_ascii_uppercase() || c == '_')).collect()
}

/// What a session did, one line for each action, in its order.
fn actions(daemon: &TestDaemon, issue: u64, generation: u32) -> Vec<String> {
    let logs = ["session", "logs", &issue.to_string(), "--generation", &generation.to_string()];
    let shown = daemon.run(&logs).stdout;
    shown.lines().filter_map(|line| line.trim().strip_prefix("• ").map(str::to_owned)).collect()
}

/// Tells the daemon how full a session's context is, as a status line does.
#[track_caller]
fn measure_context(daemon: &TestDaemon, session: &str, percent: u16) {
    let gauge = Gauge { used_permille: percent * 10, source: Source::StatusLine };
    measure(daemon, session, Some(gauge), None);
}

/// Tells the daemon what a session has spent since its start.
#[track_caller]
fn measure_tokens(daemon: &TestDaemon, session: &str, tokens: u64) {
    measure(daemon, session, None, Some(Spent { tokens, ..Spent::default() }));
}

#[track_caller]
fn measure(daemon: &TestDaemon, session: &str, gauge: Option<Gauge>, spent: Option<Spent>) {
    let request = Request::Measure { session: session.to_owned(), gauge, spent };
    match client::ask(&daemon.control_socket(), &request) {
        Ok(Reply::Done { .. }) => {}
        other => panic!("not measured: {other:?}"),
    }
}
