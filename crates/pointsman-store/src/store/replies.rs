//! Replies of people to agents that were not running: written with the event that tells it, taken once.

use pointsman_core::chat::Reply;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::Topic;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Row, params};

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Word, json, time, word};

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
    pub at: Timestamp,
    pub said: NewReply,
}

impl Store {
    /// The replies that wait for an agent, oldest first.
    pub fn replies(&self, project: &ProjectName, topic: &Topic) -> Result<Vec<ReplyRow>> {
        self.rows(words::store::READ_REPLIES, OPEN, params![Word(project), Word(topic)], read)
    }
}

pub(super) const OPEN: &str = "SELECT id, project, topic, said_by, words, reply, at FROM replies
    WHERE project = $1 AND topic = $2 AND taken_at IS NULL ORDER BY id";

pub(super) fn insert(draft: &mut Draft<'_>, said: &NewReply, at: Timestamp) -> Result<()> {
    const SQL: &str = "INSERT INTO replies (id, project, topic, said_by, words, reply, at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    let id = draft.numbers.reply.take();
    let (project, topic) = (Word(&said.project), Word(&said.topic));
    let values = values![id, project, topic, &said.by, &said.words, Json(&said.reply), at];
    draft.push(Statement::new(words::store::WRITE_REPLY, SQL, values));
    Ok(())
}

/// An agent has read it. The first one counts.
pub(super) fn take(draft: &mut Draft<'_>, id: i64, at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE replies SET taken_at = $1 WHERE id = $2 AND taken_at IS NULL";
    draft.push(Statement::new(words::store::TAKE_REPLY, SQL, values![at, id]));
    Ok(())
}

/// Whoever took what was said at this time did not come to read it: it waits again.
pub(super) fn give_back(
    draft: &mut Draft<'_>,
    project: &ProjectName,
    topic: &Topic,
    taken_at: Timestamp,
) -> Result<()> {
    const SQL: &str =
        "UPDATE replies SET taken_at = NULL WHERE project = $1 AND topic = $2 AND taken_at = $3";
    draft.push(Statement::new(
        words::store::GIVE_REPLIES_BACK,
        SQL,
        values![Word(project), Word(topic), taken_at],
    ));
    Ok(())
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
