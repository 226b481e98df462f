//! One transaction, then the world: the only way by which anything reaches the disk.
//!
//! A commit is a list of statements ([`Statement`](super::statement::Statement)) with a key. All of its values are known
//! before the first one runs, so that a database on a server can take it in one trip: the writer gives out the numbers
//! ([`Numbers`]), and what a caller has to know first it has read before. No statement is undone by what another one
//! answers; what must not happen is refused by a constraint.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pointsman_core::concern::ConcernKey;
use pointsman_core::ids::{ProjectName, RoleKey, Sha, TaskKey};
use pointsman_core::log;
use pointsman_core::notifier::Topic;
use pointsman_core::part::question::{self, Question};
use pointsman_core::run::Run;
use pointsman_core::session::context::Gauge;
use pointsman_core::session::work::WorkState;
use pointsman_core::signal::Signal;
use pointsman_core::task::{Effect, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::vault;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use rusqlite::{ErrorCode, OptionalExtension, TransactionBehavior, params_from_iter};
use serde_json::Value;

use super::numbers::Numbers;
use super::statement::{Statement, values};
use super::{
    Audit, CheckpointRow, Delivered, DeliveryId, EffectId, EntryId, Memory, NewEntry, NewNotice, NewReply,
    ProjectRow, QueueEntry, SessionRow, SpendingReport, Stopped, Store, Thread, VerdictRow, checkpoints,
    cursors, deliveries, memories, merge_queue, messages, notices, outbox, projects, questions, queues,
    replies, runs, sessions, spending, tasks, threads, vault as vault_table, verdicts, work_states,
};
use crate::Result;
use crate::column::{Json, Whole, Word};
use crate::error::{Error, Retry, failed_to};

/// The keys of this many commits are kept. Only the last one can be in doubt.
const KEYS_KEPT: i64 = 1_000;
/// Who owns the database. A file has one owner, the daemon that holds its lock; on a server this will be the lease's.
const EPOCH: u64 = 0;

/// Something that happened, and all that follows from it. It is remembered as a whole or not at all.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub at: Timestamp,
    /// What, as a short name (`phase_claimed`). Without one nothing is logged: see [`Change::quiet`].
    pub kind: Option<String>,
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
    /// Named values of the project to set with it.
    pub cursors: Vec<(String, String)>,
    /// What is remembered of the project with it.
    pub memories: Vec<Memory>,
    /// Sessions to write with it.
    pub sessions: Vec<SessionRow>,
    /// The work state of whoever it is about, as it is now.
    pub work_state: Option<WorkState>,
    /// The vault's action that it is about, as it is now.
    pub vault: Option<vault::Entry>,
    /// The run of a formula that it is about, as it is now.
    pub run: Option<Run>,
    /// The concern that it is about. Its question is its snapshot, so there is nothing else to write.
    pub concern: Option<ConcernKey>,
    /// The role whose memory it is about. Its snapshot is among the memories.
    pub role: Option<RoleKey>,
    /// What people are to be told with it.
    pub notices: Vec<NewNotice>,
    /// A person's words that it is about, kept for an agent.
    pub reply: Option<NewReply>,
    /// What others wait for, with its details. Each becomes an event of its own, named after the
    /// signal, right after the change's.
    pub signals: Vec<(Signal, Value)>,
    /// Further rows to write with it.
    pub writes: Vec<Write>,
}

/// A row to write.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A branch enters the merge queue, under the number that [`Store::next_entry`] gave.
    EntryAdded {
        id: EntryId,
        entry: Box<NewEntry>,
    },
    /// An entry of the merge queue, as it is now.
    EntryMoved(Box<QueueEntry>),
    QueuePaused {
        project: ProjectName,
        stopped: Stopped,
    },
    QueueResumed {
        project: ProjectName,
    },
    MainAudited {
        project: ProjectName,
        audit: Audit,
    },
    ProjectAdded(ProjectRow),
    ProjectRemoved(ProjectName),
    /// A named value of a project, or of the whole daemon.
    Cursor {
        project: Option<ProjectName>,
        name: String,
        value: String,
    },
    Verdict {
        project: ProjectName,
        object: Sha,
        gate: String,
        verdict: VerdictRow,
    },
    Session(Box<SessionRow>),
    /// These sessions are alive.
    SessionsSeen(Vec<String>),
    /// Sessions whose processes are there and gave no sign since the last look.
    SessionsSilent(Vec<String>),
    /// A session was looked for in vain; that says nothing by itself.
    SessionMissed(String),
    ContextMeasured {
        session: String,
        gauge: Gauge,
    },
    Spent(SpendingReport),
    Checkpoint(CheckpointRow),
    CheckpointForgotten {
        task: TaskKey,
        n: u64,
    },
    MessageSent {
        id: EffectId,
        path: PathBuf,
    },
    /// A message waits to be given for the first time.
    MessageHeld {
        id: EffectId,
        path: PathBuf,
    },
    MessageAcknowledged(EffectId),
    MessageUnacknowledged(EffectId),
    EffectPostponed {
        id: EffectId,
        error: String,
        not_before: Timestamp,
    },
    EffectSuperseded(EffectId),
    /// What the effects of a workflow waited for until then is over: they are due.
    EffectsRetried {
        workflow: WorkflowId,
        until: Timestamp,
    },
    Notice(NewNotice),
    /// The same was said once more.
    NoticeRepeated(i64),
    /// What became of a notice on its way.
    Delivered {
        id: DeliveryId,
        delivered: Delivered,
        at: Timestamp,
    },
    Thread(Thread),
    ReplyTaken(i64),
    /// A question to a person, as it is now, under the number that [`Store::next_question`] gave.
    Question(Box<Question>),
    /// Whoever took these at that time did not come to read them.
    RepliesGivenBack {
        project: ProjectName,
        topic: Topic,
        taken_at: Timestamp,
    },
}

/// The name of each kind, and all of them. One list for both, so that none can be missing.
macro_rules! names {
    ($($pattern:pat => $name:literal,)*) => {
        /// The names of all kinds.
        pub const NAMES: &[&str] = &[$($name),*];

        /// The name of its kind.
        pub fn name(&self) -> &'static str {
            match self {
                $($pattern => $name,)*
            }
        }
    };
}

impl Write {
    names! {
        Self::EntryAdded { .. } => "entry_added",
        Self::EntryMoved(_) => "entry_moved",
        Self::QueuePaused { .. } => "queue_paused",
        Self::QueueResumed { .. } => "queue_resumed",
        Self::MainAudited { .. } => "main_audited",
        Self::ProjectAdded(_) => "project_added",
        Self::ProjectRemoved(_) => "project_removed",
        Self::Cursor { .. } => "cursor",
        Self::Verdict { .. } => "verdict",
        Self::Session(_) => "session",
        Self::SessionsSeen(_) => "sessions_seen",
        Self::SessionsSilent(_) => "sessions_silent",
        Self::SessionMissed(_) => "session_missed",
        Self::ContextMeasured { .. } => "context_measured",
        Self::Spent(_) => "spent",
        Self::Checkpoint(_) => "checkpoint",
        Self::CheckpointForgotten { .. } => "checkpoint_forgotten",
        Self::MessageSent { .. } => "message_sent",
        Self::MessageHeld { .. } => "message_held",
        Self::MessageAcknowledged(_) => "message_acknowledged",
        Self::MessageUnacknowledged(_) => "message_unacknowledged",
        Self::EffectPostponed { .. } => "effect_postponed",
        Self::EffectSuperseded(_) => "effect_superseded",
        Self::EffectsRetried { .. } => "effects_retried",
        Self::Notice(_) => "notice",
        Self::NoticeRepeated(_) => "notice_repeated",
        Self::Delivered { .. } => "delivered",
        Self::Thread(_) => "thread",
        Self::ReplyTaken(_) => "reply_taken",
        Self::Question(_) => "question",
        Self::RepliesGivenBack { .. } => "replies_given_back",
    }

    /// Whether it may be written only together with an event that says so.
    fn needs_event(&self) -> bool {
        match self {
            Self::EntryAdded { .. }
            | Self::EntryMoved(_)
            | Self::QueuePaused { .. }
            | Self::QueueResumed { .. }
            | Self::MainAudited { .. }
            | Self::ProjectAdded(_)
            | Self::ProjectRemoved(_)
            | Self::Question(_) => true,
            Self::Cursor { .. }
            | Self::Verdict { .. }
            | Self::Session(_)
            | Self::SessionsSeen(_)
            | Self::SessionsSilent(_)
            | Self::SessionMissed(_)
            | Self::ContextMeasured { .. }
            | Self::Spent(_)
            | Self::Checkpoint(_)
            | Self::CheckpointForgotten { .. }
            | Self::MessageSent { .. }
            | Self::MessageHeld { .. }
            | Self::MessageAcknowledged(_)
            | Self::MessageUnacknowledged(_)
            | Self::EffectPostponed { .. }
            | Self::EffectSuperseded(_)
            | Self::EffectsRetried { .. }
            | Self::Notice(_)
            | Self::NoticeRepeated(_)
            | Self::Delivered { .. }
            | Self::Thread(_)
            | Self::ReplyTaken(_)
            | Self::RepliesGivenBack { .. } => false,
        }
    }

    fn write(&self, draft: &mut Draft<'_>, at: Timestamp) -> Result<()> {
        match self {
            Self::EntryAdded { id, entry } => merge_queue::add(draft, *id, entry),
            Self::EntryMoved(entry) => merge_queue::update(draft, entry),
            Self::QueuePaused { project, stopped } => queues::stop(draft, project, stopped),
            Self::QueueResumed { project } => queues::resume(draft, project),
            Self::MainAudited { project, audit } => queues::audited(draft, project, audit),
            Self::ProjectAdded(project) => projects::add(draft, project),
            Self::ProjectRemoved(project) => projects::remove(draft, project, at),
            Self::Cursor { project, name, value } => cursors::set(draft, project.as_ref(), name, value),
            Self::Verdict { project, object, gate, verdict } => {
                verdicts::remember(draft, project, object, gate, verdict)
            }
            Self::Session(session) => sessions::upsert(draft, session),
            Self::SessionsSeen(sessions) => sessions::seen(draft, sessions, at),
            Self::SessionsSilent(sessions) => sessions::silent(draft, sessions, at),
            Self::SessionMissed(session) => sessions::missed(draft, session),
            Self::ContextMeasured { session, gauge } => {
                sessions::measured(draft, session, Some(*gauge), None)
            }
            Self::Spent(report) => spending::spend(draft, report),
            Self::Checkpoint(checkpoint) => checkpoints::add(draft, checkpoint),
            Self::CheckpointForgotten { task, n } => checkpoints::forget(draft, task, *n),
            Self::MessageSent { id, path } => messages::sent(draft, *id, path, at),
            Self::MessageHeld { id, path } => messages::held(draft, *id, path, at),
            Self::MessageAcknowledged(id) => messages::acknowledged(draft, *id, at),
            Self::MessageUnacknowledged(id) => messages::unacknowledged(draft, *id),
            Self::EffectPostponed { id, error, not_before } => {
                outbox::postpone(draft, *id, error, *not_before)
            }
            Self::EffectSuperseded(id) => outbox::supersede(draft, *id, at),
            Self::EffectsRetried { workflow, until } => outbox::retry(draft, workflow, *until),
            Self::Notice(notice) => notices::insert(draft, notice, at),
            Self::NoticeRepeated(id) => notices::count(draft, *id),
            Self::Delivered { id, delivered, at } => deliveries::settle(draft, *id, delivered, *at),
            Self::Thread(thread) => threads::put(draft, thread),
            Self::ReplyTaken(id) => replies::take(draft, *id, at),
            Self::Question(question) => questions::put(draft, question),
            Self::RepliesGivenBack { project, topic, taken_at } => {
                replies::give_back(draft, project, topic, *taken_at)
            }
        }
    }

    /// A named value of a project.
    pub fn cursor(project: &ProjectName, name: impl Into<String>, value: impl Into<String>) -> Self {
        Self::Cursor { project: Some(project.clone()), name: name.into(), value: value.into() }
    }
}

impl Change {
    /// An event with nothing following from it; set the other fields as needed.
    pub fn new(at: Timestamp, kind: impl Into<String>) -> Self {
        Self {
            at,
            kind: Some(kind.into()),
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
            cursors: Vec::new(),
            memories: Vec::new(),
            sessions: Vec::new(),
            work_state: None,
            vault: None,
            run: None,
            concern: None,
            role: None,
            notices: Vec::new(),
            reply: None,
            signals: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// An entry of a project's log with nothing following from it.
    pub fn logged(at: Timestamp, project: &ProjectName, entry: &log::Entry) -> Self {
        let (kind, data) = entry.stored();
        Self { project: Some(project.clone()), data, ..Self::new(at, kind) }
    }

    /// A question that was asked, reminded of or settled: its entry of the log and its row.
    pub fn of_question(at: Timestamp, change: &question::Change) -> Option<Self> {
        let entry = log::Entry::of_question(change)?;
        let (question::Change::Asked(asked)
        | question::Change::Reminded(asked)
        | question::Change::Settled(asked)) = change;
        let source = &asked.source;
        let mut written = Self::logged(at, &source.project, &entry);
        (written.issue, written.session) = (source.issue, source.session.clone());
        written.writes = vec![Write::Question(Box::new(asked.clone()))];
        Some(written)
    }

    /// Rows that nobody reads about in the log: signs of life, measurements, deliveries. Whatever has a history of its own
    /// needs an event, and is refused here.
    pub fn quiet(at: Timestamp, writes: Vec<Write>) -> Self {
        Self { kind: None, writes, ..Self::new(at, "") }
    }

    /// The kinds of all that it writes, by name: its event as `event:NAME`, its rows as `row:NAME`. Tests go by them.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let event = self.kind.as_ref().map(|kind| format!("event:{kind}"));
        let parts = self.parts().into_iter().filter(|(_, written)| *written).map(|(name, _)| name);
        let rows = parts.chain(self.writes.iter().map(Write::name)).map(|name| format!("row:{name}"));
        event.into_iter().chain(rows)
    }

    /// The kinds of rows that a change has a field for, and whether it writes one.
    pub fn parts(&self) -> [(&'static str, bool); 14] {
        [
            ("task", self.task.is_some()),
            ("effect", !self.effects.is_empty()),
            ("settled_effect", self.settles.is_some()),
            ("input", self.dedup.is_some()),
            ("memory", !self.memories.is_empty()),
            ("work_state", self.work_state.is_some()),
            ("vault", self.vault.is_some()),
            ("run", self.run.is_some()),
            ("reply", self.reply.is_some()),
            ("signal", !self.signals.is_empty()),
            // The same rows as the writes of these names.
            ("session", !self.sessions.is_empty()),
            ("cursor", !self.cursors.is_empty()),
            ("notice", !self.notices.is_empty()),
            ("message_sent", self.sent.is_some()),
        ]
    }

    fn needs_event(&self) -> bool {
        self.dedup.is_some()
            || self.task.is_some()
            || !self.effects.is_empty()
            || !self.memories.is_empty()
            || self.work_state.is_some()
            || self.vault.is_some()
            || self.run.is_some()
            || self.reply.is_some()
            || !self.signals.is_empty()
            || self.writes.iter().any(Write::needs_event)
    }
}

/// The fate of a [`Change`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Committed {
    Done {
        /// The number of its event, its signals have the next ones; nothing for one that is quiet.
        seq: Option<i64>,
        /// Its effects in the outbox, in their order.
        effect_ids: Vec<EffectId>,
    },
    /// Its input was seen before.
    Duplicate,
}

/// A commit that may have happened: the disk failed at its end.
#[derive(Debug)]
pub(super) struct UnconfirmedCommit {
    key: String,
    changes: Vec<Change>,
    committed: Vec<Committed>,
    numbers: Numbers,
}

impl Store {
    /// Whether a change of this name ([`Change::dedup`]) is on disk: one that carries it would be skipped.
    pub fn knows_input(&self, name: &str) -> Result<bool> {
        const SQL: &str = "SELECT seq FROM inbox WHERE source_key = $1";
        let run = || self.connection.prepare_cached(SQL)?.query_row([name], |_| Ok(())).optional();
        run().map(|found| found.is_some()).map_err(failed_to(words::store::READ_INBOX))
    }

    /// The key that the next commit will have.
    pub fn next_key(&self) -> String {
        key(self.numbers.commit.peek())
    }

    /// Whether the commit of this key happened. The keys of the last thousand are known.
    pub fn has_happened(&self, key: &str) -> Result<bool> {
        const SQL: &str = "SELECT number FROM commits WHERE key = $1";
        let run = || self.connection.prepare_cached(SQL)?.query_row([key], |_| Ok(())).optional();
        run().map(|found| found.is_some()).map_err(failed_to(words::store::FIND_COMMIT))
    }

    /// Writes many changes in one transaction, with one wait for the disk. After an error none of
    /// them is written; after success all are, whatever happens to us.
    ///
    /// If the disk fails at the very end, the store looks whether the commit happened. If it cannot look either, the
    /// commit is in doubt: the next one looks again. The same changes are then not written a second time, and other
    /// changes are refused with [`Error::Overtaken`], because whoever made them did not know of the commit in doubt.
    pub fn commit(&mut self, changes: &[Change]) -> Result<Vec<Committed>> {
        if let Some(doubtful) = self.doubtful.take() {
            match self.has_happened(&doubtful.key) {
                Ok(true) => {
                    self.numbers = doubtful.numbers;
                    return match doubtful.changes == changes {
                        true => Ok(doubtful.committed),
                        false => Err(Error::Overtaken),
                    };
                }
                Ok(false) => {}
                Err(error) => {
                    self.doubtful = Some(doubtful);
                    return Err(error);
                }
            }
        }
        let mut draft = Draft::new(self);
        let committed: Vec<Committed> =
            changes.iter().map(|change| draft.change(change)).collect::<Result<_>>()?;
        if draft.statements.is_empty() {
            return Ok(committed);
        }
        let key = draft.close(changes)?;
        let Draft { statements, numbers, .. } = draft;
        match self.perform(&statements) {
            Ok(()) => {
                self.numbers = numbers;
                Ok(committed)
            }
            Err(error) if error.retry() == Retry::LookFirst => match self.has_happened(&key) {
                Ok(true) => {
                    self.numbers = numbers;
                    Ok(committed)
                }
                Ok(false) => Err(error),
                Err(_) => {
                    self.doubtful =
                        Some(UnconfirmedCommit { key, changes: changes.to_vec(), committed, numbers });
                    Err(error)
                }
            },
            Err(error) => Err(error),
        }
    }

    /// Runs the statements of a commit, all or none.
    fn perform(&mut self, statements: &[Statement]) -> Result<()> {
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed_to(words::store::BEGIN_COMMIT))?;
        for statement in statements {
            let run = || {
                let mut prepared = transaction.prepare_cached(statement.sql)?;
                prepared.execute(params_from_iter(&statement.values))
            };
            run().map_err(|error| match statement.refusal {
                Some(what) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                    Error::Invalid { what }
                }
                _ => failed_to(statement.operation)(error),
            })?;
        }
        transaction.commit().map_err(failed_to(words::store::FINISH_COMMIT))
    }
}

fn key(number: i64) -> String {
    format!("{EPOCH}.{number}")
}

/// A commit that is being put together. Nothing is written before it is whole.
pub(super) struct Draft<'s> {
    store: &'s Store,
    pub(super) numbers: Numbers,
    statements: Vec<Statement>,
    /// Inputs that changes of this very commit came from.
    inputs: BTreeSet<String>,
}

impl<'s> Draft<'s> {
    fn new(store: &'s Store) -> Self {
        let numbers = store.numbers.clone();
        Self { store, numbers, statements: Vec::new(), inputs: BTreeSet::new() }
    }

    pub(super) fn push(&mut self, statement: Statement) {
        self.statements.push(statement);
    }

    /// Gives the commit its key.
    fn close(&mut self, changes: &[Change]) -> Result<String> {
        const KEY: &str = "INSERT INTO commits (number, key, at) VALUES ($1, $2, $3)";
        const FORGET: &str = "DELETE FROM commits WHERE number <= $1";
        let number = self.numbers.commit.take();
        let at = changes.last().map_or(Timestamp(0), |change| change.at);
        self.push(Statement::new(words::store::KEY_COMMIT, KEY, values![number, key(number), at]));
        self.push(Statement::new(words::store::FORGET_OLD_KEYS, FORGET, values![number - KEYS_KEPT]));
        Ok(key(number))
    }

    fn change(&mut self, change: &Change) -> Result<Committed> {
        if let Some(id) = change.settles {
            outbox::settle(self, id, change.failure.as_deref(), change.at)?;
            if let Some(path) = &change.sent {
                messages::sent(self, id, path, change.at)?;
            }
        }
        if let Some(name) = &change.dedup
            && (self.inputs.contains(name) || self.store.knows_input(name)?)
        {
            return Ok(Committed::Duplicate);
        }
        let (project, issue) = subject(change)?;
        let seq = self.log(change, project, issue)?;
        if let (Some(name), Some(seq)) = (&change.dedup, seq) {
            const SQL: &str = "INSERT INTO inbox (source_key, seq, at) VALUES ($1, $2, $3)";
            self.push(Statement::new(words::store::WRITE_INBOX, SQL, values![name, seq, change.at]));
            self.inputs.insert(name.clone());
        }
        if let Some(task) = &change.task {
            tasks::upsert(self, task)?;
        }
        for (name, value) in &change.cursors {
            cursors::set(self, project, name, value)?;
        }
        for memory in &change.memories {
            memories::put(self, named(project)?, memory)?;
        }
        for session in &change.sessions {
            sessions::upsert(self, session)?;
        }
        if let Some(state) = &change.work_state {
            work_states::put(self, state, named(project)?, issue, change.session.as_deref(), change.at)?;
        }
        if let Some(entry) = &change.vault {
            vault_table::put(self, entry)?;
        }
        if let Some(run) = &change.run {
            runs::put(self, run)?;
        }
        for notice in &change.notices {
            notices::insert(self, notice, change.at)?;
        }
        if let Some(reply) = &change.reply {
            replies::insert(self, reply, change.at)?;
        }
        for write in &change.writes {
            write.write(self, change.at)?;
        }
        let effect_ids = match (owner(change, project, issue), seq) {
            (Some(workflow), Some(seq)) => self.effects(&workflow, seq, change)?,
            _ if change.effects.is_empty() => Vec::new(),
            _ => return Err(Error::Invalid { what: words::store::EFFECTS_WITHOUT_OWNER }),
        };
        Ok(Committed::Done { seq, effect_ids })
    }

    /// Appends a change's event and its signals to the log; answers the event's number.
    fn log(
        &mut self,
        change: &Change,
        project: Option<&ProjectName>,
        issue: Option<u64>,
    ) -> Result<Option<i64>> {
        let Some(kind) = &change.kind else {
            return match change.needs_event() {
                true => Err(Error::Invalid { what: words::store::UNLOGGED_CHANGE }),
                false => Ok(None),
            };
        };
        let seq = self.append(change, project, issue, kind, &change.data)?;
        for (signal, data) in &change.signals {
            self.append(change, project, issue, signal.name(), data)?;
        }
        Ok(Some(seq))
    }

    fn append(
        &mut self,
        change: &Change,
        project: Option<&ProjectName>,
        issue: Option<u64>,
        kind: &str,
        data: &Value,
    ) -> Result<i64> {
        const SQL: &str = "INSERT INTO events (seq, project_seq, at, kind, project, issue, session, data)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let seq = self.numbers.event.take();
        let project_seq = self.numbers.of_project(&self.store.connection, project)?;
        let values = values![
            seq,
            project_seq,
            change.at,
            kind,
            project.map(Word),
            issue.map(Whole),
            change.session.as_ref(),
            Json(data)
        ];
        self.push(Statement::new(words::store::APPEND_EVENT, SQL, values));
        Ok(seq)
    }

    fn effects(&mut self, key: &WorkflowId, seq: i64, change: &Change) -> Result<Vec<EffectId>> {
        let mut ids = Vec::with_capacity(change.effects.len());
        for (place, effect) in change.effects.iter().enumerate() {
            if let Effect::StartSession { generation, .. } = effect {
                outbox::supersede_deliveries(self, key, *generation, change.at)?;
            }
            let id = outbox::insert(self, key, &format!("{seq}.{place}"), effect, change.at)?;
            if let Effect::Deliver { generation, headline, .. } = effect {
                messages::insert(self, id, key, *generation, *headline)?;
            }
            ids.push(id);
        }
        Ok(ids)
    }
}

/// The workflow whose lane the effects of a change go to.
fn owner(change: &Change, project: Option<&ProjectName>, issue: Option<u64>) -> Option<WorkflowId> {
    if let Some(run) = &change.run {
        return Some(WorkflowId::Run(run.key()));
    }
    if let Some(entry) = &change.vault {
        return Some(WorkflowId::Vault(entry.key()));
    }
    if let Some(key) = &change.concern {
        return Some(WorkflowId::Concern(key.clone()));
    }
    if let Some(key) = &change.role {
        return Some(WorkflowId::Role(key.clone()));
    }
    Some(WorkflowId::Task(TaskKey { project: project?.clone(), issue: issue? }))
}

/// The project that a change must name for what it carries.
fn named(project: Option<&ProjectName>) -> Result<&ProjectName> {
    project.ok_or(Error::Invalid { what: words::store::NO_PROJECT })
}

/// What the change is about. Its own words and its task must not disagree.
fn subject(change: &Change) -> Result<(Option<&ProjectName>, Option<u64>)> {
    let Some(task) = &change.task else { return Ok((change.project.as_ref(), change.issue)) };
    let same = change.project.as_ref().is_none_or(|project| *project == task.key.project)
        && change.issue.is_none_or(|issue| issue == task.key.issue);
    if same {
        Ok((Some(&task.key.project), Some(task.key.issue)))
    } else {
        Err(Error::Invalid { what: words::store::ANOTHER_TASK })
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::time::Timestamp;

    use super::{Change, Store, UnconfirmedCommit};
    use crate::{Error, Retry};

    /// A store whose last commit is on disk, although nobody was told.
    fn in_doubt() -> (tempfile::TempDir, Store, Vec<Change>) {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("pointsman.db")).unwrap();
        let (key, before) = (store.next_key(), store.numbers.clone());
        let changes = vec![Change::new(Timestamp(1), "remembered")];
        let committed = store.commit(&changes).unwrap();
        let numbers = std::mem::replace(&mut store.numbers, before);
        store.doubtful = Some(UnconfirmedCommit { key, changes: changes.clone(), committed, numbers });
        (dir, store, changes)
    }

    fn events(store: &Store) -> i64 {
        store.connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_commit_in_doubt_is_not_written_again() {
        let (_dir, mut store, changes) = in_doubt();
        assert_eq!(store.commit(&changes).unwrap().len(), 1);
        assert_eq!(events(&store), 1);
    }

    #[test]
    fn changes_made_without_knowing_of_a_commit_in_doubt_are_refused_once() {
        let (_dir, mut store, _) = in_doubt();
        let others = [Change::new(Timestamp(2), "remembered")];
        let refused = store.commit(&others).unwrap_err();
        assert!(matches!(refused, Error::Overtaken) && refused.retry() == Retry::Later, "{refused:?}");
        assert_eq!(events(&store), 1);
        store.commit(&others).unwrap();
        assert_eq!(events(&store), 2);
    }
}
