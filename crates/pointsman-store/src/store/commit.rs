//! One transaction, then the world.

use std::path::PathBuf;

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::run::Run;
use pointsman_core::session::work::WorkState;
use pointsman_core::signal::Signal;
use pointsman_core::task::{Effect, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::vault;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use super::{
    EffectId, NewNotice, NewReply, SessionRow, Store, cursors, messages, notices, outbox, replies, runs,
    sessions, tasks, vault as vault_table, work_states,
};
use crate::Result;
use crate::column::{Json, Whole, Word};
use crate::error::{Error, failed_to};

/// Something that happened, and all that follows from it. It is remembered as a whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub at: Timestamp,
    /// What, as a short name (`phase_claimed`).
    pub kind: String,
    /// The project; taken from `task` if empty.
    pub project: Option<ProjectName>,
    /// The issue; taken from `task` if empty.
    pub issue: Option<u64>,
    /// The session it came from.
    pub session: Option<String>,
    /// The details, for the log.
    pub data: Value,
    /// Names the input it came from. A change with a name that was seen before is skipped.
    pub dedup: Option<String>,
    /// The task as it is now.
    pub task: Option<Task>,
    /// Orders to the world, performed one after another.
    pub effects: Vec<Effect>,
    /// The effect whose result this is. It is settled even if the change is a duplicate.
    pub settles: Option<EffectId>,
    /// The settled effect could not be done: why. It is kept as failed instead of done.
    pub failure: Option<String>,
    /// The settled effect is a message that is with its session now: the file with its details.
    pub sent: Option<PathBuf>,
    /// A named value of the project to set with it.
    pub cursor: Option<(String, String)>,
    /// Sessions to write with it.
    pub sessions: Vec<SessionRow>,
    /// The work state of whoever it is about, as it is now.
    pub work_state: Option<WorkState>,
    /// The vault's action that it is about, as it is now.
    pub vault: Option<vault::Entry>,
    /// The run of a formula that it is about, as it is now.
    pub run: Option<Run>,
    /// What people are to be told with it.
    pub notices: Vec<NewNotice>,
    /// A person's words that it is about, kept for an agent.
    pub reply: Option<NewReply>,
    /// What others wait for, with its details. Each becomes an event of its own, named after the
    /// signal, right after the change's.
    pub signals: Vec<(Signal, Value)>,
}

impl Change {
    /// An event with nothing following from it; set the other fields as needed.
    pub fn new(at: Timestamp, kind: impl Into<String>) -> Self {
        Self {
            at,
            kind: kind.into(),
            project: None,
            issue: None,
            session: None,
            data: Value::Null,
            dedup: None,
            task: None,
            effects: Vec::new(),
            settles: None,
            failure: None,
            sent: None,
            cursor: None,
            sessions: Vec::new(),
            work_state: None,
            vault: None,
            run: None,
            notices: Vec::new(),
            reply: None,
            signals: Vec::new(),
        }
    }
}

/// What became of a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    Done {
        /// The number of its event; its signals have the next ones.
        seq: i64,
        /// Its effects in the outbox, in their order.
        effect_ids: Vec<EffectId>,
    },
    /// Its input was seen before.
    Duplicate,
}

impl Store {
    /// Whether a change of this name ([`Change::dedup`]) is on disk.
    pub fn knows_input(&self, name: &str) -> Result<bool> {
        is_known(&self.connection, name)
    }

    /// Writes many changes in one transaction, with one wait for the disk. After an error none of
    /// them is written; after success all are, whatever happens to us.
    pub fn commit(&mut self, changes: &[Change]) -> Result<Vec<Committed>> {
        let transaction = self.begin("begin a commit")?;
        let committed = changes.iter().map(|change| write(&transaction, change)).collect::<Result<_>>()?;
        transaction.commit().map_err(failed_to("commit"))?;
        Ok(committed)
    }
}

impl Store {
    /// Whether an input of this name was seen before: a change that carries it would be skipped.
    pub fn is_known(&self, name: &str) -> Result<bool> {
        is_known(&self.connection, name)
    }
}

fn write(connection: &Connection, change: &Change) -> Result<Committed> {
    if let Some(id) = change.settles {
        outbox::settle(connection, id, change.failure.as_deref(), change.at)?;
        if let Some(path) = &change.sent {
            messages::sent(connection, id, path, change.at)?;
        }
    }
    if let Some(name) = &change.dedup
        && is_known(connection, name)?
    {
        return Ok(Committed::Duplicate);
    }
    let (project, issue) = subject(change)?;
    let append = |kind: &str, data: &Value| append_event(connection, change, project, issue, kind, data);
    let seq = append(&change.kind, &change.data)?;
    for (signal, data) in &change.signals {
        append(signal.name(), data)?;
    }
    if let Some(name) = &change.dedup {
        remember_input(connection, name, seq, change.at)?;
    }
    if let Some(task) = &change.task {
        tasks::upsert(connection, task)?;
    }
    if let Some((name, value)) = &change.cursor {
        cursors::set(connection, project, name, value)?;
    }
    for session in &change.sessions {
        sessions::upsert(connection, session)?;
    }
    if let Some(state) = &change.work_state {
        let Some(project) = project else {
            return Err(Error::Invalid { what: "a change with a work state that names no project" });
        };
        work_states::put(connection, state, project, issue, change.session.as_deref(), change.at)?;
    }
    if let Some(entry) = &change.vault {
        vault_table::put(connection, entry)?;
    }
    if let Some(run) = &change.run {
        runs::put(connection, run)?;
    }
    for notice in &change.notices {
        notices::insert(connection, notice, change.at)?;
    }
    if let Some(reply) = &change.reply {
        replies::insert(connection, reply, change.at)?;
    }
    let effect_ids = match (project, issue) {
        (Some(project), Some(issue)) => {
            let key = TaskKey { project: project.clone(), issue };
            write_effects(connection, &key, seq, change)?
        }
        _ if change.effects.is_empty() => Vec::new(),
        _ => return Err(Error::Invalid { what: "a change with effects that names no task" }),
    };
    Ok(Committed::Done { seq, effect_ids })
}

/// What the change is about. Its own words and its task must not disagree.
fn subject(change: &Change) -> Result<(Option<&ProjectName>, Option<u64>)> {
    let Some(task) = &change.task else { return Ok((change.project.as_ref(), change.issue)) };
    let same = change.project.as_ref().is_none_or(|project| *project == task.key.project)
        && change.issue.is_none_or(|issue| issue == task.key.issue);
    if same {
        Ok((Some(&task.key.project), Some(task.key.issue)))
    } else {
        Err(Error::Invalid { what: "a change about one task that carries another" })
    }
}

fn write_effects(connection: &Connection, key: &TaskKey, seq: i64, change: &Change) -> Result<Vec<EffectId>> {
    let mut ids = Vec::with_capacity(change.effects.len());
    for (place, effect) in change.effects.iter().enumerate() {
        if let Effect::StartSession { generation, .. } = effect {
            outbox::supersede_deliveries(connection, key, *generation, change.at)?;
        }
        let id = outbox::insert(connection, key, &format!("{seq}.{place}"), effect, change.at)?;
        if let Effect::Deliver { generation, headline, .. } = effect {
            messages::insert(connection, id, key, *generation, *headline)?;
        }
        ids.push(id);
    }
    Ok(ids)
}

fn append_event(
    connection: &Connection,
    change: &Change,
    project: Option<&ProjectName>,
    issue: Option<u64>,
    kind: &str,
    data: &Value,
) -> Result<i64> {
    const SQL: &str = "INSERT INTO events (at, kind, project, issue, session, data)
        VALUES ($1, $2, $3, $4, $5, $6) RETURNING seq";
    let run = || {
        connection.prepare_cached(SQL)?.query_row(
            params![change.at.0, kind, project.map(Word), issue.map(Whole), change.session, Json(data)],
            |row| row.get(0),
        )
    };
    run().map_err(failed_to("append an event"))
}

fn is_known(connection: &Connection, name: &str) -> Result<bool> {
    let run = || {
        let mut statement = connection.prepare_cached("SELECT seq FROM inbox WHERE source_key = $1")?;
        statement.query_row([name], |_| Ok(())).optional()
    };
    run().map(|found| found.is_some()).map_err(failed_to("look into the inbox"))
}

fn remember_input(connection: &Connection, name: &str, seq: i64, at: Timestamp) -> Result<()> {
    const SQL: &str = "INSERT INTO inbox (source_key, seq, at) VALUES ($1, $2, $3)";
    let run = || connection.prepare_cached(SQL)?.execute(params![name, seq, at.0]);
    run().map(|_| ()).map_err(failed_to("write the inbox"))
}
