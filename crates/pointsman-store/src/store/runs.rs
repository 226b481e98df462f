//! Runs of formulas. One is written by [`Store::commit`], together with the event that changed it.

use pointsman_core::ids::ProjectName;
use pointsman_core::run::{Run, RunId, Subject};
use rusqlite::{Connection, params};

use super::Store;
use crate::Result;
use crate::column::{Json, Whole, Word, json, whole};
use crate::error::failed_to;

/// Which runs to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunScope {
    /// Those with something left to be done about them.
    Open,
    /// The last ones, at most this many.
    Last(u32),
}

impl Store {
    /// One run.
    pub fn run(&self, project: &ProjectName, id: RunId) -> Result<Option<Run>> {
        const SQL: &str = "SELECT run FROM runs WHERE project = $1 AND id = $2";
        let values = params![Word(project), Whole(id.0)];
        let rows = self.rows("read runs", SQL, values, |row| json(row, "run"))?;
        Ok(rows.into_iter().next())
    }

    /// A project's runs, oldest first.
    pub fn runs(&self, project: &ProjectName, scope: RunScope) -> Result<Vec<Run>> {
        match scope {
            RunScope::Open => self.rows("read runs", OPEN, [Word(project)], |row| json(row, "run")),
            RunScope::Last(limit) => {
                const SQL: &str = "SELECT run FROM runs WHERE project = $1 ORDER BY id DESC LIMIT $2";
                let values = params![Word(project), limit];
                let mut runs: Vec<Run> = self.rows("read runs", SQL, values, |row| json(row, "run"))?;
                runs.reverse();
                Ok(runs)
            }
        }
    }

    /// The newest run of a formula.
    pub fn last_run(&self, project: &ProjectName, formula: &str) -> Result<Option<Run>> {
        const SQL: &str = "SELECT run FROM runs WHERE project = $1 AND formula = $2 ORDER BY id DESC LIMIT 1";
        let rows = self.rows("read runs", SQL, params![Word(project), formula], |row| json(row, "run"))?;
        Ok(rows.into_iter().next())
    }

    /// All runs about one thing, oldest first.
    pub fn runs_about(&self, project: &ProjectName, subject: &str) -> Result<Vec<Run>> {
        self.rows("read runs", ABOUT, params![Word(project), subject], |row| json(row, "run"))
    }

    /// The number of the next run.
    pub fn next_run(&self, project: &ProjectName) -> Result<RunId> {
        const SQL: &str = "SELECT coalesce(max(id), 0) + 1 AS next FROM runs WHERE project = $1";
        let rows = self.rows("read runs", SQL, [Word(project)], |row| whole(row, "next"))?;
        Ok(RunId(rows.into_iter().next().unwrap_or(1)))
    }
}

pub(super) const OPEN: &str = "SELECT run FROM runs WHERE project = $1 AND open ORDER BY id";

pub(super) const ABOUT: &str = "SELECT run FROM runs WHERE project = $1 AND subject = $2 ORDER BY id";

pub(super) fn put(connection: &Connection, run: &Run) -> Result<()> {
    const SQL: &str = "INSERT INTO runs (project, id, formula, status, open, started_at, run, subject)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (project, id) DO UPDATE SET
            status = excluded.status, open = excluded.open, run = excluded.run";
    let execute = || {
        connection.prepare_cached(SQL)?.execute(params![
            Word(&run.project),
            Whole(run.id.0),
            run.formula.name,
            Word(run.status),
            run.is_open(),
            run.started_at.0,
            Json(run),
            run.subject.as_ref().map(Subject::key)
        ])
    };
    execute().map(drop).map_err(failed_to("write a run"))
}
