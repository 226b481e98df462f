//! Threads of chat rooms, one for each topic.

use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::Topic;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Row, params};

use super::commit::Draft;
use super::statement::{Statement, Value, values};
use super::{DeliveryId, Store};
use crate::Result;
use crate::column::{Word, time, word};

/// A thread in a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub project: ProjectName,
    pub place: String,
    pub topic: Topic,
    /// Its first message, by the name the server gave it.
    pub root: String,
    pub first: String,
    /// How things stand, as that shows it now; empty as long as it shows what it said.
    pub shown: String,
    /// How often that was changed.
    pub edits: u32,
    /// When it was changed last.
    pub edited_at: Timestamp,
    /// Whether what it shows may still change.
    pub open: bool,
}

impl Store {
    /// The thread of a topic.
    pub fn thread(&self, project: &ProjectName, place: &str, topic: &Topic) -> Result<Option<Thread>> {
        const SQL: &str = "SELECT * FROM threads WHERE project = $1 AND place = $2 AND topic = $3";
        let rows =
            self.rows(words::store::READ_THREADS, SQL, params![Word(project), place, Word(topic)], read)?;
        Ok(rows.into_iter().next())
    }

    /// The topic of the thread that a message began.
    pub fn topic_of_thread(&self, project: &ProjectName, place: &str, root: &str) -> Result<Option<Topic>> {
        let read = |row: &Row<'_>| word(row, "topic");
        let rows =
            self.rows(words::store::READ_THREADS, OF_ROOT, params![Word(project), place, root], read)?;
        Ok(rows.into_iter().next())
    }

    /// Threads whose first message may still change.
    pub fn open_threads(&self, project: &ProjectName, place: &str) -> Result<Vec<Thread>> {
        self.rows(words::store::READ_THREADS, OPEN, params![Word(project), place], read)
    }
}

pub(super) const OF_ROOT: &str = "SELECT topic FROM threads WHERE project = $1 AND place = $2 AND root = $3";
pub(super) const OPEN: &str =
    "SELECT * FROM threads WHERE project = $1 AND place = $2 AND open ORDER BY topic";

/// Writes a thread as it is now.
pub(super) fn put(draft: &mut Draft<'_>, thread: &Thread) -> Result<()> {
    const SQL: &str =
        "INSERT INTO threads (project, place, topic, root, first, shown, edits, edited_at, open)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
        ON CONFLICT (project, place, topic) DO UPDATE SET
            root = excluded.root, first = excluded.first, shown = excluded.shown, edits = excluded.edits,
            edited_at = excluded.edited_at, open = excluded.open";
    let values = columns(thread)?;
    draft.push(Statement::new(words::store::WRITE_THREAD, SQL, values));
    Ok(())
}

/// The same, if this delivery is not settled yet.
pub(super) fn put_with(draft: &mut Draft<'_>, thread: &Thread, delivery: DeliveryId) -> Result<()> {
    const SQL: &str =
        "INSERT INTO threads (project, place, topic, root, first, shown, edits, edited_at, open)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9 FROM deliveries AS d
            WHERE d.id = $10 AND d.status = 'pending'
        ON CONFLICT (project, place, topic) DO UPDATE SET
            root = excluded.root, first = excluded.first, shown = excluded.shown, edits = excluded.edits,
            edited_at = excluded.edited_at, open = excluded.open";
    let mut values = columns(thread)?;
    values.push(Value::Integer(delivery.0));
    draft.push(Statement::new(words::store::WRITE_THREAD, SQL, values));
    Ok(())
}

fn columns(thread: &Thread) -> Result<Vec<Value>> {
    Ok(values![
        Word(&thread.project),
        &thread.place,
        Word(&thread.topic),
        &thread.root,
        &thread.first,
        &thread.shown,
        thread.edits,
        thread.edited_at,
        thread.open
    ])
}

fn read(row: &Row<'_>) -> rusqlite::Result<Thread> {
    Ok(Thread {
        project: word(row, "project")?,
        place: row.get("place")?,
        topic: word(row, "topic")?,
        root: row.get("root")?,
        first: row.get("first")?,
        shown: row.get("shown")?,
        edits: row.get("edits")?,
        edited_at: time(row, "edited_at")?,
        open: row.get("open")?,
    })
}
