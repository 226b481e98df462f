//! Messages to agents: what became of each `Deliver` effect.

use std::path::{Path, PathBuf};

use pointsman_core::task::Headline;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::commit::Draft;
use super::statement::{Statement, values};
use super::{EffectId, Store};
use crate::Result;
use crate::column::{Word, maybe_time, maybe_word, word};

/// The state of a message on its way to an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    Queued,
    /// Given to the session; not yet acknowledged.
    Sent,
    Acknowledged,
    /// Sent as often as allowed, never acknowledged.
    Unacknowledged,
    /// Its session went before it was acknowledged.
    Superseded,
}

/// A message to an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number: `m-<id>` on the agent's line.
    pub id: EffectId,
    pub workflow: WorkflowId,
    /// For which session of it.
    pub generation: u32,
    /// Its first words.
    pub headline: Headline,
    /// The file with the rest.
    pub path: Option<PathBuf>,
    pub status: MessageStatus,
    /// How often it was sent; 0 if it is held back.
    pub tries: u32,
    /// When it was last sent, or held back.
    pub sent_at: Option<Timestamp>,
    /// When it was acknowledged.
    pub acknowledged_at: Option<Timestamp>,
}

pub(super) const WAITING: &str =
    "SELECT * FROM messages WHERE status = 'sent' AND sent_at <= $1 ORDER BY sent_at, id";

impl Store {
    /// Reads one message.
    pub fn message(&self, id: EffectId) -> Result<Option<MessageRow>> {
        let rows =
            self.rows(words::store::READ_MESSAGES, "SELECT * FROM messages WHERE id = $1", [id.0], read)?;
        Ok(rows.into_iter().next())
    }

    /// All messages of a workflow, oldest first.
    pub fn messages(&self, workflow: &WorkflowId) -> Result<Vec<MessageRow>> {
        const SQL: &str = "SELECT * FROM messages WHERE project = $1 AND workflow = $2 ORDER BY id";
        let of = params![Word(workflow.project()), workflow.lane()];
        self.rows(words::store::READ_MESSAGES, SQL, of, read)
    }

    /// Messages of all workflows that were last sent at `before` or earlier and still wait for their
    /// acknowledgement, oldest first.
    pub fn unacknowledged(&self, before: Timestamp) -> Result<Vec<MessageRow>> {
        self.rows(words::store::READ_MESSAGES, WAITING, [before.0], read)
    }
}

/// The message is with the session. An acknowledgement may have come before this is written; it stays.
pub(super) fn sent(draft: &mut Draft<'_>, id: EffectId, path: &Path, at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE messages SET tries = tries + 1, path = $1, sent_at = $2,
        status = CASE WHEN status IN ('queued', 'unacknowledged') THEN 'sent' ELSE status END
        WHERE id = $3";
    draft.push(Statement::new(words::store::RECORD_SENT_MESSAGE, SQL, values![Word(path), at, id.0]));
    Ok(())
}

/// Nothing can be given to the session now: the message waits to be given for the first time.
pub(super) fn held(draft: &mut Draft<'_>, id: EffectId, path: &Path, at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE messages SET path = $1, sent_at = $2, status = 'sent'
        WHERE id = $3 AND status = 'queued'";
    draft.push(Statement::new(words::store::HOLD_MESSAGE_BACK, SQL, values![Word(path), at, id.0]));
    Ok(())
}

/// The agent has it. A superseded message stays that.
pub(super) fn acknowledged(draft: &mut Draft<'_>, id: EffectId, at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE messages SET status = 'acknowledged', acknowledged_at = $1
        WHERE id = $2 AND status IN ('queued', 'sent', 'unacknowledged')";
    draft.push(Statement::new(words::store::ACKNOWLEDGE_MESSAGE, SQL, values![at, id.0]));
    Ok(())
}

/// It was sent as often as allowed.
pub(super) fn unacknowledged(draft: &mut Draft<'_>, id: EffectId) -> Result<()> {
    const SQL: &str = "UPDATE messages SET status = 'unacknowledged' WHERE id = $1 AND status = 'sent'";
    draft.push(Statement::new(words::store::GIVE_UP_MESSAGE, SQL, values![id.0]));
    Ok(())
}

pub(super) fn insert(
    draft: &mut Draft<'_>,
    id: EffectId,
    workflow: &WorkflowId,
    generation: u32,
    headline: Headline,
) -> Result<()> {
    const SQL: &str = "INSERT INTO messages (id, project, workflow, generation, headline, status, tries)
        VALUES ($1, $2, $3, $4, $5, 'queued', 0)";
    let values = values![id.0, Word(workflow.project()), workflow.lane(), generation, Word(headline)];
    draft.push(Statement::new(words::store::WRITE_MESSAGE, SQL, values));
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        id: EffectId(row.get("id")?),
        workflow: super::outbox::lane(row)?,
        generation: row.get("generation")?,
        headline: word(row, "headline")?,
        path: maybe_word(row, "path")?,
        status: word(row, "status")?,
        tries: row.get("tries")?,
        sent_at: maybe_time(row, "sent_at")?,
        acknowledged_at: maybe_time(row, "acknowledged_at")?,
    })
}
