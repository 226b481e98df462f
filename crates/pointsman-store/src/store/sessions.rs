//! Every session that was ever started, and where to find the live ones.
//!
//! What a session is given and how it ends is written whole ([`Store::upsert_session`], or with an
//! event); what is measured while it runs ([`Store::touch_sessions`], [`Store::session_measured`])
//! is written apart, so that neither undoes the other.

use std::path::PathBuf;

use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::Gauge;
use pointsman_core::task::Exit;
use pointsman_core::time::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};

use super::Store;
use crate::Result;
use crate::column::{Json, Whole, Word, maybe_json, maybe_time, maybe_whole, maybe_word, time, whole, word};
use crate::error::failed_to;

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
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last known to live.
    pub last_seen: Timestamp,
    /// How often in a row it was found stale since.
    pub times_stale: u32,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    pub exit: Option<Exit>,
    pub acknowledges: bool,
    pub predecessor: Option<String>,
    /// How full its context was when last measured.
    pub gauge: Option<Gauge>,
    /// What it has reported to have spent since its start.
    pub spent: Spent,
}

/// Where a session is in its life. The names are part of the surface that scripts rely on.
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
    /// Where it is in its life.
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

/// Which sessions to read.
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
    s.tokens, s.micro_usd, s.turns";
/// How many those are.
pub(super) const COLUMN_COUNT: usize = 27;

impl Store {
    /// Writes a session. One that has ended stays ended: a late sign of life does not revive it.
    /// What was measured since it was first written ([`Store::touch_sessions`],
    /// [`Store::session_measured`]) is left alone, and what is once known is not forgotten.
    pub fn upsert_session(&mut self, session: &SessionRow) -> Result<()> {
        let transaction = self.begin("write a session")?;
        upsert(&transaction, session)?;
        transaction.commit().map_err(failed_to("write a session"))
    }

    /// One session.
    pub fn session(&self, session: &str) -> Result<Option<SessionRow>> {
        let sql = format!("SELECT {COLUMNS} FROM sessions AS s WHERE s.session = $1");
        let rows = self.rows("read sessions", &sql, [session], read)?;
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
                self.rows("read sessions", &sql, [Word(project)], read)
            }
            None => self.rows("read sessions", &format!("{select} {order}"), [], read),
        }
    }

    /// Records how a session ended. Answers whether that is news: the first end counts.
    pub fn end_session(&mut self, session: &str, exit: Exit, at: Timestamp) -> Result<bool> {
        const SQL: &str =
            "UPDATE sessions SET ended_at = $1, exit = $2 WHERE session = $3 AND ended_at IS NULL";
        self.execute("end a session", SQL, params![at.0, Word(exit), session]).map(|rows| rows > 0)
    }

    /// These sessions were alive at that time, with one wait for the disk for all of them. Those
    /// that have ended or were seen later are left alone.
    pub fn touch_sessions(&mut self, ids: &[String], at: Timestamp) -> Result<()> {
        const SQL: &str = "UPDATE sessions SET last_seen = $1, times_stale = 0
            WHERE session = $2 AND ended_at IS NULL AND last_seen <= $1";
        let failed = failed_to("touch sessions");
        if ids.is_empty() {
            return Ok(());
        }
        let transaction = self.begin("touch sessions")?;
        let touch = || {
            let mut statement = transaction.prepare_cached(SQL)?;
            ids.iter().try_for_each(|id| statement.execute(params![at.0, id]).map(drop))
        };
        touch().map_err(&failed)?;
        transaction.commit().map_err(failed)
    }

    /// The session was found stale once more. Answers how often in a row that is now; nothing if
    /// it has ended or never was.
    pub fn session_found_stale(&mut self, session: &str) -> Result<Option<u32>> {
        const SQL: &str = "UPDATE sessions SET times_stale = times_stale + 1
            WHERE session = $1 AND ended_at IS NULL RETURNING times_stale";
        let run = || self.connection.prepare_cached(SQL)?.query_row([session], |row| row.get(0)).optional();
        run().map_err(failed_to("record a stale session"))
    }

    /// What was measured of a session, also after its end. What is not given stays, and what was
    /// spent never shrinks. Answers whether there is such a session.
    pub fn session_measured(
        &mut self,
        session: &str,
        gauge: Option<Gauge>,
        spent: Option<Spent>,
    ) -> Result<bool> {
        measured(&self.connection, session, gauge, spent)
    }
}

pub(super) fn measured(
    connection: &Connection,
    session: &str,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<bool> {
    const SQL: &str = "UPDATE sessions SET context = coalesce($1, context),
        tokens = CASE WHEN $2 > tokens THEN $2 ELSE tokens END,
        micro_usd = CASE WHEN $3 > micro_usd THEN $3 ELSE micro_usd END,
        turns = CASE WHEN $4 > turns THEN $4 ELSE turns END
        WHERE session = $5";
    let spent = spent.unwrap_or_default();
    let run = || {
        connection.prepare_cached(SQL)?.execute(params![
            gauge.map(Json),
            Whole(spent.tokens),
            Whole(spent.micro_usd),
            Whole(spent.turns),
            session
        ])
    };
    run().map(|rows| rows > 0).map_err(failed_to("record a measurement"))
}

/// Two statements: the caller holds a transaction.
pub(super) fn upsert(connection: &Connection, session: &SessionRow) -> Result<()> {
    const STEP_BACK: &str = "UPDATE sessions SET newest = FALSE
        WHERE project = $1 AND identity = $2 AND newest AND generation < $3";
    // The process and where it is are known together, or not yet.
    const SQL: &str = "INSERT INTO sessions (session, identity, project, issue, role, generation, host, model,
            bead_id, node_id, hook_path, tmux_session, pane, pid, start_time, tree, created_at, last_seen,
            times_stale, ended_at, exit, acknowledges, predecessor, context, tokens, micro_usd, turns, newest,
            restarts)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
            $22, $23, $24, $25, $26, $27,
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
    let run = || {
        let project = Word(&session.project);
        connection.prepare_cached(STEP_BACK)?.execute(params![
            project,
            session.identity,
            session.generation
        ])?;
        connection.prepare_cached(SQL)?.execute(params![
            session.session,
            session.identity,
            project,
            session.issue.map(Whole),
            session.role.as_str(),
            session.generation,
            session.host,
            session.model,
            session.bead_id,
            session.node_id,
            session.hook_path.as_ref().map(Word),
            session.tmux_session,
            session.pane,
            session.pid,
            session.start_time.map(Whole),
            session.tree.as_ref().map(Word),
            session.created_at.0,
            session.last_seen.0,
            session.times_stale,
            session.ended_at.map(|at| at.0),
            session.exit.map(Word),
            session.acknowledges,
            session.predecessor,
            session.gauge.map(Json),
            Whole(session.spent.tokens),
            Whole(session.spent.micro_usd),
            Whole(session.spent.turns),
        ])
    };
    run().map(|_| ()).map_err(failed_to("write a session"))
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
            ..Spent::default()
        },
    })
}
