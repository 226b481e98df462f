//! Where each identity is in its work: the truth behind the files that show it.

use pointsman_core::ids::ProjectName;
use pointsman_core::session::work::WorkState;
use pointsman_core::time::Timestamp;
use rusqlite::{Connection, params};

use super::Store;
use crate::Result;
use crate::column::{Json, Whole, Word, json};
use crate::error::failed_to;

impl Store {
    /// Where an identity (`dev-shop-3`) is in its work, whichever of its sessions said so last.
    pub fn work_state(&self, identity: &str) -> Result<Option<WorkState>> {
        const SQL: &str = "SELECT state FROM work_states WHERE identity = $1";
        let rows = self.rows("read a work state", SQL, [identity], |row| json(row, "state"))?;
        Ok(rows.into_iter().next())
    }

    /// Writes a work state in place of the identity's earlier one. One that belongs to an event is
    /// written with it, by [`Store::commit`].
    pub fn put_work_state(
        &mut self,
        state: &WorkState,
        project: &ProjectName,
        issue: Option<u64>,
        session: Option<&str>,
        at: Timestamp,
    ) -> Result<()> {
        put(&self.connection, state, project, issue, session, at)
    }
}

pub(super) fn put(
    connection: &Connection,
    state: &WorkState,
    project: &ProjectName,
    issue: Option<u64>,
    session: Option<&str>,
    at: Timestamp,
) -> Result<()> {
    const SQL: &str = "INSERT INTO work_states (identity, project, issue, session, phase, state, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (identity) DO UPDATE SET project = excluded.project, issue = excluded.issue,
            session = excluded.session, phase = excluded.phase, state = excluded.state,
            updated_at = excluded.updated_at";
    let run = || {
        connection.prepare_cached(SQL)?.execute(params![
            state.identity_name,
            Word(project),
            issue.map(Whole),
            session,
            Word(state.work_phase),
            Json(state),
            at.0
        ])
    };
    run().map(|_| ()).map_err(failed_to("write a work state"))
}
