//! Task snapshots, written by [`Store::commit`].

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::task::Task;
use rusqlite::{Connection, params};

use super::Store;
use crate::Result;
use crate::column::{Json, Whole, Word, json};
use crate::error::failed_to;

pub(super) const OPEN: &str = "SELECT snapshot FROM tasks WHERE state <> 'closed' ORDER BY project, issue";

impl Store {
    /// All tasks, or one project's, by project and issue.
    pub fn tasks(&self, project: Option<&ProjectName>) -> Result<Vec<Task>> {
        match project {
            Some(project) => self.read_tasks(
                "SELECT snapshot FROM tasks WHERE project = $1 ORDER BY issue",
                params![Word(project)],
            ),
            None => self.read_tasks("SELECT snapshot FROM tasks ORDER BY project, issue", []),
        }
    }

    /// The tasks that are not closed, of all projects.
    pub fn open_tasks(&self) -> Result<Vec<Task>> {
        self.read_tasks(OPEN, [])
    }

    /// One task.
    pub fn task(&self, key: &TaskKey) -> Result<Option<Task>> {
        let tasks = self.read_tasks(
            "SELECT snapshot FROM tasks WHERE project = $1 AND issue = $2",
            params![Word(&key.project), Whole(key.issue)],
        )?;
        Ok(tasks.into_iter().next())
    }

    fn read_tasks(&self, sql: &str, params: impl rusqlite::Params) -> Result<Vec<Task>> {
        self.rows("read tasks", sql, params, |row| json(row, "snapshot"))
    }
}

pub(super) fn upsert(connection: &Connection, task: &Task) -> Result<()> {
    const SQL: &str = "INSERT INTO tasks (project, issue, state, since, snapshot, phase)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (project, issue) DO UPDATE SET state = excluded.state, since = excluded.since,
            snapshot = excluded.snapshot, phase = excluded.phase";
    let key = &task.key;
    let run = || {
        connection.prepare_cached(SQL)?.execute(params![
            Word(&key.project),
            Whole(key.issue),
            task.state.name(),
            task.since.0,
            Json(task),
            task.phase.map(Word)
        ])
    };
    run().map(|_| ()).map_err(failed_to("write a task"))
}
