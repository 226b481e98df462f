//! Small named values: how far something was read, what a file last looked like.

use pointsman_core::ids::ProjectName;
use rusqlite::{Connection, params};

use super::Store;
use crate::Result;
use crate::error::failed_to;

impl Store {
    /// A value of a project, or of the whole daemon.
    pub fn cursor(&self, project: Option<&ProjectName>, name: &str) -> Result<Option<String>> {
        const SQL: &str = "SELECT value FROM cursors WHERE project = $1 AND name = $2";
        let rows = self.rows("read a cursor", SQL, params![column(project), name], |row| row.get("value"))?;
        Ok(rows.into_iter().next())
    }

    /// Sets a value. One that belongs to an event is set with it, by [`Store::commit`].
    pub fn set_cursor(&mut self, project: Option<&ProjectName>, name: &str, value: &str) -> Result<()> {
        set(&self.connection, project, name, value)
    }
}

pub(super) fn set(
    connection: &Connection,
    project: Option<&ProjectName>,
    name: &str,
    value: &str,
) -> Result<()> {
    const SQL: &str = "INSERT INTO cursors (project, name, value) VALUES ($1, $2, $3)
        ON CONFLICT (project, name) DO UPDATE SET value = excluded.value";
    let run = || connection.prepare_cached(SQL)?.execute(params![column(project), name, value]);
    run().map(|_| ()).map_err(failed_to("set a cursor"))
}

/// No project has an empty name, so that one is free for the daemon's own.
fn column(project: Option<&ProjectName>) -> &str {
    project.map_or("", ProjectName::as_str)
}
