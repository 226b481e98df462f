//! The merge queue in front of the main branch, and its history.

use std::path::PathBuf;

use pointsman_core::ids::{ProjectName, Sha};
pub use pointsman_core::queue::{EntryId, EntryStatus};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Row, params};
use serde::Serialize;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Whole, Word, json, maybe_time, maybe_whole, maybe_word, time, word};

/// The entries to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryScope {
    /// Those that still wait for their end.
    Unfinished,
    All,
}

/// A branch that wants to land.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntry {
    pub project: ProjectName,
    pub branch: String,
    /// The issue it is for.
    pub issue: Option<u64>,
    pub pr: Option<u64>,
    /// Who asked (`dev-shop-3`).
    pub identity: Option<String>,
    /// The head that is to land.
    pub head: Sha,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// How urgent it is: more goes first. 0 unless said otherwise.
    pub priority: i64,
    /// Where its work was done.
    pub worktree: Option<PathBuf>,
    /// How it lands, if not as the project does.
    pub style: Option<String>,
}

/// A branch in the merge queue, or one that was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueEntry {
    pub id: EntryId,
    pub project: ProjectName,
    pub branch: String,
    /// The issue it is for.
    pub issue: Option<u64>,
    pub pr: Option<u64>,
    pub identity: Option<String>,
    /// The head that is to land.
    pub head: Sha,
    /// The main branch its candidate was made on.
    pub base: Option<Sha>,
    /// The commit that is tested and lands.
    pub candidate: Option<Sha>,
    pub status: EntryStatus,
    pub conflict_files: Vec<String>,
    /// When it was asked for.
    pub requested_at: Timestamp,
    pub landed_at: Option<Timestamp>,
    /// Why it stands where it stands.
    pub reason: Option<String>,
    /// How urgent it is: more goes first. 0 unless said otherwise.
    pub priority: i64,
    /// How often its candidate was made and tested.
    pub attempts: u32,
    /// How it is to land, if not in the project's way.
    pub style: Option<String>,
    /// Where its work was done.
    pub worktree: Option<PathBuf>,
    /// A link to another tracker.
    pub bead_id: Option<String>,
    /// A link to another tracker.
    pub node_id: Option<String>,
    /// The entry ahead of it, or landed before it, that it conflicts with.
    pub conflicts_with: Option<String>,
    /// Since when its candidate is under test.
    pub tested_since: Option<Timestamp>,
}

const UNFINISHED: &str = "status IN ('queued', 'building', 'testing')";

impl Store {
    /// The number for the next entry.
    pub fn next_entry(&self) -> EntryId {
        EntryId(self.numbers.entry.peek())
    }

    /// The entry by which a head of a branch waits, if it does: asking twice is asking once.
    pub fn waiting_entry(
        &self,
        project: &ProjectName,
        branch: &str,
        head: &Sha,
    ) -> Result<Option<QueueEntry>> {
        let sql =
            format!("SELECT * FROM queue WHERE project = $1 AND branch = $2 AND head = $3 AND {UNFINISHED}");
        let rows = self.rows(
            words::store::READ_MERGE_QUEUE,
            &sql,
            params![Word(project), branch, Word(head)],
            read,
        )?;
        Ok(rows.into_iter().next())
    }

    /// A project's entries, first in line first.
    pub fn queue_entries(&self, project: &ProjectName, scope: EntryScope) -> Result<Vec<QueueEntry>> {
        self.rows(words::store::READ_MERGE_QUEUE, &entries(scope), [Word(project)], read)
    }

    /// The last entries that are over, newest first.
    pub fn decided_entries(&self, project: &ProjectName, limit: u32) -> Result<Vec<QueueEntry>> {
        let sql =
            format!("SELECT * FROM queue WHERE project = $1 AND NOT {UNFINISHED} ORDER BY id DESC LIMIT $2");
        self.rows(words::store::READ_MERGE_QUEUE, &sql, params![Word(project), limit], read)
    }

    /// The entry whose candidate this commit is, if it landed or may have: the ledger of the main branch.
    pub fn entry_of_candidate(&self, project: &ProjectName, candidate: &Sha) -> Result<Option<QueueEntry>> {
        const SQL: &str = "SELECT * FROM queue WHERE project = $1 AND candidate = $2
            AND status IN ('landed', 'testing', 'building') ORDER BY id LIMIT 1";
        let rows =
            self.rows(words::store::READ_MERGE_QUEUE, SQL, params![Word(project), Word(candidate)], read)?;
        Ok(rows.into_iter().next())
    }

    /// Reads one entry.
    pub fn queue_entry(&self, id: EntryId) -> Result<Option<QueueEntry>> {
        let rows =
            self.rows(words::store::READ_MERGE_QUEUE, "SELECT * FROM queue WHERE id = $1", [id.0], read)?;
        Ok(rows.into_iter().next())
    }
}

/// Puts a branch at the end of the merge queue, under a number of the caller's: [`Store::next_entry`].
pub(super) fn add(draft: &mut Draft<'_>, id: EntryId, entry: &NewEntry) -> Result<()> {
    const SQL: &str = "INSERT INTO queue (id, project, branch, issue, pr, identity, head, status,
            conflict_files, requested_at, priority, worktree, style)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', '[]', $8, $9, $10, $11)";
    draft.numbers.entry.used(id.0);
    let values = values![
        id.0,
        Word(&entry.project),
        &entry.branch,
        entry.issue.map(Whole),
        entry.pr.map(Whole),
        entry.identity.as_ref(),
        Word(&entry.head),
        entry.requested_at,
        entry.priority,
        entry.worktree.as_ref().map(Word),
        entry.style.as_ref()
    ];
    let refusal = words::store::BRANCH_WAITS;
    draft.push(Statement::new(words::store::ENQUEUE_BRANCH, SQL, values).or_refused(refusal));
    Ok(())
}

/// Writes what can change of an entry: where it stands, its commits, and why. What was asked for (project, branch, head,
/// when) stays. An entry that is over stays as it is, unless git knows that it landed.
pub(super) fn update(draft: &mut Draft<'_>, entry: &QueueEntry) -> Result<()> {
    const SQL: &str = "UPDATE queue SET pr = $1, base = $2, candidate = $3, status = $4,
        conflict_files = $5, landed_at = $6, reason = $7, priority = $8, attempts = $9, style = $10,
        conflicts_with = $11, tested_since = $12
        WHERE id = $13 AND (status IN ('queued', 'building', 'testing') OR $4 = 'landed')";
    let values = values![
        entry.pr.map(Whole),
        entry.base.as_ref().map(Word),
        entry.candidate.as_ref().map(Word),
        Word(entry.status),
        Json(&entry.conflict_files),
        entry.landed_at,
        entry.reason.as_ref(),
        entry.priority,
        entry.attempts,
        entry.style.as_ref(),
        entry.conflicts_with.as_ref(),
        entry.tested_since,
        entry.id.0
    ];
    draft.push(Statement::new(words::store::UPDATE_MERGE_QUEUE, SQL, values));
    Ok(())
}

pub(super) fn entries(scope: EntryScope) -> String {
    let which = match scope {
        EntryScope::Unfinished => UNFINISHED,
        EntryScope::All => "TRUE",
    };
    format!("SELECT * FROM queue WHERE project = $1 AND {which} ORDER BY id")
}

fn read(row: &Row<'_>) -> rusqlite::Result<QueueEntry> {
    Ok(QueueEntry {
        id: EntryId(row.get("id")?),
        project: word(row, "project")?,
        branch: row.get("branch")?,
        issue: maybe_whole(row, "issue")?,
        pr: maybe_whole(row, "pr")?,
        identity: row.get("identity")?,
        head: word(row, "head")?,
        base: maybe_word(row, "base")?,
        candidate: maybe_word(row, "candidate")?,
        status: word(row, "status")?,
        conflict_files: json(row, "conflict_files")?,
        requested_at: time(row, "requested_at")?,
        landed_at: maybe_time(row, "landed_at")?,
        reason: row.get("reason")?,
        priority: row.get("priority")?,
        attempts: row.get("attempts")?,
        style: row.get("style")?,
        worktree: maybe_word(row, "worktree")?,
        bead_id: row.get("bead_id")?,
        node_id: row.get("node_id")?,
        conflicts_with: row.get("conflicts_with")?,
        tested_since: maybe_time(row, "tested_since")?,
    })
}
