//! Rows of a merge queue as views: the same fields in `--json` and in `.claude/state/merge-queue.json`.

use pointsman_core::config::Config;
use pointsman_core::queue::{EntryId, Waiting, in_order};
use pointsman_core::time::Timestamp;
use pointsman_store::{EntryStatus, QueueEntry};
use pointsman_view::queue::{Entry, Status};

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

/// The name of a project's gate in the table of verdicts; none if nothing is tested.
pub fn gate_name(config: &Config) -> Option<String> {
    match config.gate() {
        Some(command) => serde_json::to_string(command).ok(),
        None => config.gate_is_checks().then(|| "checks".to_owned()),
    }
}

/// The views of entries in this order; the position counts those that still wait.
pub fn of(entries: &[QueueEntry]) -> Vec<Entry> {
    let mut waiting = 0;
    let mut position = |entry: &QueueEntry| {
        entry.status.is_unfinished().then(|| {
            waiting += 1;
            waiting
        })
    };
    entries
        .iter()
        .map(|entry| Entry {
            position: position(entry),
            entry: entry.id,
            project: entry.project.clone(),
            branch: entry.branch.clone(),
            pr_number: entry.pr,
            issue: entry.issue,
            identity_name: entry.identity.clone(),
            worktree_path: entry.worktree.clone(),
            bead_id: entry.bead_id.clone(),
            node_id: entry.node_id.clone(),
            priority: entry.priority,
            attempts: entry.attempts,
            status: status(entry.status),
            head_sha: entry.head.clone(),
            base_sha: entry.base.clone(),
            candidate_sha: entry.candidate.clone(),
            conflict_files: entry.conflict_files.clone(),
            conflicts_with: entry.conflicts_with.clone(),
            requested_at: entry.requested_at.into(),
            tested_since: entry.tested_since.map(Into::into),
            landed_at: entry.landed_at.map(Into::into),
            reason: entry.reason.clone(),
            log_path: None,
        })
        .collect()
}

/// The standing of an entry.
pub fn status(status: EntryStatus) -> Status {
    match status {
        EntryStatus::Queued => Status::Queued,
        EntryStatus::Building => Status::Building,
        EntryStatus::Testing => Status::Testing,
        EntryStatus::Landed => Status::Landed,
        EntryStatus::Conflict => Status::Conflict,
        EntryStatus::Red => Status::Red,
        EntryStatus::Stale => Status::Stale,
        EntryStatus::Removed => Status::Removed,
    }
}
