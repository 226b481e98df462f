//! The log: appended to by [`Store::commit`], never changed.

use std::collections::BTreeSet;

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::position::Cursor;
use pointsman_core::signal::Signal;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Row, params, params_from_iter};
use serde::Serialize;
use serde_json::Value;

use super::Store;
use crate::Result;
use crate::column::{Whole, Word, json, maybe_whole, maybe_word, time, whole};
use crate::error::{Error, failed_to};

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventRow {
    /// Its number; grows, never reused.
    pub seq: i64,
    /// Its number among the events of its project, without gaps; events of no project are counted together.
    pub project_seq: i64,
    pub at: Timestamp,
    /// What, as a short name.
    pub kind: String,
    pub project: Option<ProjectName>,
    pub issue: Option<u64>,
    pub session: Option<String>,
    pub data: Value,
}

/// The events to read. The default is the first [`EventFilter::PAGE`] of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventFilter {
    /// Only those after this one.
    pub since: i64,
    /// Only those after these positions in their projects.
    pub after: Option<Cursor>,
    /// Only of this project.
    pub project: Option<ProjectName>,
    /// Only about this issue.
    pub issue: Option<u64>,
    /// Only of these kinds; all if empty.
    pub kinds: Vec<String>,
    /// At most this many. Go on with `since` at the last one's number.
    pub limit: u32,
    /// If there are more than `limit`, the newest instead of the oldest; still in order.
    pub latest: bool,
}

impl EventFilter {
    /// How many are read at once if nothing else is asked for: a million would not fit a screen
    /// nor, with their logs, the memory.
    pub const PAGE: u32 = 10_000;
}

impl Default for EventFilter {
    fn default() -> Self {
        Self {
            since: 0,
            after: None,
            project: None,
            issue: None,
            kinds: Vec::new(),
            limit: Self::PAGE,
            latest: false,
        }
    }
}

impl Store {
    /// Events in their order.
    pub fn events(&self, filter: &EventFilter) -> Result<Vec<EventRow>> {
        let (sql, values) = query(filter)?;
        let mut events = self.rows(words::store::READ_EVENTS, &sql, params_from_iter(values), read)?;
        if filter.latest {
            events.reverse();
        }
        Ok(events)
    }

    /// Signals in their order: the events whose kind is a signal's name. If the filter names kinds,
    /// those of them that are signals.
    pub fn signals(&self, filter: &EventFilter) -> Result<Vec<EventRow>> {
        let wanted = |signal: &Signal| {
            filter.kinds.is_empty() || filter.kinds.iter().any(|kind| kind == signal.name())
        };
        let kinds: Vec<String> =
            Signal::ALL.into_iter().filter(wanted).map(|signal| signal.name().to_owned()).collect();
        // No kinds at all would mean every event.
        if kinds.is_empty() { Ok(Vec::new()) } else { self.events(&EventFilter { kinds, ..filter.clone() }) }
    }

    /// The positions that belong to an event's number: in each project, that of the last event up to it.
    pub fn cursor_at(&self, seq: i64) -> Result<Cursor> {
        let mut cursor = Cursor::default();
        let last = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
            let found = self.rows(words::store::READ_EVENTS, sql, values, |row| row.get::<_, i64>(0))?;
            Ok::<_, Error>(found.into_iter().next().unwrap_or(0))
        };
        cursor.advance(None, last(LAST_OF_NONE, &[&seq])?);
        // From one project to the next by the index, however many events each has.
        let mut name = String::new();
        loop {
            let next =
                self.rows(words::store::READ_EVENTS, NEXT_PROJECT, [&name], |row| maybe_word(row, 0))?;
            let Some(project) = next.into_iter().next().flatten() else { return Ok(cursor) };
            let project: ProjectName = project;
            cursor.advance(Some(&project), last(LAST_OF_PROJECT, &[&project.as_str(), &seq])?);
            project.as_str().clone_into(&mut name);
        }
    }

    /// The number of events of this kind from a session of a task.
    pub fn count_of_session(&self, task: &TaskKey, session: &str, kind: &str) -> Result<u64> {
        let values = params![Word(&task.project), Whole(task.issue), session, kind];
        let counted = self.rows(words::store::COUNT_EVENTS, COUNT_OF_SESSION, values, |row| whole(row, 0))?;
        Ok(counted.into_iter().next().unwrap_or(0))
    }

    /// A number before that of the first event at or after a time. Numbers grow with time, so it is found by halving
    /// what is left, without an index on times.
    pub fn seq_before(&self, at: Timestamp) -> Result<i64> {
        let (mut below, mut above) = (0, self.last_seq()?);
        while below < above {
            let middle = below + (above - below) / 2;
            let next = self.rows(words::store::READ_EVENTS, NEXT_AT, [middle], |row| time(row, "at"))?;
            match next.first() {
                Some(found) if *found < at => below = middle + 1,
                _ => above = middle,
            }
        }
        Ok(below)
    }

    /// The number of the newest event; 0 if there is none.
    pub fn last_seq(&self) -> Result<i64> {
        self.connection
            .query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))
            .map_err(failed_to(words::store::READ_EVENTS))
    }
}

pub(super) const NEXT_AT: &str = "SELECT at FROM events WHERE seq > $1 ORDER BY seq LIMIT 1";

pub(super) const NEXT_PROJECT: &str = "SELECT min(project) FROM events WHERE project > $1";
pub(super) const LAST_OF_PROJECT: &str =
    "SELECT project_seq FROM events WHERE project = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1";
pub(super) const LAST_OF_NONE: &str =
    "SELECT project_seq FROM events WHERE project IS NULL AND seq <= $1 ORDER BY seq DESC LIMIT 1";

/// A task's history is short enough to be looked through.
pub(super) const COUNT_OF_SESSION: &str =
    "SELECT count(*) FROM events WHERE project = $1 AND issue = $2 AND session = $3 AND kind = $4";

/// Only the conditions that are asked for: "or it is not asked for" would cost the index.
pub(super) fn query(filter: &EventFilter) -> Result<(String, Vec<SqlValue>)> {
    let mut values = vec![SqlValue::Integer(filter.since)];
    let mut place = |value: SqlValue| {
        values.push(value);
        format!("${}", values.len())
    };
    let mut select =
        "SELECT seq, project_seq, at, kind, project, issue, session, data FROM events WHERE seq > $1"
            .to_owned();
    if let Some(project) = &filter.project {
        select += &format!(" AND project = {}", place(project.as_str().to_owned().into()));
    }
    if let Some(after) = &filter.after {
        // One bound for each project that was read, and none for the others. No project has an empty name.
        let mut bounds = String::new();
        for (project, position) in after.positions() {
            let project = project.map_or("", ProjectName::as_str);
            bounds += &format!(" WHEN {} THEN {}", place(project.to_owned().into()), place(position.into()));
        }
        if !bounds.is_empty() {
            select += " AND project_seq > CASE ";
            select += "coalesce(project, '')";
            select += &format!("{bounds} ELSE 0 END");
        }
    }
    if let Some(issue) = filter.issue {
        let issue =
            i64::try_from(issue).map_err(|_| Error::Invalid { what: words::store::ISSUE_TOO_LARGE })?;
        select += &format!(" AND issue = {}", place(issue.into()));
    }
    let kinds: BTreeSet<&String> = filter.kinds.iter().collect();
    let kinds: Vec<String> = kinds.into_iter().map(|kind| place(kind.clone().into())).collect();
    if filter.issue.is_some() && !kinds.is_empty() {
        // A task's history is short enough to be looked through.
        select += &format!(" AND kind IN ({})", kinds.join(", "));
    } else if !kinds.is_empty() {
        // The parts come in order from the index and are merged; a list of kinds would have to be
        // sorted first, however few are asked for.
        let parts: Vec<String> = kinds.iter().map(|kind| format!("{select} AND kind = {kind}")).collect();
        select = parts.join(" UNION ALL ");
    }
    let order = if filter.latest { "DESC" } else { "ASC" };
    let limit = place(i64::from(filter.limit).into());
    Ok((format!("{select} ORDER BY seq {order} LIMIT {limit}"), values))
}

fn read(row: &Row<'_>) -> rusqlite::Result<EventRow> {
    Ok(EventRow {
        seq: row.get("seq")?,
        project_seq: row.get("project_seq")?,
        at: time(row, "at")?,
        kind: row.get("kind")?,
        project: maybe_word(row, "project")?,
        issue: maybe_whole(row, "issue")?,
        session: row.get("session")?,
        data: json(row, "data")?,
    })
}
