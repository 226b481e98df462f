//! Notices to people, one for each key.

use pointsman_core::config::NotifierKind;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Lane, NotifierKey, Posting, Topic};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::params;

use super::commit::Draft;
use super::statement::{Statement, values};
use super::{Store, deliveries};
use crate::Result;
use crate::column::{Json, Word, json, time};

/// A notice to write, and who tells it when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewNotice {
    pub posting: Posting,
    /// The lane by which everybody tells it.
    pub lane: Lane,
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
    /// Whether a notice of this key is written.
    pub fn has_notice(&self, key: &str) -> Result<bool> {
        const SQL: &str = "SELECT id FROM notices WHERE key = $1";
        Ok(!self.rows(words::store::READ_NOTICES, SQL, [key], |_| Ok(()))?.is_empty())
    }

    /// The last notice with these words, and its time.
    pub fn told_last(&self, project: &ProjectName, words: &str) -> Result<Option<(i64, Timestamp)>> {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get("id")?, time(row, "at")?));
        let rows = self.rows(words::store::READ_NOTICES, TOLD_LAST, params![Word(project), words], read)?;
        Ok(rows.into_iter().next())
    }

    /// The newest notices, newest first.
    pub fn notices(&self, project: Option<&ProjectName>, limit: u32) -> Result<Vec<NoticeRow>> {
        const SQL: &str = "SELECT id, at, times, posting FROM notices
            WHERE CAST($1 AS TEXT) IS NULL OR project = $1 ORDER BY id DESC LIMIT $2";
        self.rows(words::store::READ_NOTICES, SQL, params![project.map(Word), limit], read)
    }

    /// The time at which this question first reached people through a notifier; none if it has not.
    pub fn asked_at(
        &self,
        project: &ProjectName,
        topic: &Topic,
        question: &str,
        notifier: NotifierKind,
    ) -> Result<Option<Timestamp>> {
        let read = |row: &rusqlite::Row<'_>| Ok((json::<Posting>(row, "posting")?, time(row, "settled_at")?));
        let rows = self.rows(
            words::store::READ_NOTICES,
            ASKED,
            params![Word(project), Word(topic), Word(notifier)],
            read,
        )?;
        let asked = rows.into_iter().find(|(posting, _)| posting.question.as_deref() == Some(question));
        Ok(asked.map(|(_, at)| at))
    }
}

pub(super) const TOLD_LAST: &str =
    "SELECT id, at FROM notices WHERE project = $1 AND words = $2 ORDER BY id DESC LIMIT 1";

pub(super) const ASKED: &str = "SELECT n.posting, d.settled_at FROM notices AS n
    JOIN deliveries AS d ON d.notice = n.id
    WHERE n.project = $1 AND n.topic = $2 AND d.notifier = $3 AND d.status = 'sent' ORDER BY n.id";

/// Writes a notice and has it told. If its key is known it was told, or will be, and nothing changes.
pub(super) fn insert(draft: &mut Draft<'_>, notice: &NewNotice, at: Timestamp) -> Result<()> {
    const SQL: &str = "INSERT INTO notices (id, key, project, topic, words, times, at, posting)
        VALUES ($1, $2, $3, $4, $5, 1, $6, $7) ON CONFLICT (key) DO NOTHING";
    let (id, posting) = (draft.numbers.notice.take(), &notice.posting);
    let (project, topic) = (Word(&posting.project), Word(&posting.topic));
    let values = values![id, &posting.key, project, topic, posting.words(), at, Json(posting)];
    draft.push(Statement::new(words::store::WRITE_NOTICE, SQL, values));
    for (notifier, not_before) in &notice.to {
        let to = NotifierKey { project: posting.project.clone(), kind: *notifier, lane: notice.lane };
        deliveries::insert(draft, id, posting, (to, *not_before), at)?;
    }
    Ok(())
}

/// The same was said once more.
pub(super) fn count(draft: &mut Draft<'_>, id: i64) -> Result<()> {
    const SQL: &str = "UPDATE notices SET times = times + 1 WHERE id = $1";
    draft.push(Statement::new(words::store::COUNT_NOTICE, SQL, values![id]));
    Ok(())
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<NoticeRow> {
    Ok(NoticeRow {
        id: row.get("id")?,
        at: time(row, "at")?,
        times: row.get("times")?,
        posting: json(row, "posting")?,
    })
}
