//! The verdicts of gates on commits and trees, so that nothing is tested twice.

use std::path::PathBuf;

use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::params;
use serde_json::Value;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Json, Whole, Word, json, maybe_whole, maybe_word, time};

/// A remembered verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerdictRow {
    /// The verdict, as whoever gave it writes it.
    pub verdict: Value,
    pub log_path: Option<PathBuf>,
    pub at: Timestamp,
    /// How long the last run took, in milliseconds.
    pub took_ms: Option<u64>,
}

impl Store {
    /// The last verdict of this gate on this commit or tree.
    pub fn verdict(&self, project: &ProjectName, object: &Sha, gate: &str) -> Result<Option<VerdictRow>> {
        const SQL: &str = "SELECT verdict, log_path, at, took_ms FROM verdicts
            WHERE project = $1 AND object = $2 AND gate = $3";
        let rows =
            self.rows(words::store::READ_VERDICT, SQL, params![Word(project), Word(object), gate], |row| {
                Ok(VerdictRow {
                    verdict: json(row, "verdict")?,
                    log_path: maybe_word(row, "log_path")?,
                    at: time(row, "at")?,
                    took_ms: maybe_whole(row, "took_ms")?,
                })
            })?;
        Ok(rows.into_iter().next())
    }

    /// The time the gate took lately, in milliseconds: the middle of its last runs.
    pub fn gate_pace(&self, project: &ProjectName, gate: &str) -> Result<Option<u64>> {
        const SQL: &str = "SELECT took_ms FROM verdicts
            WHERE project = $1 AND gate = $2 AND took_ms IS NOT NULL ORDER BY at DESC LIMIT 9";
        let mut took: Vec<u64> =
            self.rows(words::store::READ_GATE_TIMES, SQL, params![Word(project), gate], |row| {
                maybe_whole(row, "took_ms").map(Option::unwrap_or_default)
            })?;
        took.sort_unstable();
        Ok(took.get(took.len() / 2).copied())
    }
}

/// Remembers a verdict in place of an earlier one.
pub(super) fn remember(
    draft: &mut Draft<'_>,
    project: &ProjectName,
    object: &Sha,
    gate: &str,
    verdict: &VerdictRow,
) -> Result<()> {
    const SQL: &str = "INSERT INTO verdicts (project, object, gate, verdict, log_path, at, took_ms)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (project, object, gate) DO UPDATE
        SET verdict = excluded.verdict, log_path = excluded.log_path, at = excluded.at,
            took_ms = excluded.took_ms";
    let values = values![
        Word(project),
        Word(object),
        gate,
        Json(&verdict.verdict),
        verdict.log_path.as_ref().map(Word),
        verdict.at,
        verdict.took_ms.map(Whole)
    ];
    draft.push(Statement::new(words::store::REMEMBER_VERDICT, SQL, values));
    Ok(())
}
