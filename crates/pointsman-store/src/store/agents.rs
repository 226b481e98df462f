//! Sessions beside what their tasks are at, in one query.

use pointsman_core::ids::ProjectName;
use pointsman_core::session::work::WorkPhase;
use pointsman_core::task::{Phase, State};
use pointsman_core::words;
use serde::Serialize;

use super::sessions::{self, COLUMN_COUNT, COLUMNS};
use super::{SessionRow, Store};
use crate::Result;
use crate::column::{Word, maybe_word, whole};

/// A session and what its task is at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentRow {
    pub session: SessionRow,
    /// Where its task stands; nothing for a session without one.
    pub state: Option<State>,
    /// What its agent last claimed.
    pub phase: Option<Phase>,
    /// Where its identity is in its work.
    pub work_phase: Option<WorkPhase>,
    /// How many sessions of its identity were replaced before it because they died.
    pub restarts: u64,
}

impl Store {
    /// The newest session of every identity, ended or not; with `include_ended` every session that
    /// ever was. By project, identity and generation.
    pub fn agents(&self, project: Option<&ProjectName>, include_ended: bool) -> Result<Vec<AgentRow>> {
        let sql = query(project.is_some(), include_ended);
        let read = |row: &rusqlite::Row<'_>| {
            Ok(AgentRow {
                session: sessions::read(row)?,
                state: maybe_word(row, COLUMN_COUNT)?,
                phase: maybe_word(row, COLUMN_COUNT + 1)?,
                work_phase: maybe_word(row, COLUMN_COUNT + 2)?,
                restarts: whole(row, COLUMN_COUNT + 3)?,
            })
        };
        match project {
            Some(project) => self.rows(words::store::READ_AGENTS, &sql, [Word(project)], read),
            None => self.rows(words::store::READ_AGENTS, &sql, [], read),
        }
    }
}

/// A new session takes the mark `newest` over, so that old generations are never visited.
pub(super) fn query(one_project: bool, include_ended: bool) -> String {
    let mut conditions = Vec::new();
    if one_project {
        conditions.push("s.project = $1");
    }
    if !include_ended {
        conditions.push("s.newest");
    }
    let conditions = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
    format!(
        "SELECT {COLUMNS}, t.state, t.phase, w.phase, s.restarts FROM sessions AS s
         LEFT JOIN tasks AS t ON t.project = s.project AND t.issue = s.issue
         LEFT JOIN work_states AS w ON w.identity = s.identity
         WHERE {conditions} ORDER BY s.project, s.identity, s.generation"
    )
}
