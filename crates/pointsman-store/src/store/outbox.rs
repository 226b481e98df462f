//! Orders to the world, until they are done.
//!
//! An effect waits as `pending`; there is no "running" on disk, because after a kill nobody could
//! tell "running" from "done": every pending effect is asked whether it already happened.
//! The effects of one workflow are a lane: the second waits until the first is settled. A notice to people is in a lane of
//! the notifier that tells it.

use std::fmt;

use pointsman_core::ids::ProjectName;
use pointsman_core::snapshot::{Kind, Unreadable};
use pointsman_core::task::Effect;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::commit::Draft;
use super::statement::{Statement, values};
use super::{Store, deliveries};
use crate::Result;
use crate::column::{Json, Word, json, time, word};

/// An effect's number in the outbox; for a message to an agent, the message's number too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EffectId(pub i64);

impl fmt::Display for EffectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An effect that is to be performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    pub id: EffectId,
    /// Names it to the outside, the same at every attempt: `<event>.<place>`.
    pub key: String,
    /// Whose lane it is in.
    pub workflow: WorkflowId,
    /// What is to be done.
    pub effect: Effect,
    /// How often it was tried and postponed.
    pub attempts: u32,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// Not before this time; zero is at once, whatever the clock says.
    pub not_before: Timestamp,
}

/// The heads of all lanes that are due. The inner query reads the index of pending rows only:
/// what is settled piles up for ever and must cost nothing.
pub(super) const DUE: &str =
    "SELECT id, key, project, workflow, effect, attempts, error, not_before FROM outbox
    WHERE id IN (SELECT min(id) FROM outbox WHERE status = 'pending' GROUP BY project, workflow)
    AND not_before <= $1 ORDER BY id";

pub(super) const NEXT: &str = "SELECT project, workflow, not_before FROM outbox
    WHERE id IN (SELECT min(id) FROM outbox WHERE status = 'pending' GROUP BY project, workflow)";

impl Store {
    /// The first pending effect of each workflow, if its time has come; oldest first. Lanes that somebody works on are
    /// passed over, and so should be those whose effect cannot be read: [`Store::unreadable`] names them.
    pub fn due_effects(&self, now: Timestamp, busy: impl Fn(&WorkflowId) -> bool) -> Result<Vec<Outgoing>> {
        // The daemon asks this after everything that happens: only what it will use is read to the end.
        let rows = self.rows(words::store::READ_OUTBOX, DUE, [now.0], |row| {
            if busy(&lane(row)?) { Ok(None) } else { read(row).map(Some) }
        })?;
        Ok(rows.into_iter().flatten().collect())
    }

    pub(super) fn unreadable_effects(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str =
            "SELECT project, workflow, 1 AS version, effect FROM outbox WHERE status = 'pending' ORDER BY id";
        let check = |text: &str| serde_json::from_str::<Effect>(text).map(drop).map_err(|e| e.to_string());
        self.unreadable_rows(Kind::Effect, SQL, |_, _, text| check(text))
    }

    /// The time at which the next effect is due: the earliest among the heads of all lanes, but those that somebody works on.
    pub fn next_effect_time(&self, busy: impl Fn(&WorkflowId) -> bool) -> Result<Option<Timestamp>> {
        let heads =
            self.rows(words::store::READ_OUTBOX, NEXT, [], |row| Ok((lane(row)?, time(row, "not_before")?)))?;
        Ok(heads.into_iter().filter(|(workflow, _)| !busy(workflow)).map(|(_, at)| at).min())
    }

    /// The effect under this number, whatever became of it.
    pub fn effect(&self, id: EffectId) -> Result<Option<Effect>> {
        const SQL: &str = "SELECT effect FROM outbox WHERE id = $1";
        let rows = self.rows(words::store::READ_OUTBOX, SQL, [id.0], |row| json(row, "effect"))?;
        Ok(rows.into_iter().next())
    }

    /// All pending effects of a workflow, in the order of its lane.
    pub fn pending_effects(&self, workflow: &WorkflowId) -> Result<Vec<Outgoing>> {
        const SQL: &str = "SELECT id, key, project, workflow, effect, attempts, error, not_before FROM outbox
            WHERE status = 'pending' AND project = $1 AND workflow = $2 ORDER BY id";
        self.rows(words::store::READ_OUTBOX, SQL, params![Word(workflow.project()), workflow.lane()], read)
    }
}

/// Orders an effect under a number that the owner of the outbox gives it.
pub(super) fn insert(
    draft: &mut Draft<'_>,
    workflow: &WorkflowId,
    key: &str,
    effect: &Effect,
    at: Timestamp,
) -> Result<EffectId> {
    const SQL: &str = "INSERT INTO outbox
        (id, key, project, workflow, effect, status, attempts, not_before, created_at)
        VALUES ($1, $2, $3, $4, $5, 'pending', 0, 0, $6)";
    let id = draft.numbers.effect.take();
    let values = values![id, key, Word(workflow.project()), workflow.lane(), Json(effect), at];
    draft.push(Statement::new(words::store::WRITE_OUTBOX, SQL, values));
    Ok(EffectId(id))
}

/// Settles a pending effect. One that was settled before, or superseded, stays what it is.
pub(super) fn settle(
    draft: &mut Draft<'_>,
    id: EffectId,
    failure: Option<&str>,
    at: Timestamp,
) -> Result<()> {
    const SQL: &str = "UPDATE outbox SET status = $1, error = $2, settled_at = $3
        WHERE id = $4 AND status = 'pending'";
    let status = if failure.is_some() { "failed" } else { "done" };
    draft.push(Statement::new(words::store::SETTLE_EFFECT, SQL, values![status, failure, at, id.0]));
    match failure {
        Some(why) => deliveries::failed(draft, id, why, at),
        None => Ok(()),
    }
}

/// An attempt failed and is to be repeated later.
pub(super) fn postpone(
    draft: &mut Draft<'_>,
    id: EffectId,
    error: &str,
    not_before: Timestamp,
) -> Result<()> {
    const SQL: &str = "UPDATE outbox SET attempts = attempts + 1, error = $1, not_before = $2
        WHERE id = $3 AND status = 'pending'";
    draft.push(Statement::new(words::store::POSTPONE_EFFECT, SQL, values![error, not_before, id.0]));
    Ok(())
}

/// What this workflow's effects waited for is over: those that were to wait until then are due.
pub(super) fn retry(draft: &mut Draft<'_>, workflow: &WorkflowId, until: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE outbox SET not_before = 0
        WHERE status = 'pending' AND project = $1 AND workflow = $2 AND not_before <= $3";
    let values = values![Word(workflow.project()), workflow.lane(), until];
    draft.push(Statement::new(words::store::POSTPONE_EFFECT, SQL, values));
    Ok(())
}

/// A pending effect is not wanted any more; its message, if it is one, neither.
pub(super) fn supersede(draft: &mut Draft<'_>, id: EffectId, at: Timestamp) -> Result<()> {
    const MESSAGE: &str = "UPDATE messages SET status = 'superseded'
        WHERE id = $1 AND status IN ('queued', 'sent')
        AND EXISTS (SELECT 1 FROM outbox AS o WHERE o.id = messages.id AND o.status = 'pending')";
    const EFFECT: &str = "UPDATE outbox SET status = 'superseded', settled_at = $1
        WHERE id = $2 AND status = 'pending'";
    draft.push(Statement::new(words::store::SUPERSEDE_MESSAGE, MESSAGE, values![id.0]));
    draft.push(Statement::new(words::store::SUPERSEDE_EFFECT, EFFECT, values![at, id.0]));
    Ok(())
}

/// A session of this generation begins: nobody is left to read messages to older ones.
pub(super) fn supersede_deliveries(
    draft: &mut Draft<'_>,
    workflow: &WorkflowId,
    generation: u32,
    at: Timestamp,
) -> Result<()> {
    const EFFECTS: &str = "UPDATE outbox SET status = 'superseded', settled_at = $1
        WHERE status = 'pending' AND project = $2 AND workflow = $3
        AND id IN (SELECT id FROM messages WHERE project = $2 AND workflow = $3 AND generation < $4)";
    const MESSAGES: &str = "UPDATE messages SET status = 'superseded'
        WHERE project = $1 AND workflow = $2 AND generation < $3 AND status IN ('queued', 'sent')";
    let effects = values![at, Word(workflow.project()), workflow.lane(), generation];
    let messages = values![Word(workflow.project()), workflow.lane(), generation];
    draft.push(Statement::new(words::store::SUPERSEDE_EFFECTS, EFFECTS, effects));
    draft.push(Statement::new(words::store::SUPERSEDE_MESSAGES, MESSAGES, messages));
    Ok(())
}

/// The workflow that a row belongs to.
pub(super) fn lane(row: &Row<'_>) -> rusqlite::Result<WorkflowId> {
    let project: ProjectName = word(row, "project")?;
    let column: String = row.get("workflow")?;
    WorkflowId::parse_lane(&project, &column).ok_or_else(|| {
        let why = words::store::not_a_workflow(&column);
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, why.into())
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<Outgoing> {
    Ok(Outgoing {
        id: EffectId(row.get("id")?),
        key: row.get("key")?,
        workflow: lane(row)?,
        effect: json(row, "effect")?,
        attempts: row.get("attempts")?,
        error: row.get("error")?,
        not_before: time(row, "not_before")?,
    })
}
