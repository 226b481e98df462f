//! Every session that was ever started, and where to find the live ones.
//!
//! What a session is given and how it ends is written whole ([`upsert`]); what is measured while it runs ([`seen`],
//! [`measured`]) is written apart, so that neither undoes the other.

use std::path::PathBuf;

use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::session::context::Gauge;
use pointsman_core::task::Exit;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::Row;
use serde::{Deserialize, Serialize};

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Whole, Word, maybe_json, maybe_time, maybe_whole, maybe_word, time, whole, word};

/// A session. It is written before its launch, without a process, and again when it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRow {
    /// Its id, `dev-shop-3.2`.
    pub session: String,
    /// Whose session it is (`dev-shop-3`); the same across generations.
    pub identity: String,
    pub project: ProjectName,
    /// Its issue; a formula's session has none.
    pub issue: Option<u64>,
    /// Its role (`dev`).
    pub role: Role,
    /// Which session of its identity.
    pub generation: u32,
    /// The machine it runs on; empty if that was never recorded.
    pub host: String,
    /// The model it was started with.
    pub model: Option<String>,
    /// An item of another tracker.
    pub bead_id: Option<String>,
    /// A node of another plan.
    pub node_id: Option<String>,
    /// The file that shows its work state.
    pub hook_path: Option<PathBuf>,
    pub tmux_session: Option<String>,
    /// Its tmux pane (`%3`).
    pub pane: Option<String>,
    pub pid: Option<u32>,
    /// When that process began, as the system counts it: with the pid, it names one process for ever.
    pub start_time: Option<u64>,
    pub tree: Option<PathBuf>,
    pub created_at: Timestamp,
    /// When it was last known to live.
    pub last_seen: Timestamp,
    /// How often in a row it was found stale since.
    pub times_stale: u32,
    pub ended_at: Option<Timestamp>,
    pub exit: Option<Exit>,
    pub acknowledges: bool,
    pub predecessor: Option<String>,
    /// How full its context was when last measured.
    pub gauge: Option<Gauge>,
    /// What it has reported to have spent since its start.
    pub spent: Spent,
}

/// The state of a session. The names are part of the surface that scripts rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionStatus {
    /// Registered; its process is not known yet.
    Starting,
    /// Running, as far as anybody knows.
    Active,
    Terminated,
    Crashed,
}

impl SessionStatus {
    /// The name scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Terminated => "terminated",
            Self::Crashed => "crashed",
        }
    }
}

impl SessionRow {
    /// The state of this session.
    pub fn status(&self) -> SessionStatus {
        match (self.ended_at, self.exit) {
            (None, _) if self.pid.is_none() => SessionStatus::Starting,
            (None, _) => SessionStatus::Active,
            // An end that nobody can explain is not a clean one.
            (Some(_), None | Some(Exit::Crashed)) => SessionStatus::Crashed,
            (
                Some(_),
                Some(
                    Exit::Done
                    | Exit::Failed
                    | Exit::IdleTimeout
                    | Exit::IdlePrompt
                    | Exit::EscalationTimeout
                    | Exit::Exhausted
                    | Exit::Stopped
                    | Exit::Handoff
                    | Exit::Stuck
                    | Exit::Exited,
                ),
            ) => SessionStatus::Terminated,
        }
    }

    /// The identity without its role (`shop-3`).
    pub fn name(&self) -> &str {
        let rest = self.identity.strip_prefix(self.role.as_str());
        rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or(&self.identity)
    }
}

/// The sessions to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScope {
    /// Those that have not ended.
    Live,
    All,
}

/// The columns in the order of [`read`]: a thousand rows are read by place, not by name.
pub(super) const COLUMNS: &str = "s.session, s.identity, s.project, s.issue, s.role, s.generation, s.host, \
    s.model, s.bead_id, s.node_id, s.hook_path, s.tmux_session, s.pane, s.pid, s.start_time, s.tree, \
    s.created_at, s.last_seen, s.times_stale, s.ended_at, s.exit, s.acknowledges, s.predecessor, s.context, \
    s.tokens, s.micro_usd, s.turns, s.input_tokens, s.cache_writes, s.cache_reads, s.output_tokens";
/// How many those are.
pub(super) const COLUMN_COUNT: usize = 31;

impl Store {
    /// Reads one session.
    pub fn session(&self, session: &str) -> Result<Option<SessionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions AS s WHERE s.session = $1");
        let rows = self.rows(words::store::READ_SESSIONS, &sql, [session], read)?;
        Ok(rows.into_iter().next())
    }

    /// Sessions of one project or of all, oldest first.
    pub fn sessions(&self, project: Option<&ProjectName>, scope: SessionScope) -> Result<Vec<SessionRow>> {
        let live = match scope {
            SessionScope::Live => "s.ended_at IS NULL",
            SessionScope::All => "TRUE",
        };
        let select = format!("SELECT {COLUMNS} FROM sessions AS s WHERE {live}");
        let order = "ORDER BY s.created_at, s.session";
        match project {
            Some(project) => {
                let sql = format!("{select} AND s.project = $1 {order}");
                self.rows(words::store::READ_SESSIONS, &sql, [Word(project)], read)
            }
            None => self.rows(words::store::READ_SESSIONS, &format!("{select} {order}"), [], read),
        }
    }
}

/// These sessions were alive at that time. Those that have ended or were seen later are left alone.
pub(super) fn seen(draft: &mut Draft<'_>, ids: &[String], at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE sessions SET last_seen = $1, times_stale = 0
        WHERE session = $2 AND ended_at IS NULL AND last_seen <= $1";
    for id in ids {
        draft.push(Statement::new(words::store::TOUCH_SESSION, SQL, values![at, id]));
    }
    Ok(())
}

/// These sessions were there at that time and gave no sign. Those that have ended or were seen later are left alone.
pub(super) fn silent(draft: &mut Draft<'_>, ids: &[String], at: Timestamp) -> Result<()> {
    const SQL: &str = "UPDATE sessions SET last_seen = $1, times_stale = times_stale + 1
        WHERE session = $2 AND ended_at IS NULL AND last_seen <= $1";
    for id in ids {
        draft.push(Statement::new(words::store::TOUCH_SESSION, SQL, values![at, id]));
    }
    Ok(())
}

/// The session was found stale once more, unless it has ended.
pub(super) fn missed(draft: &mut Draft<'_>, session: &str) -> Result<()> {
    const SQL: &str = "UPDATE sessions SET times_stale = times_stale + 1
        WHERE session = $1 AND ended_at IS NULL";
    draft.push(Statement::new(words::store::RECORD_STALE_SESSION, SQL, values![session]));
    Ok(())
}

/// What was measured of a session, also after its end. What is not given stays, and what was spent never shrinks.
pub(super) fn measured(
    draft: &mut Draft<'_>,
    session: &str,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<()> {
    const SQL: &str = "UPDATE sessions SET context = coalesce($1, context),
        tokens = CASE WHEN $2 > tokens THEN $2 ELSE tokens END,
        micro_usd = CASE WHEN $3 > micro_usd THEN $3 ELSE micro_usd END,
        turns = CASE WHEN $4 > turns THEN $4 ELSE turns END,
        input_tokens = CASE WHEN $5 > input_tokens THEN $5 ELSE input_tokens END,
        cache_writes = CASE WHEN $6 > cache_writes THEN $6 ELSE cache_writes END,
        cache_reads = CASE WHEN $7 > cache_reads THEN $7 ELSE cache_reads END,
        output_tokens = CASE WHEN $8 > output_tokens THEN $8 ELSE output_tokens END
        WHERE session = $9";
    let spent = spent.unwrap_or_default();
    let values = values![
        gauge.map(Json),
        Whole(spent.tokens),
        Whole(spent.micro_usd),
        Whole(spent.turns),
        Whole(spent.classes.input),
        Whole(spent.classes.cache_writes),
        Whole(spent.classes.cache_reads),
        Whole(spent.classes.output),
        session
    ];
    draft.push(Statement::new(words::store::RECORD_MEASUREMENT, SQL, values));
    Ok(())
}

/// Writes a session. One that has ended stays ended: a late sign of life does not revive it. What was measured since it was
/// first written ([`seen`], [`measured`]) is left alone, and what is once known is not forgotten.
pub(super) fn upsert(draft: &mut Draft<'_>, session: &SessionRow) -> Result<()> {
    const STEP_BACK: &str = "UPDATE sessions SET newest = FALSE
        WHERE project = $1 AND identity = $2 AND newest AND generation < $3";
    // The process and where it is are known together, or not yet.
    const SQL: &str = "INSERT INTO sessions (session, identity, project, issue, role, generation, host, model,
            bead_id, node_id, hook_path, tmux_session, pane, pid, start_time, tree, created_at, last_seen,
            times_stale, ended_at, exit, acknowledges, predecessor, context, tokens, micro_usd, turns,
            input_tokens, cache_writes, cache_reads, output_tokens, newest, restarts)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
            $22, $23, $24, $25, $26, $27, $28, $29, $30, $31,
            NOT EXISTS (SELECT 1 FROM sessions WHERE project = $3 AND identity = $2 AND newest),
            coalesce((SELECT CASE WHEN p.exit IN ('crashed', 'exited', 'idle_timeout')
                THEN p.restarts + 1 ELSE p.restarts END FROM sessions AS p WHERE p.session = $23), 0))
        ON CONFLICT (session) DO UPDATE SET
            host = excluded.host, model = coalesce(excluded.model, sessions.model),
            bead_id = coalesce(excluded.bead_id, sessions.bead_id),
            node_id = coalesce(excluded.node_id, sessions.node_id),
            hook_path = coalesce(excluded.hook_path, sessions.hook_path),
            tmux_session = coalesce(excluded.tmux_session, sessions.tmux_session),
            pane = CASE WHEN excluded.pid IS NULL THEN sessions.pane ELSE excluded.pane END,
            start_time = CASE WHEN excluded.pid IS NULL THEN sessions.start_time ELSE excluded.start_time END,
            pid = coalesce(excluded.pid, sessions.pid),
            tree = coalesce(excluded.tree, sessions.tree),
            last_seen = CASE WHEN excluded.last_seen > sessions.last_seen
                THEN excluded.last_seen ELSE sessions.last_seen END,
            ended_at = coalesce(sessions.ended_at, excluded.ended_at),
            exit = coalesce(sessions.exit, excluded.exit),
            acknowledges = (sessions.acknowledges OR excluded.acknowledges), predecessor = excluded.predecessor";
    let step_back = values![Word(&session.project), &session.identity, session.generation];
    draft.push(Statement::new(words::store::WRITE_SESSION, STEP_BACK, step_back));
    let values = values![
        &session.session,
        &session.identity,
        Word(&session.project),
        session.issue.map(Whole),
        session.role.as_str(),
        session.generation,
        &session.host,
        session.model.as_ref(),
        session.bead_id.as_ref(),
        session.node_id.as_ref(),
        session.hook_path.as_ref().map(Word),
        session.tmux_session.as_ref(),
        session.pane.as_ref(),
        session.pid,
        session.start_time.map(Whole),
        session.tree.as_ref().map(Word),
        session.created_at,
        session.last_seen,
        session.times_stale,
        session.ended_at,
        session.exit.map(Word),
        session.acknowledges,
        session.predecessor.as_ref(),
        session.gauge.map(Json),
        Whole(session.spent.tokens),
        Whole(session.spent.micro_usd),
        Whole(session.spent.turns),
        Whole(session.spent.classes.input),
        Whole(session.spent.classes.cache_writes),
        Whole(session.spent.classes.cache_reads),
        Whole(session.spent.classes.output),
    ];
    draft.push(Statement::new(words::store::WRITE_SESSION, SQL, values));
    Ok(())
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        session: row.get(0)?,
        identity: row.get(1)?,
        project: word(row, 2)?,
        issue: maybe_whole(row, 3)?,
        role: word(row, 4)?,
        generation: row.get(5)?,
        host: row.get(6)?,
        model: row.get(7)?,
        bead_id: row.get(8)?,
        node_id: row.get(9)?,
        hook_path: maybe_word(row, 10)?,
        tmux_session: row.get(11)?,
        pane: row.get(12)?,
        pid: row.get(13)?,
        start_time: maybe_whole(row, 14)?,
        tree: maybe_word(row, 15)?,
        created_at: time(row, 16)?,
        last_seen: time(row, 17)?,
        times_stale: row.get(18)?,
        ended_at: maybe_time(row, 19)?,
        exit: maybe_word(row, 20)?,
        acknowledges: row.get(21)?,
        predecessor: row.get(22)?,
        gauge: maybe_json(row, 23)?,
        spent: Spent {
            tokens: whole(row, 24)?,
            micro_usd: whole(row, 25)?,
            turns: whole(row, 26)?,
            classes: TokenClasses {
                input: whole(row, 27)?,
                cache_writes: whole(row, 28)?,
                cache_reads: whole(row, 29)?,
                output: whole(row, 30)?,
            },
            ..Spent::default()
        },
    })
}
