//! Notices on their way through notifiers. A delivery is the record of an effect in a lane of its notifier, as a message is
//! that of one in a task's.

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{NotifierKey, Posting, Topic};
use pointsman_core::task::Effect;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use rusqlite::{Row, params};

use super::commit::Draft;
use super::statement::{Statement, values};
use super::threads::{self, Thread};
use super::{EffectId, Store};
use crate::Result;
use crate::column::{Json, Word, json, maybe_time, time, word};

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
    /// A delivery by its number.
    pub fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>> {
        const SQL: &str =
            "SELECT d.id, d.notifier, d.not_before, d.status, d.settled_at, d.error, n.at, n.posting
            FROM deliveries AS d JOIN notices AS n ON n.id = d.notice WHERE d.id = $1";
        Ok(self.rows(words::store::READ_DELIVERIES, SQL, [id.0], read)?.into_iter().next())
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

pub(super) const WAITING: &str =
    "SELECT d.id, d.urgent, n.at FROM deliveries AS d JOIN notices AS n ON n.id = d.notice
    WHERE d.project = $1 AND d.notifier = $2 AND d.status = 'pending' ORDER BY d.id";

pub(super) const SENT_AS: &str = "SELECT n.topic FROM deliveries AS d JOIN notices AS n ON n.id = d.notice
    WHERE d.project = $1 AND d.sent_as = $2";

/// Has a notifier tell a notice by one of its lanes, if the notice was written under this number: its key may have been
/// known.
pub(super) fn insert(
    draft: &mut Draft<'_>,
    notice: i64,
    posting: &Posting,
    (to, not_before): (NotifierKey, Timestamp),
    at: Timestamp,
) -> Result<()> {
    const SQL: &str =
        "INSERT INTO deliveries (id, notice, project, notifier, status, urgent, not_before, effect)
        SELECT $1, n.id, $2, $3, 'pending', $4, $5, $6 FROM notices AS n WHERE n.id = $7";
    const EFFECT: &str = "INSERT INTO outbox
        (id, key, project, workflow, effect, status, attempts, not_before, created_at)
        SELECT $1, $2, $3, $4, $5, 'pending', 0, $6, $7 FROM notices AS n WHERE n.id = $8";
    let (id, effect) = (draft.numbers.delivery.take(), draft.numbers.effect.take());
    let (project, urgent) = (Word(&posting.project), posting.notice.urgent);
    let values = values![id, project, Word(to.kind), urgent, not_before, effect, notice];
    draft.push(Statement::new(words::store::WRITE_DELIVERY, SQL, values));
    let (key, lane, order) =
        (format!("delivery/{id}"), WorkflowId::from(to).lane(), Effect::Tell { delivery: id });
    let values = values![effect, key, Word(&posting.project), lane, Json(&order), not_before, at, notice];
    draft.push(Statement::new(words::store::WRITE_OUTBOX, EFFECT, values));
    Ok(())
}

/// What became of a delivery, and with it of its effect. Who hears of it a second time changes nothing.
pub(super) fn settle(
    draft: &mut Draft<'_>,
    id: DeliveryId,
    delivered: &Delivered,
    at: Timestamp,
) -> Result<()> {
    const SQL: &str = "UPDATE deliveries SET status = $1, settled_at = $2, sent_as = $3, error = $4
        WHERE id = $5 AND status = 'pending'";
    const EFFECT: &str = "UPDATE outbox SET status = $1, settled_at = $2
        WHERE id = (SELECT d.effect FROM deliveries AS d WHERE d.id = $3) AND status = 'pending'";
    // First the thread: who hears of it a second time knows less of it than is written.
    if let Delivered::Sent { thread: Some(thread), .. } = delivered {
        threads::put_with(draft, thread, id)?;
    }
    let (status, effect, sent_as, error) = match delivered {
        Delivered::Sent { sent_as, .. } => ("sent", "done", sent_as.as_deref(), None),
        Delivered::Dropped { why } => ("dropped", "superseded", None, Some(why.as_str())),
    };
    draft.push(Statement::new(words::store::SETTLE_DELIVERY, SQL, values![status, at, sent_as, error, id.0]));
    draft.push(Statement::new(words::store::SETTLE_EFFECT, EFFECT, values![effect, at, id.0]));
    Ok(())
}

/// An effect can never be done. If it is a delivery, that is dropped.
pub(super) fn failed(draft: &mut Draft<'_>, effect: EffectId, why: &str, at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE deliveries SET status = 'dropped', settled_at = $1, error = $2
        WHERE effect = $3 AND status = 'pending'";
    draft.push(Statement::new(words::store::SETTLE_DELIVERY, SQL, values![at, why, effect.0]));
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
