//! An identity as others read it: the same fields in the files below `.claude/state/` and on the command line.

use pointsman_core::session::work::WorkState;
use pointsman_store::SessionRow;
use serde_json::{Value, json};

use crate::daemon::clock::rfc3339;

/// The identity fields of a session, an object.
pub(crate) fn fields(row: &SessionRow) -> Value {
    json!({
        "role": row.role,
        "name": row.name(),
        "session_id": row.session,
        "pid": row.pid,
        "tmux_session": row.tmux_session,
        "node_id": row.node_id,
        "bead_id": row.bead_id,
        "worktree_path": row.tree,
        "hook_path": row.hook_path,
        "created_at": rfc3339(row.created_at),
        "last_seen": rfc3339(row.last_seen),
        "status": row.status().name(),
        "predecessor_id": row.predecessor,
        "host": row.host,
        "generation": row.generation,
        "model": row.model,
    })
}

/// Where an identity is in its work, an object.
pub(crate) fn work(state: &WorkState) -> Value {
    // Plain data with text for keys: nothing in it that JSON does not have.
    let mut value = serde_json::to_value(state).unwrap_or_default();
    value["last_checkpoint_at"] = rfc3339(state.last_checkpoint_at).into();
    value
}
