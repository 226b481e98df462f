//! Dangerous actions and what became of them.
//!
//! An entry is written by [`Store::commit`], together with the event that changed it.

use pointsman_core::ids::ProjectName;
use pointsman_core::snapshot::{Kind, Snapshot, Unreadable};
use pointsman_core::vault::{ActionId, Entry};
use pointsman_core::words;
use rusqlite::params;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Word};

/// The actions to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaultScope {
    /// Those with something left to be done about them.
    Open,
    All,
}

impl Store {
    /// Reads one action.
    pub fn vault_entry(&self, project: &ProjectName, id: &ActionId) -> Result<Option<Entry>> {
        const SQL: &str = "SELECT version, entry FROM vault WHERE project = $1 AND id = $2";
        let name = || (Kind::VaultAction, project.clone(), id.to_string());
        let found = self.snapshots(words::store::READ_VAULT, SQL, params![Word(project), Word(id)], name)?;
        Ok(found.into_iter().next())
    }

    /// A project's actions that can be read, oldest first.
    pub fn vault_entries(&self, project: &ProjectName, scope: VaultScope) -> Result<Vec<Entry>> {
        self.readable(words::store::READ_VAULT, entries(scope), [Word(project)])
    }

    pub(super) fn unreadable_actions(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str = "SELECT project, id, version, entry FROM vault WHERE open";
        self.unreadable_rows(Kind::VaultAction, SQL, |_, version, text| Entry::read(version, text).map(drop))
    }
}

pub(super) fn entries(scope: VaultScope) -> &'static str {
    match scope {
        VaultScope::Open => {
            "SELECT version, entry FROM vault WHERE project = $1 AND open ORDER BY submitted_at"
        }
        VaultScope::All => "SELECT version, entry FROM vault WHERE project = $1 ORDER BY submitted_at",
    }
}

/// Writes an action as it is now. What was submitted under a name stays what it is.
pub(super) fn put(draft: &mut Draft<'_>, entry: &Entry) -> Result<()> {
    // Another action would make the column empty, which its constraint refuses.
    const SQL: &str = "INSERT INTO vault (project, id, status, open, submitted_at, hash, entry, version)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (project, id) DO UPDATE SET
            status = excluded.status, open = excluded.open, entry = excluded.entry, version = excluded.version,
            hash = CASE WHEN vault.hash = excluded.hash THEN vault.hash ELSE NULL END";
    let values = values![
        Word(&entry.project),
        Word(entry.id()),
        Word(entry.status),
        entry.is_open(),
        entry.submitted_at,
        &entry.hash,
        Json(entry),
        Entry::VERSION
    ];
    let refusal = words::store::ANOTHER_ACTION;
    draft.push(Statement::new(words::store::WRITE_VAULT, SQL, values).or_refused(refusal));
    Ok(())
}
