//! What people said to agents that were not running: written with the event that tells it, taken once.

use pointsman_core::chat::Reply;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::Topic;
use pointsman_core::time::Timestamp;
use rusqlite::{Connection, Row, params};

use super::Store;
use crate::Result;
use crate::column::{Json, Word, json, time, word};
use crate::error::failed_to;

/// Words to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReply {
    pub project: ProjectName,
    pub topic: Topic,
    pub by: String,
    pub words: String,
    pub reply: Reply,
}

/// Words that are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyRow {
    pub id: i64,
    /// When they were said.
    pub at: Timestamp,
    pub said: NewReply,
}

impl Store {
    /// What waits for an agent, oldest first.
    pub fn replies(&self, project: &ProjectName, topic: &Topic) -> Result<Vec<ReplyRow>> {
        self.rows("read replies", OPEN, params![Word(project), Word(topic)], read)
    }

    /// An agent has read it; false if it was taken before.
    pub fn take_reply(&mut self, id: i64, at: Timestamp) -> Result<bool> {
        const SQL: &str = "UPDATE replies SET taken_at = $1 WHERE id = $2 AND taken_at IS NULL";
        self.execute("take a reply", SQL, params![at.0, id]).map(|taken| taken > 0)
    }

    /// Whoever took what was said at this time did not come to read it: it waits again.
    pub fn give_back_replies(
        &mut self,
        project: &ProjectName,
        topic: &Topic,
        taken_at: Timestamp,
    ) -> Result<()> {
        const SQL: &str =
            "UPDATE replies SET taken_at = NULL WHERE project = $1 AND topic = $2 AND taken_at = $3";
        self.execute("give replies back", SQL, params![Word(project), Word(topic), taken_at.0]).map(drop)
    }
}

pub(super) const OPEN: &str = "SELECT id, project, topic, said_by, words, reply, at FROM replies
    WHERE project = $1 AND topic = $2 AND taken_at IS NULL ORDER BY id";

pub(super) fn insert(connection: &Connection, said: &NewReply, at: Timestamp) -> Result<()> {
    const SQL: &str = "INSERT INTO replies (project, topic, said_by, words, reply, at)
        VALUES ($1, $2, $3, $4, $5, $6)";
    let run = || {
        connection.prepare_cached(SQL)?.execute(params![
            Word(&said.project),
            Word(&said.topic),
            said.by,
            said.words,
            Json(&said.reply),
            at.0
        ])
    };
    run().map(drop).map_err(failed_to("write a reply"))
}

fn read(row: &Row<'_>) -> rusqlite::Result<ReplyRow> {
    let said = NewReply {
        project: word(row, "project")?,
        topic: word(row, "topic")?,
        by: row.get("said_by")?,
        words: row.get("words")?,
        reply: json(row, "reply")?,
    };
    Ok(ReplyRow { id: row.get("id")?, at: time(row, "at")?, said })
}
