//! The daemon's truth, one file per table group.
//!
//! Not here: the embedded forge ([`crate::forge`]), and anything that decides: rows go in and come
//! out as the core's values. Everything is written by [`commit`](Store::commit), which `commit.rs` puts together of
//! statements; each table's file has those for its rows, and the readers.

mod agents;
mod checkpoints;
mod commit;
mod cursors;
mod deliveries;
mod events;
mod memories;
mod merge_queue;
mod messages;
mod notices;
mod numbers;
mod outbox;
#[cfg(test)]
mod plans;
mod projects;
mod questions;
mod queues;
mod replies;
mod runs;
mod sessions;
mod spending;
mod statement;
mod tasks;
mod threads;
mod vault;
mod verdicts;
mod work_states;

use std::path::Path;

use pointsman_core::ids::ProjectName;
use pointsman_core::snapshot::{Kind, Snapshot, Unreadable};
use pointsman_core::words;
use rusqlite::Connection;

use crate::Result;
use crate::column::word;
use crate::database;
use crate::error::{Error, failed_to};
use commit::UnconfirmedCommit;
use numbers::Numbers;

pub use agents::AgentRow;
pub use checkpoints::CheckpointRow;
pub use commit::{Change, Committed, Write};
pub use deliveries::{Delivered, Delivery, DeliveryId, Waiting};
pub use events::{EventFilter, EventRow};
pub use memories::Memory;
pub use merge_queue::{EntryId, EntryScope, EntryStatus, NewEntry, QueueEntry};
pub use messages::{MessageRow, MessageStatus};
pub use notices::{NewNotice, NoticeRow};
pub use outbox::{EffectId, Outgoing};
pub use projects::ProjectRow;
pub use queues::{Audit, QueueRow, Stopped, StoppedBy};
pub use replies::{NewReply, ReplyRow};
pub use runs::RunScope;
pub use sessions::{SessionRow, SessionScope, SessionStatus};
pub use spending::SpendingReport;
pub use threads::Thread;
pub use vault::VaultScope;
pub use verdicts::VerdictRow;

const MIGRATIONS: [&str; 12] = [
    include_str!("../migrations/store/0001_begin.sql"),
    include_str!("../migrations/store/0002_no_work_is_lost.sql"),
    include_str!("../migrations/store/0003_the_line.sql"),
    include_str!("../migrations/store/0004_the_factory.sql"),
    include_str!("../migrations/store/0005_restarts.sql"),
    include_str!("../migrations/store/0006_telling_people.sql"),
    include_str!("../migrations/store/0007_subjects.sql"),
    include_str!("../migrations/store/0008_one_writer.sql"),
    include_str!("../migrations/store/0009_spending_by_class.sql"),
    include_str!("../migrations/store/0010_questions.sql"),
    include_str!("../migrations/store/0011_workflows.sql"),
    include_str!("../migrations/store/0012_notices_in_the_outbox.sql"),
];

/// The daemon's database.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    numbers: Numbers,
    /// The last commit, as long as nobody knows whether it happened.
    doubtful: Option<UnconfirmedCommit>,
}

impl Store {
    /// Opens for the one writer; makes and migrates the file. The caller holds the
    /// [`DaemonLock`](crate::DaemonLock).
    pub fn open(path: &Path) -> Result<Self> {
        let connection = database::open(path, &MIGRATIONS)?;
        let numbers = Numbers::read(&connection)?;
        Ok(Self { connection, numbers, doubtful: None })
    }

    /// Opens for reading, while a daemon writes or after one was killed. Writing through it fails.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        database::open_read_only(path, &MIGRATIONS).map(Self::reader)
    }

    /// The same, for a command that reads and ends.
    pub fn open_for_command(path: &Path) -> Result<Self> {
        database::open_mapped(path, &MIGRATIONS).map(Self::reader)
    }

    /// Lets the file grow to this many pages only (never below its present size), as a full disk
    /// would. For tests of whoever uses the store.
    #[doc(hidden)]
    pub fn limit_pages_for_test(&self, pages: u32) -> Result<()> {
        self.connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
            .map_err(failed_to(words::store::LIMIT_DATABASE))
    }

    /// Gives no numbers out.
    fn reader(connection: Connection) -> Self {
        Self { connection, numbers: Numbers::default(), doubtful: None }
    }

    /// Snapshots that cannot be read, among those that something is still to be done about. What they belong to stands
    /// still until a person sees to it.
    pub fn unreadable(&self) -> Result<Vec<Unreadable>> {
        let mut found = self.unreadable_tasks()?;
        found.extend(self.unreadable_runs()?);
        found.extend(self.unreadable_actions()?);
        found.extend(self.unreadable_memories()?);
        found.extend(self.unreadable_effects()?);
        found.extend(self.unreadable_work_states()?);
        found.extend(self.unreadable_questions()?);
        Ok(found)
    }

    /// Reads snapshots, of rows with a version and a text; fails if one of them cannot be read.
    fn snapshots<T: Snapshot>(
        &self,
        operation: &'static str,
        sql: &str,
        params: impl rusqlite::Params,
        name: impl Fn() -> (Kind, ProjectName, String),
    ) -> Result<Vec<T>> {
        let rows = self.rows(operation, sql, params, |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        let read = |(version, text): (u32, String)| {
            T::read(version, &text).map_err(|why| {
                let (what, project, name) = name();
                Error::Unreadable(Box::new(Unreadable { what, project, name, version, why }))
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// The same for a list, which one bad row must not hide: those that can be read. [`Store::unreadable`] names the rest.
    fn readable<T: Snapshot>(
        &self,
        operation: &'static str,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<T>> {
        let read = |row: &rusqlite::Row<'_>| {
            let text = row.get_ref(1)?;
            Ok(T::read(row.get(0)?, text.as_str()?).ok())
        };
        Ok(self.rows(operation, sql, params, read)?.into_iter().flatten().collect())
    }

    /// Those of rows with a project, a name, a version and a text that `check` does not take.
    fn unreadable_rows(
        &self,
        what: Kind,
        sql: &str,
        check: impl Fn(&str, u32, &str) -> std::result::Result<(), String>,
    ) -> Result<Vec<Unreadable>> {
        let read = |row: &rusqlite::Row<'_>| {
            let name = match row.get_ref(1)? {
                rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                other => other.as_str()?.to_owned(),
            };
            let (project, version): (ProjectName, u32) = (word(row, 0)?, row.get(2)?);
            let why = check(&name, version, row.get_ref(3)?.as_str()?).err();
            Ok(why.map(|why| Unreadable { what, project, name, version, why }))
        };
        Ok(self.rows(words::store::CHECK_SNAPSHOTS, sql, [], read)?.into_iter().flatten().collect())
    }

    /// Reads all rows of a query.
    fn rows<T>(
        &self,
        operation: &'static str,
        sql: &str,
        params: impl rusqlite::Params,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let run =
            || self.connection.prepare_cached(sql)?.query_map(params, read)?.collect::<rusqlite::Result<_>>();
        run().map_err(failed_to(operation))
    }
}
