//! The list of captures of a task's working tree. The captures themselves are refs in the mirror; whoever makes or
//! removes one tells this table afterwards.

use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Row, params};
use serde::Serialize;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Whole, Word, time, whole, word};

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
    /// A task's checkpoints, oldest first.
    pub fn checkpoints(&self, task: &TaskKey) -> Result<Vec<CheckpointRow>> {
        let sql = format!("{SELECT} ORDER BY n");
        self.rows(words::store::READ_CHECKPOINTS, &sql, params![Word(&task.project), Whole(task.issue)], read)
    }

    /// Every checkpoint of a project, by task and number.
    pub fn all_checkpoints(&self, project: &ProjectName) -> Result<Vec<CheckpointRow>> {
        const SQL: &str = "SELECT * FROM checkpoints WHERE project = $1 ORDER BY issue, n";
        self.rows(words::store::READ_CHECKPOINTS, SQL, [Word(project)], read)
    }

    /// A task's newest checkpoint: what an unchanged tree is compared with.
    pub fn latest_checkpoint(&self, task: &TaskKey) -> Result<Option<CheckpointRow>> {
        let sql = format!("{SELECT} ORDER BY n DESC LIMIT 1");
        let values = params![Word(&task.project), Whole(task.issue)];
        Ok(self.rows(words::store::READ_CHECKPOINTS, &sql, values, read)?.into_iter().next())
    }

    /// The number for a task's next checkpoint, counted from 1.
    pub fn next_checkpoint_number(&self, task: &TaskKey) -> Result<u64> {
        Ok(self.latest_checkpoint(task)?.map_or(1, |latest| latest.n + 1))
    }
}

/// Remembers a checkpoint. Saying it twice is saying it once; another commit under the same number is refused.
pub(super) fn add(draft: &mut Draft<'_>, checkpoint: &CheckpointRow) -> Result<()> {
    // Another commit would make the column empty, which its constraint refuses.
    const SQL: &str = "INSERT INTO checkpoints
            (project, issue, n, session, ref, sha, tree, at, why, files)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (project, issue, n) DO UPDATE
        SET sha = CASE WHEN checkpoints.sha = excluded.sha THEN checkpoints.sha ELSE NULL END";
    let values = values![
        Word(&checkpoint.task.project),
        Whole(checkpoint.task.issue),
        Whole(checkpoint.n),
        checkpoint.session.as_ref(),
        &checkpoint.reference,
        Word(&checkpoint.commit),
        Word(&checkpoint.tree),
        checkpoint.at,
        &checkpoint.why,
        Whole(checkpoint.files)
    ];
    let refusal = words::store::ANOTHER_CHECKPOINT;
    draft.push(Statement::new(words::store::WRITE_CHECKPOINT, SQL, values).or_refused(refusal));
    Ok(())
}

/// Forgets a checkpoint whose ref is gone. The newest stays, so that its number is not given again.
pub(super) fn forget(draft: &mut Draft<'_>, task: &TaskKey, n: u64) -> Result<()> {
    const SQL: &str = "DELETE FROM checkpoints WHERE project = $1 AND issue = $2 AND n = $3
        AND n < (SELECT max(n) FROM checkpoints WHERE project = $1 AND issue = $2)";
    let values = values![Word(&task.project), Whole(task.issue), Whole(n)];
    draft.push(Statement::new(words::store::FORGET_CHECKPOINT, SQL, values));
    Ok(())
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
