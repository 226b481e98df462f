//! A merge queue as scripts see it: the same fields in `--json` and in `.claude/state/merge-queue.json`.

use pointsman_core::queue::{EntryId, Waiting, in_order};
use pointsman_core::time::Timestamp;
use pointsman_store::QueueEntry;
use serde_json::{Value, json};

/// Entries in the order in which they will land: those under test first, then by urgency and age. Those that are over
/// come first, as they came.
pub fn sorted(entries: Vec<QueueEntry>, now: Timestamp, ageing: std::time::Duration) -> Vec<QueueEntry> {
    let waiting: Vec<Waiting> = entries
        .iter()
        .filter(|entry| entry.status.is_unfinished())
        .map(|e| Waiting { id: e.id, priority: e.priority, requested_at: e.requested_at })
        .collect();
    let order = in_order(&waiting, now, ageing);
    let place = |id: EntryId| order.iter().position(|other| *other == id);
    let mut entries = entries;
    entries.sort_by_key(|entry| (place(entry.id).map(|at| (entry.tested_since.is_none(), at)), entry.id));
    entries
}

/// The fields of each entry; the position counts those that still wait.
pub fn to_json(entries: &[QueueEntry]) -> Vec<Value> {
    let mut position = 0;
    let mut place = |entry: &QueueEntry| {
        entry.status.is_unfinished().then(|| {
            position += 1;
            position
        })
    };
    entries
        .iter()
        .map(|entry| {
            json!({
                "position": place(entry),
                "entry": entry.id,
                "project": entry.project,
                "branch": entry.branch,
                "pr_number": entry.pr,
                "issue": entry.issue,
                "identity_name": entry.identity,
                "worktree_path": entry.worktree,
                "bead_id": entry.bead_id,
                "node_id": entry.node_id,
                "priority": entry.priority,
                "attempts": entry.attempts,
                "status": entry.status,
                "head_sha": entry.head,
                "base_sha": entry.base,
                "candidate_sha": entry.candidate,
                "conflict_files": entry.conflict_files,
                "conflicts_with": entry.conflicts_with,
                "requested_at": crate::daemon::clock::rfc3339(entry.requested_at),
                "tested_since": entry.tested_since.map(crate::daemon::clock::rfc3339),
                "landed_at": entry.landed_at.map(crate::daemon::clock::rfc3339),
                "reason": entry.reason,
            })
        })
        .collect()
}
