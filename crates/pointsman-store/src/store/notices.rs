//! What people are told, once for each key.

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::{Store, deliveries};
use crate::Result;
use crate::column::{Json, Word, json, time};
use crate::error::failed_to;

/// A notice to write, and who tells it when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotice {
    pub posting: Posting,
    /// By whom, not before when.
    pub to: Vec<(NotifierKind, Timestamp)>,
}

/// A notice as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRow {
    pub id: i64,
    pub at: Timestamp,
    /// How often it was said.
    pub times: u32,
    pub posting: Posting,
}

impl Store {
    /// Writes a notice; false if its key is known: then it was told, or will be.
    pub fn add_notice(&mut self, notice: &NewNotice, at: Timestamp) -> Result<bool> {
        let transaction = self.begin("write a notice")?;
        let new = insert(&transaction, notice, at)?;
        transaction.commit().map_err(failed_to("write a notice"))?;
        Ok(new)
    }

    /// Whether a notice of this key is written.
    pub fn has_notice(&self, key: &str) -> Result<bool> {
        const SQL: &str = "SELECT id FROM notices WHERE key = $1";
        Ok(!self.rows("read notices", SQL, [key], |_| Ok(()))?.is_empty())
    }

    /// When these words were told last.
    pub fn told_last(&self, project: &ProjectName, words: &str) -> Result<Option<(i64, Timestamp)>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get("id")?, time(row, "at")?));
        let rows = self.rows("read notices", TOLD_LAST, params![Word(project), words], read)?;
        Ok(rows.into_iter().next())
    }

    /// The same was said once more.
    pub fn count_notice(&mut self, id: i64) -> Result<()> {
        const SQL: &str = "UPDATE notices SET times = times + 1 WHERE id = $1";
        self.execute("count a notice", SQL, [id]).map(drop)
    }

    /// The newest notices, newest first.
    pub fn notices(&self, project: Option<&ProjectName>, limit: u32) -> Result<Vec<NoticeRow>> {
        const SQL: &str = "SELECT id, at, times, posting FROM notices
            WHERE $1 IS NULL OR project = $1 ORDER BY id DESC LIMIT $2";
        self.rows("read notices", SQL, params![project.map(Word), limit], read)
    }

    /// When this question reached people through a notifier first; nothing if it has not.
    pub fn asked_at(
        &self,
        project: &ProjectName,
        topic: &Topic,
        question: &str,
        notifier: NotifierKind,
    ) -> Result<Option<Timestamp>> {
        let read = |row: &rusqlite::Row<'_>| Ok((json::<Posting>(row, "posting")?, time(row, "settled_at")?));
        let rows =
            self.rows("read notices", ASKED, params![Word(project), Word(topic), Word(notifier)], read)?;
        let asked = rows.into_iter().find(|(posting, _)| posting.question.as_deref() == Some(question));
        Ok(asked.map(|(_, at)| at))
    }
}

pub(super) const TOLD_LAST: &str =
    "SELECT id, at FROM notices WHERE project = $1 AND words = $2 ORDER BY id DESC LIMIT 1";

pub(super) const ASKED: &str = "SELECT n.posting, d.settled_at FROM notices AS n
    JOIN deliveries AS d ON d.notice = n.id
    WHERE n.project = $1 AND n.topic = $2 AND d.notifier = $3 AND d.status = 'sent' ORDER BY n.id";

pub(super) fn insert(connection: &Connection, notice: &NewNotice, at: Timestamp) -> Result<bool> {
    const SQL: &str = "INSERT INTO notices (key, project, topic, words, times, at, posting)
        VALUES ($1, $2, $3, $4, 1, $5, $6) ON CONFLICT (key) DO NOTHING RETURNING id";
    let posting = &notice.posting;
    let run = || {
        connection
            .prepare_cached(SQL)?
            .query_map(
                params![
                    posting.key,
                    Word(&posting.project),
                    Word(&posting.topic),
                    posting.words(),
                    at.0,
                    Json(posting)
                ],
                |row| row.get(0),
            )?
            .collect::<rusqlite::Result<Vec<i64>>>()
    };
    let Some(id) = run().map_err(failed_to("write a notice"))?.pop() else { return Ok(false) };
    for (notifier, not_before) in &notice.to {
        deliveries::insert(connection, id, posting, *notifier, *not_before)?;
    }
    Ok(true)
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<NoticeRow> {
    Ok(NoticeRow {
        id: row.get("id")?,
        at: time(row, "at")?,
        times: row.get("times")?,
        posting: json(row, "posting")?,
    })
}
