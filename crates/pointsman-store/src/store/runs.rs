//! Runs of formulas. One is written by [`Store::commit`], together with the event that changed it.

use pointsman_core::ids::ProjectName;
use pointsman_core::run::{Run, RunId, Subject};
use pointsman_core::snapshot::{Kind, Snapshot, Unreadable};
use pointsman_core::words;
use rusqlite::params;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Whole, Word, whole};

/// The runs to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunScope {
    /// Those with something left to be done about them.
    Open,
    /// The last ones, at most this many.
    Last(u32),
}

impl Store {
    /// Reads one run.
    pub fn run(&self, project: &ProjectName, id: RunId) -> Result<Option<Run>> {
        const SQL: &str = "SELECT version, run FROM runs WHERE project = $1 AND id = $2";
        let name = || (Kind::Run, project.clone(), id.to_string());
        Ok(self
            .snapshots(words::store::READ_RUNS, SQL, params![Word(project), Whole(id.0)], name)?
            .into_iter()
            .next())
    }

    /// A project's runs that can be read, oldest first.
    pub fn runs(&self, project: &ProjectName, scope: RunScope) -> Result<Vec<Run>> {
        match scope {
            RunScope::Open => self.readable(words::store::READ_RUNS, OPEN, [Word(project)]),
            RunScope::Last(limit) => {
                const SQL: &str =
                    "SELECT version, run FROM runs WHERE project = $1 ORDER BY id DESC LIMIT $2";
                let mut runs: Vec<Run> =
                    self.readable(words::store::READ_RUNS, SQL, params![Word(project), limit])?;
                runs.reverse();
                Ok(runs)
            }
        }
    }

    /// The newest run of a formula.
    pub fn last_run(&self, project: &ProjectName, formula: &str) -> Result<Option<Run>> {
        const SQL: &str =
            "SELECT version, run FROM runs WHERE project = $1 AND formula = $2 ORDER BY id DESC LIMIT 1";
        let name = || (Kind::Run, project.clone(), formula.to_owned());
        Ok(self
            .snapshots(words::store::READ_RUNS, SQL, params![Word(project), formula], name)?
            .into_iter()
            .next())
    }

    /// All runs about one thing, oldest first.
    pub fn runs_about(&self, project: &ProjectName, subject: &str) -> Result<Vec<Run>> {
        let name = || (Kind::Run, project.clone(), subject.to_owned());
        self.snapshots(words::store::READ_RUNS, ABOUT, params![Word(project), subject], name)
    }

    /// The number of the next run.
    pub fn next_run(&self, project: &ProjectName) -> Result<RunId> {
        const SQL: &str = "SELECT coalesce(max(id), 0) + 1 AS next FROM runs WHERE project = $1";
        let rows = self.rows(words::store::READ_RUNS, SQL, [Word(project)], |row| whole(row, "next"))?;
        Ok(RunId(rows.into_iter().next().unwrap_or(1)))
    }

    /// Open runs, and those that are over and still asked for: the newest of a formula, and runs about something.
    pub(super) fn unreadable_runs(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str = "SELECT project, id, version, run FROM runs AS one
            WHERE open OR subject IS NOT NULL OR id = (SELECT max(id) FROM runs AS other
                WHERE other.project = one.project AND other.formula = one.formula)";
        self.unreadable_rows(Kind::Run, SQL, |_, version, text| Run::read(version, text).map(drop))
    }
}

pub(super) const OPEN: &str = "SELECT version, run FROM runs WHERE project = $1 AND open ORDER BY id";

pub(super) const ABOUT: &str =
    "SELECT version, run FROM runs WHERE project = $1 AND subject = $2 ORDER BY id";

pub(super) fn put(draft: &mut Draft<'_>, run: &Run) -> Result<()> {
    const SQL: &str =
        "INSERT INTO runs (project, id, formula, status, open, started_at, run, subject, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (project, id) DO UPDATE SET status = excluded.status, open = excluded.open,
            run = excluded.run, version = excluded.version";
    let values = values![
        Word(&run.project),
        Whole(run.id.0),
        &run.formula.name,
        Word(run.status),
        run.is_open(),
        run.started_at,
        Json(run),
        run.subject.as_ref().map(Subject::key),
        Run::VERSION
    ];
    draft.push(Statement::new(words::store::WRITE_RUN, SQL, values));
    Ok(())
}
