//! Every session that was ever started, and where to find the live ones.

use std::path::PathBuf;

use pointsman_core::ids::ProjectName;
use pointsman_core::task::Exit;
use pointsman_core::time::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::Serialize;

use super::Store;
use crate::Result;
use crate::column::{Whole, Word, maybe_time, maybe_whole, maybe_word, time, word};
use crate::error::failed_to;

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionRow {
    /// Its id, `dev-shop-3.2`.
    pub session: String,
    /// Its project.
    pub project: ProjectName,
    /// Its issue; a formula's session has none.
    pub issue: Option<u64>,
    /// Its role (`dev`).
    pub role: String,
    /// Which session of its identity.
    pub generation: u32,
    /// Its tmux session's name.
    pub tmux_session: Option<String>,
    /// Its tmux pane (`%3`).
    pub pane: Option<String>,
    /// Its process.
    pub pid: Option<u32>,
    /// When that process began, as the system counts it: with the pid, it names one process for ever.
    pub start_time: Option<u64>,
    /// Its working tree.
    pub tree: Option<PathBuf>,
    /// When it was started.
    pub created_at: Timestamp,
    /// When it was last known to live.
    pub last_seen: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it ended.
    pub exit: Option<Exit>,
    /// Whether it acknowledges messages.
    pub acknowledges: bool,
    /// The session it replaced.
    pub predecessor: Option<String>,
}

/// Which sessions to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionScope {
    /// Those that have not ended.
    Live,
    /// All that ever were.
    All,
}

impl Store {
    /// Writes a session. One that has ended stays ended: a late sign of life does not revive it.
    pub fn upsert_session(&mut self, session: &SessionRow) -> Result<()> {
        upsert(&self.connection, session)
    }

    /// One session.
    pub fn session(&self, session: &str) -> Result<Option<SessionRow>> {
        let sql = "SELECT * FROM sessions WHERE session = $1";
        let rows = self.rows("read sessions", sql, [session], read)?;
        Ok(rows.into_iter().next())
    }

    /// Sessions of one project or of all, oldest first.
    pub fn sessions(&self, project: Option<&ProjectName>, scope: SessionScope) -> Result<Vec<SessionRow>> {
        let live = match scope {
            SessionScope::Live => "ended_at IS NULL",
            SessionScope::All => "TRUE",
        };
        let order = "ORDER BY created_at, session";
        match project {
            Some(project) => {
                let sql = format!("SELECT * FROM sessions WHERE project = $1 AND {live} {order}");
                self.rows("read sessions", &sql, [Word(project)], read)
            }
            None => {
                self.rows("read sessions", &format!("SELECT * FROM sessions WHERE {live} {order}"), [], read)
            }
        }
    }

    /// Records how a session ended. Answers whether that is news: the first end counts.
    pub fn end_session(&mut self, session: &str, exit: Exit, at: Timestamp) -> Result<bool> {
        const SQL: &str =
            "UPDATE sessions SET ended_at = $1, exit = $2 WHERE session = $3 AND ended_at IS NULL";
        self.execute("end a session", SQL, params![at.0, Word(exit), session]).map(|rows| rows > 0)
    }
}

pub(super) fn upsert(connection: &Connection, session: &SessionRow) -> Result<()> {
    const SQL: &str = "INSERT INTO sessions (session, project, issue, role, generation, tmux_session, pane,
            pid, start_time, tree, created_at, last_seen, ended_at, exit, acknowledges, predecessor)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
        ON CONFLICT (session) DO UPDATE SET
            tmux_session = excluded.tmux_session, pane = excluded.pane, pid = excluded.pid,
            start_time = excluded.start_time, tree = excluded.tree, last_seen = excluded.last_seen,
            ended_at = coalesce(sessions.ended_at, excluded.ended_at),
            exit = coalesce(sessions.exit, excluded.exit),
            acknowledges = excluded.acknowledges, predecessor = excluded.predecessor";
    let run = || {
        connection.prepare_cached(SQL)?.execute(params![
            session.session,
            Word(&session.project),
            session.issue.map(Whole),
            session.role,
            session.generation,
            session.tmux_session,
            session.pane,
            session.pid,
            session.start_time.map(Whole),
            session.tree.as_ref().map(Word),
            session.created_at.0,
            session.last_seen.0,
            session.ended_at.map(|at| at.0),
            session.exit.map(Word),
            session.acknowledges,
            session.predecessor,
        ])
    };
    run().map(|_| ()).map_err(failed_to("write a session"))
}

fn read(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        session: row.get("session")?,
        project: word(row, "project")?,
        issue: maybe_whole(row, "issue")?,
        role: row.get("role")?,
        generation: row.get("generation")?,
        tmux_session: row.get("tmux_session")?,
        pane: row.get("pane")?,
        pid: row.get("pid")?,
        start_time: maybe_whole(row, "start_time")?,
        tree: maybe_word(row, "tree")?,
        created_at: time(row, "created_at")?,
        last_seen: time(row, "last_seen")?,
        ended_at: maybe_time(row, "ended_at")?,
        exit: maybe_word(row, "exit")?,
        acknowledges: row.get("acknowledges")?,
        predecessor: row.get("predecessor")?,
    })
}
