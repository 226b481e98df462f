//! The line in front of the main branch, and its history.

use std::path::PathBuf;

use pointsman_core::ids::{ProjectName, Sha};
pub use pointsman_core::queue::EntryId;
use pointsman_core::time::Timestamp;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::Store;
use crate::Result;
use crate::column::{Json, Whole, Word, json, maybe_time, maybe_whole, maybe_word, time, word};
use crate::error::{Error, failed_to};

/// Where an entry stands. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryStatus {
    Queued,
    /// Its candidate is being made.
    Building,
    /// Its candidate is being tested.
    Testing,
    Landed,
    /// Does not apply to the main branch.
    Conflict,
    /// Applies, but its tests fail.
    Red,
    /// Its branch or pull request changed while it waited.
    Stale,
    Removed,
}

impl EntryStatus {
    /// Whether it still waits for its end.
    pub fn is_unfinished(self) -> bool {
        match self {
            Self::Queued | Self::Building | Self::Testing => true,
            Self::Landed | Self::Conflict | Self::Red | Self::Stale | Self::Removed => false,
        }
    }
}

/// Which entries to read.
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

/// A branch in the line, or one that was.
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
    /// When it landed.
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
    /// Puts a branch at the end of the line. If the same head of it is in the line already, that
    /// entry's number comes back and nothing changes.
    pub fn enqueue(&mut self, entry: &NewEntry) -> Result<EntryId> {
        let insert = format!(
            "INSERT INTO queue (project, branch, issue, pr, identity, head, status, conflict_files,
                requested_at, priority, worktree, style)
             VALUES ($1, $2, $3, $4, $5, $6, 'queued', '[]', $7, $8, $9, $10)
             ON CONFLICT (project, branch, head) WHERE {UNFINISHED} DO NOTHING"
        );
        let find =
            format!("SELECT id FROM queue WHERE project = $1 AND branch = $2 AND head = $3 AND {UNFINISHED}");
        let failed = failed_to("enqueue a branch");
        let (project, head) = (Word(&entry.project), Word(&entry.head));
        let transaction = self.begin("enqueue a branch")?;
        transaction
            .execute(
                &insert,
                params![
                    project,
                    entry.branch,
                    entry.issue.map(Whole),
                    entry.pr.map(Whole),
                    entry.identity,
                    head,
                    entry.requested_at.0,
                    entry.priority,
                    entry.worktree.as_ref().map(Word),
                    entry.style
                ],
            )
            .map_err(&failed)?;
        let id = transaction
            .query_row(&find, params![project, entry.branch, head], |row| row.get(0))
            .map_err(&failed)?;
        transaction.commit().map_err(failed)?;
        Ok(EntryId(id))
    }

    /// A project's entries, first in line first.
    pub fn queue_entries(&self, project: &ProjectName, scope: EntryScope) -> Result<Vec<QueueEntry>> {
        self.rows("read the merge queue", &entries(scope), [Word(project)], read)
    }

    /// The last entries that are over, newest first.
    pub fn decided_entries(&self, project: &ProjectName, limit: u32) -> Result<Vec<QueueEntry>> {
        let sql =
            format!("SELECT * FROM queue WHERE project = $1 AND NOT {UNFINISHED} ORDER BY id DESC LIMIT $2");
        self.rows("read the merge queue", &sql, params![Word(project), limit], read)
    }

    /// The entry whose candidate this commit is, if it landed or may have: the ledger of the main branch.
    pub fn entry_of_candidate(&self, project: &ProjectName, candidate: &Sha) -> Result<Option<QueueEntry>> {
        const SQL: &str = "SELECT * FROM queue WHERE project = $1 AND candidate = $2
            AND status IN ('landed', 'testing', 'building') ORDER BY id LIMIT 1";
        let rows = self.rows("read the merge queue", SQL, params![Word(project), Word(candidate)], read)?;
        Ok(rows.into_iter().next())
    }

    /// One entry.
    pub fn queue_entry(&self, id: EntryId) -> Result<Option<QueueEntry>> {
        let rows = self.rows("read the merge queue", "SELECT * FROM queue WHERE id = $1", [id.0], read)?;
        Ok(rows.into_iter().next())
    }

    /// Writes what can change of an entry: where it stands, its commits, and why. What was asked
    /// for (project, branch, head, when) stays. An entry that is over stays as it is, unless git
    /// knows that it landed.
    pub fn update_entry(&mut self, entry: &QueueEntry) -> Result<()> {
        self.update_entries(std::slice::from_ref(entry))
    }

    /// The same for several, in one transaction.
    pub fn update_entries(&mut self, entries: &[QueueEntry]) -> Result<()> {
        const OPERATION: &str = "update the merge queue";
        const SQL: &str = "UPDATE queue SET pr = $1, base = $2, candidate = $3, status = $4,
            conflict_files = $5, landed_at = $6, reason = $7, priority = $8, attempts = $9, style = $10,
            conflicts_with = $11, tested_since = $12
            WHERE id = $13 AND (status IN ('queued', 'building', 'testing') OR $4 = 'landed')";
        let transaction = self.begin(OPERATION)?;
        let mut untouched = Vec::new();
        for entry in entries {
            let update = || {
                transaction.prepare_cached(SQL)?.execute(params![
                    entry.pr.map(Whole),
                    entry.base.as_ref().map(Word),
                    entry.candidate.as_ref().map(Word),
                    Word(entry.status),
                    Json(&entry.conflict_files),
                    entry.landed_at.map(|at| at.0),
                    entry.reason,
                    entry.priority,
                    entry.attempts,
                    entry.style,
                    entry.conflicts_with,
                    entry.tested_since.map(|at| at.0),
                    entry.id.0
                ])
            };
            if update().map_err(failed_to(OPERATION))? == 0 {
                untouched.push(entry.id);
            }
        }
        transaction.commit().map_err(failed_to(OPERATION))?;
        for id in untouched {
            if self.queue_entry(id)?.is_none() {
                return Err(Error::NotFound { what: format!("merge queue entry {id}") });
            }
        }
        Ok(())
    }
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
