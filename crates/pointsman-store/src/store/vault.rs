//! Dangerous actions and what became of them.
//!
//! An entry is written by [`Store::commit`], together with the event that changed it.

use pointsman_core::ids::ProjectName;
use pointsman_core::vault::{ActionId, Entry};
use rusqlite::{Connection, params};

use super::Store;
use crate::Result;
use crate::column::{Json, Word, json};
use crate::error::{Error, failed_to};

/// Which actions to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultScope {
    /// Those with something left to be done about them.
    Open,
    All,
}

impl Store {
    /// One action.
    pub fn vault_entry(&self, project: &ProjectName, id: &ActionId) -> Result<Option<Entry>> {
        const SQL: &str = "SELECT entry FROM vault WHERE project = $1 AND id = $2";
        let rows =
            self.rows("read the vault", SQL, params![Word(project), Word(id)], |row| json(row, "entry"))?;
        Ok(rows.into_iter().next())
    }

    /// A project's actions, oldest first.
    pub fn vault_entries(&self, project: &ProjectName, scope: VaultScope) -> Result<Vec<Entry>> {
        self.rows("read the vault", entries(scope), [Word(project)], |row| json(row, "entry"))
    }
}

pub(super) fn entries(scope: VaultScope) -> &'static str {
    match scope {
        VaultScope::Open => "SELECT entry FROM vault WHERE project = $1 AND open ORDER BY submitted_at",
        VaultScope::All => "SELECT entry FROM vault WHERE project = $1 ORDER BY submitted_at",
    }
}

/// Writes an action as it is now. What was submitted under a name stays what it is.
pub(super) fn put(connection: &Connection, entry: &Entry) -> Result<()> {
    const SQL: &str = "INSERT INTO vault (project, id, status, open, submitted_at, hash, entry)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (project, id) DO UPDATE SET
            status = excluded.status, open = excluded.open, entry = excluded.entry
        WHERE vault.hash = excluded.hash";
    let run = || {
        connection.prepare_cached(SQL)?.execute(params![
            Word(&entry.project),
            Word(entry.id()),
            Word(entry.status),
            entry.is_open(),
            entry.submitted_at.0,
            entry.hash,
            Json(entry)
        ])
    };
    match run().map_err(failed_to("write the vault"))? {
        0 => Err(Error::Invalid { what: "another action under the name of one in the vault" }),
        _ => Ok(()),
    }
}
