//! Memories of roles, schedules and counts about a project: snapshots by name.

use pointsman_core::ids::ProjectName;
use pointsman_core::snapshot::{Kind, Snapshot, Unreadable, check_memory};
use pointsman_core::words;
use rusqlite::params;
use serde_json::Value;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Word};
use crate::error::Error;

/// Something to remember under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    pub name: String,
    pub version: u32,
    pub snapshot: Value,
}

impl Memory {
    /// A snapshot to remember.
    pub fn new<T: Snapshot>(name: impl Into<String>, snapshot: &T) -> Result<Self> {
        let unwritable = |_| Error::Invalid { what: words::store::UNWRITABLE_MEMORY };
        let snapshot = serde_json::to_value(snapshot).map_err(unwritable)?;
        Ok(Self { name: name.into(), version: T::VERSION, snapshot })
    }
}

impl Store {
    /// The snapshot that is remembered under a name; nothing if nothing ever was.
    pub fn memory<T: Snapshot>(&self, project: &ProjectName, name: &str) -> Result<Option<T>> {
        const SQL: &str = "SELECT version, snapshot FROM memories WHERE project = $1 AND name = $2";
        let named = || (Kind::Memory, project.clone(), name.to_owned());
        let found = self.snapshots(words::store::READ_MEMORY, SQL, params![Word(project), name], named)?;
        Ok(found.into_iter().next())
    }

    pub(super) fn unreadable_memories(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str = "SELECT project, name, version, snapshot FROM memories ORDER BY project, name";
        self.unreadable_rows(Kind::Memory, SQL, check_memory)
    }
}

pub(super) fn put(draft: &mut Draft<'_>, project: &ProjectName, memory: &Memory) -> Result<()> {
    const SQL: &str = "INSERT INTO memories (project, name, version, snapshot) VALUES ($1, $2, $3, $4)
        ON CONFLICT (project, name) DO UPDATE SET version = excluded.version, snapshot = excluded.snapshot";
    let values = values![Word(project), &memory.name, memory.version, Json(&memory.snapshot)];
    draft.push(Statement::new(words::store::WRITE_MEMORY, SQL, values));
    Ok(())
}
