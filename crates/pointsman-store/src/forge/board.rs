//! The board's own fields of an issue, and what checks say about commits.

use pointsman_core::forge::{BoardStatus, Check, CheckState};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{OptionalExtension, params};

use super::{ForgeDatabase, require};
use crate::Result;
use crate::column::{Whole, Word, word};
use crate::error::failed_to;

impl ForgeDatabase {
    /// The Status and the Agent of an issue on the board. None if nobody set them.
    pub fn board_row(&self, issue: Number) -> Result<Option<(BoardStatus, String)>> {
        let sql = "SELECT status, agent FROM board WHERE issue = $1";
        let run = || {
            self.connection
                .prepare_cached(sql)?
                .query_row([Whole(issue)], |row| Ok((word(row, "status")?, row.get("agent")?)))
                .optional()
        };
        run().map_err(failed_to(words::store::READ_BOARD))
    }

    /// Sets Status and Agent of an issue.
    pub fn set_board_row(&mut self, issue: Number, status: BoardStatus, agent: &str) -> Result<()> {
        const SQL: &str = "INSERT INTO board (issue, status, agent) VALUES ($1, $2, $3)
            ON CONFLICT (issue) DO UPDATE SET status = excluded.status, agent = excluded.agent";
        let failed = failed_to(words::store::CHANGE_BOARD);
        let transaction = self.begin(words::store::CHANGE_BOARD)?;
        require(&transaction, "issues", "issue", issue)?;
        transaction.execute(SQL, params![Whole(issue), Word(status), agent]).map_err(&failed)?;
        transaction.commit().map_err(failed)
    }

    /// The checks of a commit, by name.
    pub fn checks(&self, sha: &Sha) -> Result<Vec<Check>> {
        let sql = "SELECT name, state FROM checks WHERE sha = $1 ORDER BY name";
        let run = || {
            self.connection
                .prepare_cached(sql)?
                .query_map([Word(sha)], |row| {
                    Ok(Check { name: row.get("name")?, state: word(row, "state")?, details: String::new() })
                })?
                .collect::<rusqlite::Result<_>>()
        };
        run().map_err(failed_to(words::store::READ_CHECKS))
    }

    /// Records a check's state for a commit, in place of an earlier one.
    pub fn set_check(&mut self, sha: &Sha, name: &str, state: CheckState, at: Timestamp) -> Result<()> {
        const SQL: &str = "INSERT INTO checks (sha, name, state, at) VALUES ($1, $2, $3, $4)
            ON CONFLICT (sha, name) DO UPDATE SET state = excluded.state, at = excluded.at";
        self.connection
            .execute(SQL, params![Word(sha), name, Word(state), at.0])
            .map(drop)
            .map_err(failed_to(words::store::WRITE_CHECK))
    }
}
