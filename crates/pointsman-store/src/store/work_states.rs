//! The work state of each identity: the truth behind the files that show it.

use pointsman_core::ids::ProjectName;
use pointsman_core::session::work::WorkState;
use pointsman_core::snapshot::{Kind, Snapshot as _, Unreadable};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::Row;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::column::{Json, Whole, Word, word};
use crate::{Error, Result};

impl Store {
    /// The work state of an identity (`dev-shop-3`), whichever of its sessions said so last.
    pub fn work_state(&self, identity: &str) -> Result<Option<WorkState>> {
        const SQL: &str =
            "SELECT project, identity, 1 AS version, state FROM work_states WHERE identity = $1";
        let read = |row: &Row<'_>| Ok((word(row, "project")?, row.get::<_, String>("state")?));
        let rows = self.rows(words::store::READ_WORK_STATE, SQL, [identity], read)?;
        let Some((project, text)) = rows.into_iter().next() else { return Ok(None) };
        let (what, name) = (Kind::WorkState, identity.to_owned());
        let state = WorkState::read(1, &text).map_err(|why| {
            Error::Unreadable(Box::new(Unreadable { what, project, name, version: 1, why }))
        })?;
        Ok(Some(state))
    }

    pub(super) fn unreadable_work_states(&self) -> Result<Vec<Unreadable>> {
        const SQL: &str = "SELECT project, identity, 1 AS version, state FROM work_states";
        self.unreadable_rows(Kind::WorkState, SQL, |_, version, text| {
            WorkState::read(version, text).map(drop)
        })
    }
}

/// Writes a work state in place of the identity's earlier one.
pub(super) fn put(
    draft: &mut Draft<'_>,
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
    let values = values![
        &state.identity_name,
        Word(project),
        issue.map(Whole),
        session,
        Word(state.work_phase),
        Json(state),
        at
    ];
    draft.push(Statement::new(words::store::WRITE_WORK_STATE, SQL, values));
    Ok(())
}
