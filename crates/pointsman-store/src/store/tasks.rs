//! Task snapshots, written by [`Store::commit`].

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::snapshot::{Kind, Snapshot, Unreadable};
use pointsman_core::task::Task;
use pointsman_core::words;
use rusqlite::params;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Whole, Word};

pub(super) const OPEN: &str =
    "SELECT version, snapshot FROM tasks WHERE state <> 'closed' ORDER BY project, issue";

impl Store {
    /// All tasks that can be read, or one project's, by project and issue.
    pub fn tasks(&self, project: Option<&ProjectName>) -> Result<Vec<Task>> {
        const ALL: &str = "SELECT version, snapshot FROM tasks ORDER BY project, issue";
        const OF_PROJECT: &str = "SELECT version, snapshot FROM tasks WHERE project = $1 ORDER BY issue";
        match project {
            Some(project) => self.readable(words::store::READ_TASKS, OF_PROJECT, params![Word(project)]),
            None => self.readable(words::store::READ_TASKS, ALL, []),
        }
    }

    /// The tasks that are not closed and can be read, of all projects.
    pub fn open_tasks(&self) -> Result<Vec<Task>> {
        self.readable(words::store::READ_TASKS, OPEN, [])
    }

    /// Reads one task.
    pub fn task(&self, key: &TaskKey) -> Result<Option<Task>> {
        const SQL: &str = "SELECT version, snapshot FROM tasks WHERE project = $1 AND issue = $2";
        let values = params![Word(&key.project), Whole(key.issue)];
        let name = || (Kind::Task, key.project.clone(), key.issue.to_string());
        Ok(self.snapshots(words::store::READ_TASKS, SQL, values, name)?.into_iter().next())
    }

    pub(super) fn unreadable_tasks(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str = "SELECT project, issue, version, snapshot FROM tasks WHERE state <> 'closed'";
        self.unreadable_rows(Kind::Task, SQL, |_, version, text| Task::read(version, text).map(drop))
    }
}

pub(super) fn upsert(draft: &mut Draft<'_>, task: &Task) -> Result<()> {
    const SQL: &str = "INSERT INTO tasks (project, issue, state, since, snapshot, phase, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (project, issue) DO UPDATE SET state = excluded.state, since = excluded.since,
            snapshot = excluded.snapshot, phase = excluded.phase, version = excluded.version";
    let values = values![
        Word(&task.key.project),
        Whole(task.key.issue),
        task.state.name(),
        task.since,
        Json(task),
        task.phase.map(Word),
        Task::VERSION
    ];
    draft.push(Statement::new(words::store::WRITE_TASK, SQL, values));
    Ok(())
}
