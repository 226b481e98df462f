//! The daemon's own identity: a file like those of its sessions, whose `last_seen` goes on as long as the loop turns.
//!
//! It is written by the thread of the projections and never by the loop itself. A daemon that is frozen therefore shows an
//! old `last_seen`, and one that was killed a process that is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pointsman_adapters::{process, projection};
use pointsman_core::time::Timestamp;
use pointsman_view::agent::{DaemonRole, Identity, IdentityRole};
use pointsman_view::session::Status;

/// The name of the file in the state directory.
pub(crate) const FILE: &str = "daemon.json";
/// `last_seen` is renewed this often, as that of a session is by default.
const RENEWED: Duration = Duration::from_secs(60);
const FIRST: u32 = 1;
/// The time of a turn that never comes: the loop is over, and nobody may show it as alive any more.
const OVER: i64 = i64::MIN;

/// The turns of the loop, told to whoever shows them.
#[derive(Clone)]
pub(crate) struct LoopTurns(Arc<AtomicI64>);

impl LoopTurns {
    /// The loop begins now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.0)))
    }

    /// The loop has turned once more.
    pub(crate) fn turned(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::Relaxed);
    }

    fn last(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }
}

/// The identity of this daemon, and the moment that was shown last.
pub(crate) struct OwnIdentity {
    state: PathBuf,
    identity: Identity,
    turns: LoopTurns,
    shown: Option<Timestamp>,
}

impl OwnIdentity {
    /// A daemon that has just started on this state directory.
    pub(crate) fn new(state: &Path, turns: LoopTurns) -> Self {
        let (host, pid) = (process::host_name(), std::process::id());
        let name: String = host
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
            .collect();
        let begun = turns.last();
        let identity = Identity {
            role: IdentityRole::Daemon(DaemonRole::Daemon),
            session_id: format!("daemon-{name}.{pid}"),
            name,
            pid: Some(pid),
            tmux_session: None,
            node_id: None,
            bead_id: None,
            worktree_path: None,
            hook_path: None,
            created_at: begun.into(),
            last_seen: begun.into(),
            status: Status::Active,
            predecessor_id: None,
            host,
            generation: FIRST,
            model: None,
        };
        Self { state: state.to_owned(), identity, turns, shown: None }
    }

    /// The file's name in a checkout.
    pub(crate) fn file(&self) -> String {
        format!("daemon-{}.json", self.identity.name)
    }

    /// The identity with the loop's last turn, renewed once a minute. Changes go to the state directory too.
    pub(crate) fn renewed(&mut self) -> &Identity {
        let last = self.turns.last();
        let due = self.shown.is_none_or(|shown| last.since(shown) >= RENEWED || last < shown);
        if due && last.0 != OVER {
            self.identity.last_seen = last.into();
            self.shown = Some(last);
            write(&self.state, &self.identity);
        }
        &self.identity
    }
}

/// The daemon ends in order, and its last identity says so. One that is killed does not come here, and is known by that.
pub(crate) fn ended(state: &Path, turns: &LoopTurns) {
    turns.0.store(OVER, Ordering::Relaxed);
    let Ok(text) = std::fs::read(state.join(FILE)) else { return };
    let Ok(mut identity) = serde_json::from_slice::<Identity>(&text) else { return };
    identity.status = Status::Terminated;
    write(state, &identity);
}

fn write(state: &Path, identity: &Identity) {
    let mut text = serde_json::to_vec_pretty(identity).unwrap_or_default();
    text.push(b'\n');
    if let Err(error) = projection::write(state, &[], FILE, &text) {
        tracing::warn!(%error, "the daemon's identity was not written");
    }
}
