//! Whether a project's merge queue is at work, and how far the main branch was audited.

use pointsman_core::ids::{ProjectName, Sha};
pub use pointsman_core::queue::StoppedBy;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use serde::Serialize;

use super::Store;
use super::commit::Draft;
use super::statement::{Statement, values};
use crate::Result;
use crate::column::{Whole, Word, maybe_time, maybe_word, whole};

/// A project's merge queue in front of its main branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QueueRow {
    /// Nothing lands as long as this is set.
    pub stopped: Option<Stopped>,
    /// The commit of the main branch up to which every commit is accounted for.
    pub audited: Option<Sha>,
    /// Commits that came to the main branch past the queue and past any pull request.
    pub direct_merges: u64,
    /// Pull requests that a person merged on the forge.
    pub person_merges: u64,
}

/// A pause of the merge queue, and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stopped {
    pub at: Timestamp,
    pub by: StoppedBy,
    pub reason: String,
}

/// The result of an audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// The commit from which it began; if another audit came first, this one is not counted.
    pub after: Option<Sha>,
    /// The main branch as it was audited.
    pub upto: Sha,
    pub direct: u64,
    /// Pull requests merged by people.
    pub person: u64,
    /// Pause the merge queue for this.
    pub alarm: Option<Stopped>,
}

impl Store {
    /// A project's merge queue; one that nobody ever touched is at work.
    pub fn queue_state(&self, project: &ProjectName) -> Result<QueueRow> {
        let rows = self.rows(
            words::store::READ_QUEUE_STATE,
            "SELECT * FROM lines WHERE project = $1",
            [Word(project)],
            |row| {
                let by: Option<StoppedBy> = maybe_word(row, "stopped_by")?;
                let reason: Option<String> = row.get("stopped_reason")?;
                let stopped = match (maybe_time(row, "stopped_at")?, by, reason) {
                    (Some(at), Some(by), Some(reason)) => Some(Stopped { at, by, reason }),
                    _ => None,
                };
                Ok(QueueRow {
                    stopped,
                    audited: maybe_word(row, "audited")?,
                    direct_merges: whole(row, "direct_merges")?,
                    person_merges: whole(row, "person_merges")?,
                })
            },
        )?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }
}

/// Pauses a merge queue. One that is stopped already keeps its first reason.
pub(super) fn stop(draft: &mut Draft<'_>, project: &ProjectName, stopped: &Stopped) -> Result<()> {
    const SQL: &str = "INSERT INTO lines (project, stopped_at, stopped_by, stopped_reason)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (project) DO UPDATE SET stopped_at = excluded.stopped_at,
            stopped_by = excluded.stopped_by, stopped_reason = excluded.stopped_reason
        WHERE lines.stopped_at IS NULL";
    let values = values![Word(project), stopped.at, Word(stopped.by), &stopped.reason];
    draft.push(Statement::new(words::store::PAUSE_QUEUE, SQL, values));
    Ok(())
}

/// Lets a merge queue go on.
pub(super) fn resume(draft: &mut Draft<'_>, project: &ProjectName) -> Result<()> {
    const SQL: &str = "UPDATE lines SET stopped_at = NULL, stopped_by = NULL, stopped_reason = NULL
        WHERE project = $1 AND stopped_at IS NOT NULL";
    draft.push(Statement::new(words::store::RESUME_QUEUE, SQL, values![Word(project)]));
    Ok(())
}

/// Writes down what an audit found, all of it or nothing: what was counted is not counted again.
pub(super) fn audited(draft: &mut Draft<'_>, project: &ProjectName, audit: &Audit) -> Result<()> {
    const SQL: &str = "INSERT INTO lines (project, audited, direct_merges, person_merges,
            stopped_at, stopped_by, stopped_reason)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        ON CONFLICT (project) DO UPDATE SET audited = excluded.audited,
            direct_merges = lines.direct_merges + excluded.direct_merges,
            person_merges = lines.person_merges + excluded.person_merges,
            stopped_at = COALESCE(lines.stopped_at, excluded.stopped_at),
            stopped_by = CASE WHEN lines.stopped_at IS NULL THEN excluded.stopped_by
                ELSE lines.stopped_by END,
            stopped_reason = CASE WHEN lines.stopped_at IS NULL THEN excluded.stopped_reason
                ELSE lines.stopped_reason END
        WHERE COALESCE(lines.audited, '') = COALESCE($8, '')";
    let alarm = audit.alarm.as_ref();
    let values = values![
        Word(project),
        Word(&audit.upto),
        Whole(audit.direct),
        Whole(audit.person),
        alarm.map(|stopped| stopped.at),
        alarm.map(|stopped| Word(stopped.by)),
        alarm.map(|stopped| &stopped.reason),
        audit.after.as_ref().map(Word),
    ];
    draft.push(Statement::new(words::store::WRITE_AUDIT, SQL, values));
    Ok(())
}
