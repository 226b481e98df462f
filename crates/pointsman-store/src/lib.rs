//! Remembers: the only crate that knows SQL.
//!
//! Two independent databases: [`Store`] is the daemon's truth (events, task snapshots, the outbox
//! of effects), [`ForgeDatabase`] holds one project's embedded forge. [`lock`] keeps a second daemon
//! away. Nothing is decided here and nothing outside the two files is touched.
//!
//! Where next: [`Store::commit`] is the only function that writes.
//!
//! SQL is written with `$1, $2 …` in order of first use, and in the dialect PostgreSQL shares,
//! so that a second backend can take it over.

pub mod backup;
mod column;
mod database;
mod error;
pub mod forge;
pub mod lock;
mod store;

pub use error::{Error, Retry};
pub use forge::ForgeDatabase;
pub use lock::DaemonLock;
pub use store::{
    AgentRow, Audit, Change, CheckpointRow, Committed, Delivered, Delivery, DeliveryId, EffectId, EntryId,
    EntryScope, EntryStatus, EventFilter, EventRow, Memory, MessageRow, MessageStatus, NewEntry, NewNotice,
    NewReply, NoticeRow, Outgoing, ProjectRow, QueueEntry, QueueRow, ReplyRow, RunScope, SessionRow,
    SessionScope, SessionStatus, SpendingReport, Stopped, StoppedBy, Store, Thread, VaultScope, VerdictRow,
    Waiting, Write,
};

/// What every call here answers.
pub type Result<T, E = Error> = std::result::Result<T, E>;
