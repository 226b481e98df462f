//! An identity as others read it: the same fields in the files below `.claude/state/` and on the command line.

use std::path::Path;

use pointsman_core::role::Role;
use pointsman_core::session::work::WorkState;
use pointsman_store::SessionRow;
use serde::Serialize;
use serde_json::Value;

use crate::daemon::clock::rfc3339;

/// The identity fields of a session. Written straight to JSON: a thousand of them are a list that people wait for.
#[derive(Debug, Serialize)]
pub(crate) struct Fields<'r> {
    role: Role,
    name: &'r str,
    session_id: &'r str,
    pid: Option<u32>,
    tmux_session: Option<&'r str>,
    node_id: Option<&'r str>,
    bead_id: Option<&'r str>,
    worktree_path: Option<&'r Path>,
    hook_path: Option<&'r Path>,
    created_at: String,
    last_seen: String,
    status: &'static str,
    predecessor_id: Option<&'r str>,
    host: &'r str,
    generation: u32,
    model: Option<&'r str>,
}

impl<'r> Fields<'r> {
    /// Of this session.
    pub(crate) fn of(row: &'r SessionRow) -> Self {
        Self {
            role: row.role,
            name: row.name(),
            session_id: &row.session,
            pid: row.pid,
            tmux_session: row.tmux_session.as_deref(),
            node_id: row.node_id.as_deref(),
            bead_id: row.bead_id.as_deref(),
            worktree_path: row.tree.as_deref(),
            hook_path: row.hook_path.as_deref(),
            created_at: rfc3339(row.created_at),
            last_seen: rfc3339(row.last_seen),
            status: row.status().name(),
            predecessor_id: row.predecessor.as_deref(),
            host: &row.host,
            generation: row.generation,
            model: row.model.as_deref(),
        }
    }
}

/// The same as an object. A path that is not UTF-8 is none that JSON could tell.
pub(crate) fn fields(row: &SessionRow) -> Value {
    serde_json::to_value(Fields::of(row)).unwrap_or_default()
}

/// Where an identity is in its work, an object.
pub(crate) fn work(state: &WorkState) -> Value {
    // Plain data with text for keys: nothing in it that JSON does not have.
    let mut value = serde_json::to_value(state).unwrap_or_default();
    value["last_checkpoint_at"] = rfc3339(state.last_checkpoint_at).into();
    value
}
