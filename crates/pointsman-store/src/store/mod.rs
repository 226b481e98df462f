//! The daemon's truth, one file per table group.
//!
//! Not here: the embedded forge ([`crate::forge`]), and anything that decides: rows go in and come
//! out as the core's values. [`commit`](Store::commit) is in `commit.rs`; what it writes is read
//! back in `events.rs`, `tasks.rs`, `outbox.rs`, `messages.rs`, `work_states.rs`, `runs.rs`, `vault.rs`,
//! `notices.rs` and `replies.rs`.

mod agents;
mod checkpoints;
mod commit;
mod cursors;
mod deliveries;
mod events;
mod lines;
mod merge_queue;
mod messages;
mod notices;
mod outbox;
#[cfg(test)]
mod plans;
mod projects;
mod replies;
mod runs;
mod sessions;
mod spending;
mod tasks;
mod threads;
mod vault;
mod verdicts;
mod work_states;

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::Result;
use crate::database;
use crate::error::failed_to;

pub use agents::AgentRow;
pub use checkpoints::CheckpointRow;
pub use commit::{Change, Committed};
pub use deliveries::{Delivered, Delivery, DeliveryId, Waiting};
pub use events::{EventFilter, EventRow};
pub use lines::{Audit, LineRow, Stopped, StoppedBy};
pub use merge_queue::{EntryId, EntryScope, EntryStatus, NewEntry, QueueEntry};
pub use messages::{MessageRow, MessageStatus};
pub use notices::{NewNotice, NoticeRow};
pub use outbox::{EffectId, Outgoing};
pub use projects::ProjectRow;
pub use replies::{NewReply, ReplyRow};
pub use runs::RunScope;
pub use sessions::{SessionRow, SessionScope, SessionStatus};
pub use threads::Thread;
pub use vault::VaultScope;
pub use verdicts::VerdictRow;

const MIGRATIONS: [&str; 7] = [
    include_str!("../migrations/store/0001_begin.sql"),
    include_str!("../migrations/store/0002_no_work_is_lost.sql"),
    include_str!("../migrations/store/0003_the_line.sql"),
    include_str!("../migrations/store/0004_the_factory.sql"),
    include_str!("../migrations/store/0005_restarts.sql"),
    include_str!("../migrations/store/0006_telling_people.sql"),
    include_str!("../migrations/store/0007_subjects.sql"),
];

/// The daemon's database.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens for the one writer; makes and migrates the file. The caller holds the
    /// [`DaemonLock`](crate::DaemonLock).
    pub fn open(path: &Path) -> Result<Self> {
        database::open(path, &MIGRATIONS).map(|connection| Self { connection })
    }

    /// Opens for reading, while a daemon writes or after one was killed. Writing through it fails.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        database::open_read_only(path, &MIGRATIONS).map(|connection| Self { connection })
    }

    /// The same, for a command that reads and ends.
    pub fn open_for_command(path: &Path) -> Result<Self> {
        database::open_mapped(path, &MIGRATIONS).map(|connection| Self { connection })
    }

    /// Lets the file grow to this many pages only (never below its present size), as a full disk
    /// would. For tests of whoever uses the store.
    #[doc(hidden)]
    pub fn limit_pages_for_test(&mut self, pages: u32) -> Result<()> {
        self.connection
            .query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
            .map_err(failed_to("limit the database"))
    }

    /// Begins a transaction that holds the write lock from the start, so that what it reads stays
    /// true until it commits.
    fn begin(&mut self, operation: &'static str) -> Result<Transaction<'_>> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed_to(operation))
    }

    /// Runs one statement as a transaction of its own; answers how many rows it touched.
    fn execute(
        &mut self,
        operation: &'static str,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<usize> {
        let run = || self.connection.prepare_cached(sql)?.execute(params);
        run().map_err(failed_to(operation))
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
