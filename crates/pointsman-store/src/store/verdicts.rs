//! What a gate said about a commit or a tree, so that nothing is tested twice.

use std::path::PathBuf;

use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::time::Timestamp;
use rusqlite::params;
use serde_json::Value;

use super::Store;
use crate::Result;
use crate::column::{Json, Word, json, maybe_word, time};

/// A remembered verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictRow {
    /// The verdict, as whoever gave it writes it.
    pub verdict: Value,
    /// Where the log is.
    pub log_path: Option<PathBuf>,
    /// When.
    pub at: Timestamp,
}

impl Store {
    /// What this gate last said about this commit or tree.
    pub fn verdict(&self, project: &ProjectName, object: &Sha, gate: &str) -> Result<Option<VerdictRow>> {
        const SQL: &str = "SELECT verdict, log_path, at FROM verdicts
            WHERE project = $1 AND object = $2 AND gate = $3";
        let rows = self.rows("read a verdict", SQL, params![Word(project), Word(object), gate], |row| {
            Ok(VerdictRow {
                verdict: json(row, "verdict")?,
                log_path: maybe_word(row, "log_path")?,
                at: time(row, "at")?,
            })
        })?;
        Ok(rows.into_iter().next())
    }

    /// Remembers a verdict in place of an earlier one.
    pub fn remember_verdict(
        &mut self,
        project: &ProjectName,
        object: &Sha,
        gate: &str,
        verdict: &VerdictRow,
    ) -> Result<()> {
        const SQL: &str = "INSERT INTO verdicts (project, object, gate, verdict, log_path, at)
            VALUES ($1, $2, $3, $4, $5, $6)
            ON CONFLICT (project, object, gate) DO UPDATE
            SET verdict = excluded.verdict, log_path = excluded.log_path, at = excluded.at";
        let log_path = verdict.log_path.as_ref().map(Word);
        self.execute(
            "remember a verdict",
            SQL,
            params![Word(project), Word(object), gate, Json(&verdict.verdict), log_path, verdict.at.0],
        )
        .map(|_| ())
    }
}
