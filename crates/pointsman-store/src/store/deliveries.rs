//! Notices on their way through notifiers.

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Row, params};

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use super::threads::{self, Thread};
use crate::Result;
use crate::column::{Word, json, maybe_time, time, word};

/// A delivery's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeliveryId(pub i64);

/// A notice that one notifier is to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    pub notifier: NotifierKind,
    /// When the notice was written.
    pub at: Timestamp,
    pub not_before: Timestamp,
    pub posting: Posting,
    /// `pending`, `sent` or `dropped`.
    pub status: String,
    pub settled_at: Option<Timestamp>,
    pub error: Option<String>,
}

/// The fate of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    Sent {
        /// What the other side calls it.
        sent_as: Option<String>,
        /// The thread that it began, or is in.
        thread: Option<Thread>,
    },
    Dropped {
        why: String,
    },
}

/// The notices that wait for a notifier, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    pub pending: u64,
    /// Since when the oldest does.
    pub oldest: Option<Timestamp>,
    /// How many were dropped, ever.
    pub dropped: u64,
}

impl Store {
    /// The deliveries that one notifier has to make now, oldest first, at most so many.
    pub fn due_deliveries(
        &self,
        project: &ProjectName,
        notifier: NotifierKind,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<Delivery>> {
        self.rows(
            words::store::READ_DELIVERIES,
            DUE,
            params![Word(project), Word(notifier), now.0, limit],
            read,
        )
    }

    /// Everything that waits for one notifier, oldest first: number, when it was written, and whether it is urgent.
    pub fn waiting_deliveries(
        &self,
        project: &ProjectName,
        notifier: NotifierKind,
    ) -> Result<Vec<(DeliveryId, Timestamp, bool)>> {
        let read = |row: &Row<'_>| Ok((DeliveryId(row.get("id")?), time(row, "at")?, row.get("urgent")?));
        self.rows(words::store::READ_DELIVERIES, WAITING, params![Word(project), Word(notifier)], read)
    }

    /// A notice that one notifier has not told yet, as far as is known.
    pub fn pending_delivery(
        &self,
        project: &ProjectName,
        notifier: NotifierKind,
        key: &str,
    ) -> Result<Option<Delivery>> {
        const SQL: &str =
            "SELECT d.id, d.notifier, d.not_before, d.status, d.settled_at, d.error, n.at, n.posting
            FROM notices AS n JOIN deliveries AS d ON d.notice = n.id
            WHERE n.key = $1 AND d.project = $2 AND d.notifier = $3 AND d.status = 'pending'";
        let rows =
            self.rows(words::store::READ_DELIVERIES, SQL, params![key, Word(project), Word(notifier)], read)?;
        Ok(rows.into_iter().next())
    }

    /// The deliveries of a notice, by notifier.
    pub fn deliveries_of(&self, notice: i64) -> Result<Vec<Delivery>> {
        const SQL: &str =
            "SELECT d.id, d.notifier, d.not_before, d.status, d.settled_at, d.error, n.at, n.posting
            FROM deliveries AS d JOIN notices AS n ON n.id = d.notice WHERE d.notice = $1 ORDER BY d.id";
        self.rows(words::store::READ_DELIVERIES, SQL, [notice], read)
    }

    /// Counts what waits for a notifier.
    pub fn waiting(&self, project: &ProjectName, notifier: NotifierKind) -> Result<Waiting> {
        const PENDING: &str = "SELECT count(*) AS n, min(n.at) AS oldest FROM deliveries AS d
            JOIN notices AS n ON n.id = d.notice
            WHERE d.project = $1 AND d.notifier = $2 AND d.status = 'pending'";
        const DROPPED: &str = "SELECT count(*) AS n FROM deliveries
            WHERE project = $1 AND notifier = $2 AND status = 'dropped'";
        let pending = |row: &Row<'_>| Ok((row.get::<_, i64>("n")?, maybe_time(row, "oldest")?));
        let pending = self.rows(
            words::store::READ_DELIVERIES,
            PENDING,
            params![Word(project), Word(notifier)],
            pending,
        )?;
        let dropped = |row: &Row<'_>| row.get::<_, i64>("n");
        let dropped = self.rows(
            words::store::READ_DELIVERIES,
            DROPPED,
            params![Word(project), Word(notifier)],
            dropped,
        )?;
        let (count, oldest) = pending.into_iter().next().unwrap_or_default();
        let dropped = dropped.into_iter().next().unwrap_or_default();
        Ok(Waiting { pending: count.unsigned_abs(), oldest, dropped: dropped.unsigned_abs() })
    }

    /// The topic of a message, by the name that the other side gave it.
    pub fn topic_of_message(&self, project: &ProjectName, sent_as: &str) -> Result<Option<Topic>> {
        let rows =
            self.rows(words::store::READ_DELIVERIES, SENT_AS, params![Word(project), sent_as], |row| {
                word(row, "topic")
            })?;
        Ok(rows.into_iter().next())
    }
}

pub(super) const DUE: &str =
    "SELECT d.id, d.notifier, d.not_before, d.status, d.settled_at, d.error, n.at, n.posting
    FROM deliveries AS d JOIN notices AS n ON n.id = d.notice
    WHERE d.project = $1 AND d.notifier = $2 AND d.status = 'pending' AND d.not_before <= $3
    ORDER BY d.id LIMIT $4";

pub(super) const WAITING: &str =
    "SELECT d.id, d.urgent, n.at FROM deliveries AS d JOIN notices AS n ON n.id = d.notice
    WHERE d.project = $1 AND d.notifier = $2 AND d.status = 'pending' ORDER BY d.id";

pub(super) const SENT_AS: &str = "SELECT n.topic FROM deliveries AS d JOIN notices AS n ON n.id = d.notice
    WHERE d.project = $1 AND d.sent_as = $2";

/// Has a notifier tell a notice, if the notice was written under this number: its key may have been known.
pub(super) fn insert(
    draft: &mut Draft<'_>,
    notice: i64,
    posting: &Posting,
    notifier: NotifierKind,
    not_before: Timestamp,
) -> Result<()> {
    const SQL: &str = "INSERT INTO deliveries (id, notice, project, notifier, status, urgent, not_before)
        SELECT $1, n.id, $2, $3, 'pending', $4, $5 FROM notices AS n WHERE n.id = $6";
    let id = draft.numbers.delivery.take();
    let values =
        values![id, Word(&posting.project), Word(notifier), posting.notice.urgent, not_before, notice];
    draft.push(Statement::new(words::store::WRITE_DELIVERY, SQL, values));
    Ok(())
}

/// What became of a delivery. Who hears of it a second time changes nothing.
pub(super) fn settle(
    draft: &mut Draft<'_>,
    id: DeliveryId,
    delivered: &Delivered,
    at: Timestamp,
) -> Result<()> {
    const SQL: &str = "UPDATE deliveries SET status = $1, settled_at = $2, sent_as = $3, error = $4
        WHERE id = $5 AND status = 'pending'";
    // First the thread: who hears of it a second time knows less of it than is written.
    if let Delivered::Sent { thread: Some(thread), .. } = delivered {
        threads::put_with(draft, thread, id)?;
    }
    let (status, sent_as, error) = match delivered {
        Delivered::Sent { sent_as, .. } => ("sent", sent_as.as_deref(), None),
        Delivered::Dropped { why } => ("dropped", None, Some(why.as_str())),
    };
    draft.push(Statement::new(words::store::SETTLE_DELIVERY, SQL, values![status, at, sent_as, error, id.0]));
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Delivery> {
    Ok(Delivery {
        id: DeliveryId(row.get("id")?),
        notifier: word(row, "notifier")?,
        at: time(row, "at")?,
        not_before: time(row, "not_before")?,
        posting: json(row, "posting")?,
        status: row.get("status")?,
        settled_at: maybe_time(row, "settled_at")?,
        error: row.get("error")?,
    })
}
