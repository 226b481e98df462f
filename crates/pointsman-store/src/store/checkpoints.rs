//! Which captures of a task's working tree there are. The captures themselves are refs in the
//! mirror; whoever makes or removes one tells this table afterwards.

use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::time::Timestamp;
use rusqlite::{Row, params};
use serde::Serialize;

use super::Store;
use crate::Result;
use crate::column::{Whole, Word, time, whole, word};
use crate::error::{Error, failed_to};

/// A captured working tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckpointRow {
    pub task: TaskKey,
    /// Its number within the task, never given twice.
    pub n: u64,
    /// The session whose tree it was.
    pub session: Option<String>,
    /// The ref that keeps it.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit the ref points to.
    pub commit: Sha,
    /// The tree of that commit: the same tree is the same work.
    pub tree: Sha,
    pub at: Timestamp,
    /// What for (`turn_end`, `phase_change`, `before_stop`).
    pub why: String,
    /// How many files differ from the branch.
    pub files: u64,
}

const SELECT: &str = "SELECT * FROM checkpoints WHERE project = $1 AND issue = $2";

impl Store {
    /// Remembers a checkpoint. Saying it twice is saying it once; another commit under the same
    /// number is refused.
    pub fn add_checkpoint(&mut self, checkpoint: &CheckpointRow) -> Result<()> {
        const INSERT: &str = "INSERT INTO checkpoints
                (project, issue, n, session, ref, sha, tree, at, why, files)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            ON CONFLICT (project, issue, n) DO NOTHING";
        const KEPT: &str = "SELECT sha FROM checkpoints WHERE project = $1 AND issue = $2 AND n = $3";
        let (project, issue) = (Word(&checkpoint.task.project), Whole(checkpoint.task.issue));
        let (number, commit) = (Whole(checkpoint.n), Word(&checkpoint.commit));
        let failed = failed_to("write a checkpoint");
        let transaction = self.begin("write a checkpoint")?;
        let run = || {
            transaction.prepare_cached(INSERT)?.execute(params![
                project,
                issue,
                number,
                checkpoint.session,
                checkpoint.reference,
                commit,
                Word(&checkpoint.tree),
                checkpoint.at.0,
                checkpoint.why,
                Whole(checkpoint.files)
            ])?;
            let mut kept = transaction.prepare_cached(KEPT)?;
            kept.query_row(params![project, issue, number], |row| word::<Sha>(row, 0))
        };
        if run().map_err(&failed)? != checkpoint.commit {
            return Err(Error::Invalid { what: "a checkpoint under another's number" });
        }
        transaction.commit().map_err(failed)
    }

    /// A task's checkpoints, oldest first.
    pub fn checkpoints(&self, task: &TaskKey) -> Result<Vec<CheckpointRow>> {
        let sql = format!("{SELECT} ORDER BY n");
        self.rows("read checkpoints", &sql, params![Word(&task.project), Whole(task.issue)], read)
    }

    /// Every checkpoint of a project, by task and number.
    pub fn all_checkpoints(&self, project: &ProjectName) -> Result<Vec<CheckpointRow>> {
        const SQL: &str = "SELECT * FROM checkpoints WHERE project = $1 ORDER BY issue, n";
        self.rows("read checkpoints", SQL, [Word(project)], read)
    }

    /// A task's newest checkpoint: what an unchanged tree is compared with.
    pub fn latest_checkpoint(&self, task: &TaskKey) -> Result<Option<CheckpointRow>> {
        let sql = format!("{SELECT} ORDER BY n DESC LIMIT 1");
        let values = params![Word(&task.project), Whole(task.issue)];
        Ok(self.rows("read checkpoints", &sql, values, read)?.into_iter().next())
    }

    /// The number for a task's next checkpoint, counted from 1.
    pub fn next_checkpoint_number(&self, task: &TaskKey) -> Result<u64> {
        Ok(self.latest_checkpoint(task)?.map_or(1, |latest| latest.n + 1))
    }

    /// The checkpoints that may go: those beyond the newest `keep`, and those made before
    /// `before`; never the newest one. Oldest first.
    pub fn prunable_checkpoints(
        &self,
        task: &TaskKey,
        keep: usize,
        before: Timestamp,
    ) -> Result<Vec<CheckpointRow>> {
        let mut checkpoints = self.checkpoints(task)?;
        checkpoints.pop();
        // The newest one that was taken out counts among the kept.
        let surplus = checkpoints.len().saturating_sub(keep.saturating_sub(1));
        let mut place = 0;
        checkpoints.retain(|checkpoint| {
            place += 1;
            place <= surplus || checkpoint.at < before
        });
        Ok(checkpoints)
    }

    /// Forgets a checkpoint whose ref is gone. Answers whether there was one to forget: the newest
    /// stays, so that its number is not given again.
    pub fn forget_checkpoint(&mut self, task: &TaskKey, n: u64) -> Result<bool> {
        const SQL: &str = "DELETE FROM checkpoints WHERE project = $1 AND issue = $2 AND n = $3
            AND n < (SELECT max(n) FROM checkpoints WHERE project = $1 AND issue = $2)";
        let values = params![Word(&task.project), Whole(task.issue), Whole(n)];
        self.execute("forget a checkpoint", SQL, values).map(|rows| rows > 0)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<CheckpointRow> {
    Ok(CheckpointRow {
        task: TaskKey { project: word(row, "project")?, issue: whole(row, "issue")? },
        n: whole(row, "n")?,
        session: row.get("session")?,
        reference: row.get("ref")?,
        commit: word(row, "sha")?,
        tree: word(row, "tree")?,
        at: time(row, "at")?,
        why: row.get("why")?,
        files: whole(row, "files")?,
    })
}
