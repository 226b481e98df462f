//! Small named values: how far something was read, what a file last looked like.

use pointsman_core::ids::ProjectName;
use pointsman_core::words;
use rusqlite::params;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;

impl Store {
    /// A value of a project, or of the whole daemon.
    pub fn cursor(&self, project: Option<&ProjectName>, name: &str) -> Result<Option<String>> {
        const SQL: &str = "SELECT value FROM cursors WHERE project = $1 AND name = $2";
        let rows = self
            .rows(words::store::READ_CURSOR, SQL, params![column(project), name], |row| row.get("value"))?;
        Ok(rows.into_iter().next())
    }
}

pub(super) fn set(
    draft: &mut Draft<'_>,
    project: Option<&ProjectName>,
    name: &str,
    value: &str,
) -> Result<()> {
    const SQL: &str = "INSERT INTO cursors (project, name, value) VALUES ($1, $2, $3)
        ON CONFLICT (project, name) DO UPDATE SET value = excluded.value";
    draft.push(Statement::new(words::store::SET_CURSOR, SQL, values![column(project), name, value]));
    Ok(())
}

/// No project has an empty name, so that one is free for the daemon's own.
fn column(project: Option<&ProjectName>) -> &str {
    project.map_or("", ProjectName::as_str)
}
