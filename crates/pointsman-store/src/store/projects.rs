//! The projects this daemon serves.

use std::path::PathBuf;

use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::Row;
use serde::Serialize;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Word, time, word};

/// A project that the daemon serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectRow {
    pub name: ProjectName,
    /// Its `pointsman.toml`.
    pub config_path: PathBuf,
    pub checkout: PathBuf,
    pub added_at: Timestamp,
}

impl Store {
    /// The projects that are not removed, by name.
    pub fn projects(&self) -> Result<Vec<ProjectRow>> {
        const SQL: &str = "SELECT name, config_path, checkout, added_at FROM projects
            WHERE removed_at IS NULL ORDER BY name";
        self.rows(words::store::READ_PROJECTS, SQL, [], read)
    }

    /// One project that is not removed.
    pub fn project(&self, name: &ProjectName) -> Result<Option<ProjectRow>> {
        const SQL: &str = "SELECT name, config_path, checkout, added_at FROM projects
            WHERE name = $1 AND removed_at IS NULL";
        Ok(self.rows(words::store::READ_PROJECTS, SQL, [Word(name)], read)?.into_iter().next())
    }
}

/// Adds a project, brings a removed one back, or moves a known one to other paths.
pub(super) fn add(draft: &mut Draft<'_>, project: &ProjectRow) -> Result<()> {
    const SQL: &str = "INSERT INTO projects (name, config_path, checkout, added_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE SET config_path = excluded.config_path,
            checkout = excluded.checkout, removed_at = NULL";
    let (name, config_path) = (Word(&project.name), Word(&project.config_path));
    let values = values![name, config_path, Word(&project.checkout), project.added_at];
    draft.push(Statement::new(words::store::ADD_PROJECT, SQL, values));
    Ok(())
}

/// Marks a project as removed; its tasks and events stay.
pub(super) fn remove(draft: &mut Draft<'_>, name: &ProjectName, at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE projects SET removed_at = $1 WHERE name = $2 AND removed_at IS NULL";
    draft.push(Statement::new(words::store::REMOVE_PROJECT, SQL, values![at, Word(name)]));
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<ProjectRow> {
    Ok(ProjectRow {
        name: word(row, "name")?,
        config_path: word(row, "config_path")?,
        checkout: word(row, "checkout")?,
        added_at: time(row, "added_at")?,
    })
}
