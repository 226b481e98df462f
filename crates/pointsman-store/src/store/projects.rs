//! The projects this daemon serves.

use std::path::PathBuf;

use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use rusqlite::{Row, params};
use serde::Serialize;

use super::Store;
use crate::Result;
use crate::column::{Word, time, word};

/// A project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProjectRow {
    pub name: ProjectName,
    /// Its `pointsman.toml`.
    pub config_path: PathBuf,
    pub checkout: PathBuf,
    /// When it was added.
    pub added_at: Timestamp,
}

impl Store {
    /// Adds a project, brings a removed one back, or moves a known one to other paths.
    pub fn add_project(&mut self, project: &ProjectRow) -> Result<()> {
        const SQL: &str = "INSERT INTO projects (name, config_path, checkout, added_at)
            VALUES ($1, $2, $3, $4)
            ON CONFLICT (name) DO UPDATE SET config_path = excluded.config_path,
                checkout = excluded.checkout, removed_at = NULL";
        self.execute(
            "add a project",
            SQL,
            params![
                Word(&project.name),
                Word(&project.config_path),
                Word(&project.checkout),
                project.added_at.0
            ],
        )
        .map(|_| ())
    }

    /// Marks a project as removed; its tasks and events stay. Answers whether it was there.
    pub fn remove_project(&mut self, name: &ProjectName, at: Timestamp) -> Result<bool> {
        const SQL: &str = "UPDATE projects SET removed_at = $1 WHERE name = $2 AND removed_at IS NULL";
        self.execute("remove a project", SQL, params![at.0, Word(name)]).map(|rows| rows > 0)
    }

    /// The projects that are not removed, by name.
    pub fn projects(&self) -> Result<Vec<ProjectRow>> {
        const SQL: &str = "SELECT name, config_path, checkout, added_at FROM projects
            WHERE removed_at IS NULL ORDER BY name";
        self.rows("read the projects", SQL, [], read)
    }

    /// One project that is not removed.
    pub fn project(&self, name: &ProjectName) -> Result<Option<ProjectRow>> {
        const SQL: &str = "SELECT name, config_path, checkout, added_at FROM projects
            WHERE name = $1 AND removed_at IS NULL";
        Ok(self.rows("read the projects", SQL, [Word(name)], read)?.into_iter().next())
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ProjectRow> {
    Ok(ProjectRow {
        name: word(row, "name")?,
        config_path: word(row, "config_path")?,
        checkout: word(row, "checkout")?,
        added_at: time(row, "added_at")?,
    })
}
