//! The spending of sessions, by task, by role and by day.
//!
//! A session reports what it has spent since its start. The highest report of each day is kept, so
//! that one that comes twice, or late, or after a restart, counts once; a day's share is what lies
//! above the days before it. Wall time and restarts nobody reports: the sessions table has them. Not
//! here: what may be spent (the core's `budget`).

use std::collections::BTreeMap;

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::task::{Exit, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Row, params};

use super::commit::Draft;
use super::statement::{Statement, values};
use super::{Store, sessions};
use crate::Result;
use crate::column::{Whole, Word, maybe_time, maybe_whole, maybe_word, time, whole};
use crate::error::Error;

/// A session's report of its spending since its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingReport {
    pub project: ProjectName,
    /// The issue that it works on, or that its pull request is for.
    pub issue: Option<u64>,
    pub session: String,
    /// `YYYY-MM-DD`
    pub day: String,
    pub total: Spent,
}

/// What was spent by each role. A session that was never registered has none.
type ByRole = Vec<(Option<Role>, Spent)>;

impl Store {
    /// The amount that all sessions of a task have spent together, as of now. Reviews of it are not the task's own.
    pub fn spent_on_task(&self, task: &TaskKey, now: Timestamp) -> Result<Spent> {
        let mut parts = self.issue_parts(task, now)?;
        parts.retain(|(role, _)| role.is_none_or(|role| role == Task::ROLE));
        Ok(sum(parts))
    }

    /// The amount that was ever spent about an issue, by all roles together, as of now.
    pub fn spent_on_issue(&self, task: &TaskKey, now: Timestamp) -> Result<Spent> {
        Ok(sum(self.issue_parts(task, now)?))
    }

    /// The amount that was ever spent about an issue, by role.
    pub fn spent_by_role_on_issue(&self, task: &TaskKey, now: Timestamp) -> Result<BTreeMap<Role, Spent>> {
        Ok(by_role(self.issue_parts(task, now)?))
    }

    /// The amount spent on a day, by a project or by all together, as of now.
    pub fn spent_on_day(&self, project: Option<&ProjectName>, day: &str, now: Timestamp) -> Result<Spent> {
        Ok(sum(self.day_parts(project, day, now)?))
    }

    /// The amount spent on a day, by role. A session that was never registered has none and is left
    /// out.
    pub fn spent_by_role_on_day(
        &self,
        project: Option<&ProjectName>,
        day: &str,
        now: Timestamp,
    ) -> Result<BTreeMap<Role, Spent>> {
        Ok(by_role(self.day_parts(project, day, now)?))
    }

    fn issue_parts(&self, task: &TaskKey, now: Timestamp) -> Result<ByRole> {
        let values = params![Word(&task.project), Whole(task.issue)];
        let read = |row: &Row<'_>| Ok((maybe_word(row, 0)?, spent(row, 1)?));
        let mut parts = self.rows(words::store::READ_SPENDING, ISSUE, values, read)?;
        parts.extend(self.rows(words::store::READ_SESSION_TIMES, RAN_ON_ISSUE, values, |row| {
            ran(row, Span::ALWAYS, now)
        })?);
        Ok(parts)
    }

    fn day_parts(&self, project: Option<&ProjectName>, day: &str, now: Timestamp) -> Result<ByRole> {
        let span = Span::of_day(day)?;
        let (reported, times) = (day_query(project.is_some()), ran_query(project.is_some()));
        // If the clock was set back over midnight, the earlier day has more: then this one adds nothing.
        let read = |row: &Row<'_>| {
            let (total, before) = (spent(row, 1)?, spent(row, 1 + SPENT_COLUMNS)?);
            Ok((maybe_word(row, 0)?, total.reported_since(before)))
        };
        let read_times = |row: &Row<'_>| ran(row, span, now);
        let (what, times_what) = (words::store::READ_SPENDING, words::store::READ_SESSION_TIMES);
        let (mut parts, more) = match project {
            Some(project) => (
                self.rows(what, &reported, params![day, Word(project)], read)?,
                self.rows(times_what, &times, params![Word(project), span.begins], read_times)?,
            ),
            None => (
                self.rows(what, &reported, [day], read)?,
                self.rows(times_what, &times, [span.begins], read_times)?,
            ),
        };
        parts.extend(more);
        Ok(parts)
    }
}

/// Takes a session's report in: what it has spent since its start, as of this day (`YYYY-MM-DD`). The session's own row
/// follows it. Wall time and restarts are not taken from it.
pub(super) fn spend(draft: &mut Draft<'_>, report: &SpendingReport) -> Result<()> {
    const SQL: &str = "INSERT INTO spending (session, day, project, issue, tokens, micro_usd, turns,
            input_tokens, cache_writes, cache_reads, output_tokens)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (session, day) DO UPDATE SET
            issue = coalesce(excluded.issue, spending.issue),
            tokens = CASE WHEN excluded.tokens > spending.tokens
                THEN excluded.tokens ELSE spending.tokens END,
            micro_usd = CASE WHEN excluded.micro_usd > spending.micro_usd
                THEN excluded.micro_usd ELSE spending.micro_usd END,
            turns = CASE WHEN excluded.turns > spending.turns
                THEN excluded.turns ELSE spending.turns END,
            input_tokens = CASE WHEN excluded.input_tokens > spending.input_tokens
                THEN excluded.input_tokens ELSE spending.input_tokens END,
            cache_writes = CASE WHEN excluded.cache_writes > spending.cache_writes
                THEN excluded.cache_writes ELSE spending.cache_writes END,
            cache_reads = CASE WHEN excluded.cache_reads > spending.cache_reads
                THEN excluded.cache_reads ELSE spending.cache_reads END,
            output_tokens = CASE WHEN excluded.output_tokens > spending.output_tokens
                THEN excluded.output_tokens ELSE spending.output_tokens END";
    Span::of_day(&report.day)?;
    let values = values![
        &report.session,
        &report.day,
        Word(&report.project),
        report.issue.map(Whole),
        Whole(report.total.tokens),
        Whole(report.total.micro_usd),
        Whole(report.total.turns),
        Whole(report.total.classes.input),
        Whole(report.total.classes.cache_writes),
        Whole(report.total.classes.cache_reads),
        Whole(report.total.classes.output)
    ];
    draft.push(Statement::new(words::store::RECORD_SPENDING, SQL, values));
    sessions::measured(draft, &report.session, None, Some(report.total))
}

/// The columns of one amount, in the order of [`spent`].
const SPENT_COLUMNS: usize = 7;

/// A session's total is its highest report of any day.
pub(super) const ISSUE: &str = "SELECT s.role, max(d.tokens), max(d.micro_usd), max(d.turns),
        max(d.input_tokens), max(d.cache_writes), max(d.cache_reads), max(d.output_tokens)
    FROM spending AS d LEFT JOIN sessions AS s ON s.session = d.session
    WHERE d.project = $1 AND d.issue = $2 GROUP BY d.session";

pub(super) fn day_query(one_project: bool) -> String {
    let project = if one_project { "AND d.project = $2" } else { "" };
    format!(
        "SELECT s.role, d.tokens, d.micro_usd, d.turns,
             d.input_tokens, d.cache_writes, d.cache_reads, d.output_tokens,
             max(e.tokens), max(e.micro_usd), max(e.turns),
             max(e.input_tokens), max(e.cache_writes), max(e.cache_reads), max(e.output_tokens)
         FROM spending AS d
         LEFT JOIN spending AS e ON e.session = d.session AND e.day < d.day
         LEFT JOIN sessions AS s ON s.session = d.session
         WHERE d.day = $1 {project}
         GROUP BY d.session, d.day, s.session"
    )
}

pub(super) const RAN_ON_ISSUE: &str = "SELECT s.role, s.created_at, s.ended_at, p.exit,
        s.tokens, s.micro_usd FROM sessions AS s
    LEFT JOIN sessions AS p ON p.session = s.predecessor WHERE s.project = $1 AND s.issue = $2";

/// Sessions that had not ended before a point in time: two reads of one index, which OR would not be.
pub(super) fn ran_query(one_project: bool) -> String {
    // Parameters are counted in the order in which they first stand in the text.
    let project = if one_project { "s.project = $1 AND" } else { "" };
    let select = |when: &str| {
        format!(
            "SELECT s.role, s.created_at, s.ended_at, p.exit, s.tokens, s.micro_usd FROM sessions AS s
             LEFT JOIN sessions AS p ON p.session = s.predecessor WHERE {project} {when}"
        )
    };
    format!("{} UNION ALL {}", select("s.ended_at IS NULL"), select("s.ended_at > $2"))
}

fn sum(parts: ByRole) -> Spent {
    parts.into_iter().fold(Spent::default(), |sum, (_, part)| sum.plus(part))
}

fn by_role(parts: ByRole) -> BTreeMap<Role, Spent> {
    let mut roles: BTreeMap<Role, Spent> = BTreeMap::new();
    for (role, part) in parts {
        if let Some(role) = role {
            let sum = roles.entry(role).or_default();
            *sum = sum.plus(part);
        }
    }
    roles
}

/// Columns from this one on; an empty one is nothing spent.
fn spent(row: &Row<'_>, first: usize) -> rusqlite::Result<Spent> {
    let part = |place: usize| maybe_whole(row, first + place).map(Option::unwrap_or_default);
    let classes =
        TokenClasses { input: part(3)?, cache_writes: part(4)?, cache_reads: part(5)?, output: part(6)? };
    Ok(Spent { tokens: part(0)?, classes, micro_usd: part(1)?, turns: part(2)?, ..Spent::default() })
}

/// The share of a span in a session's life. A session belongs to the restarts of the span it began in.
fn ran(row: &Row<'_>, span: Span, now: Timestamp) -> rusqlite::Result<(Option<Role>, Spent)> {
    let (begun, ended) = (time(row, 1)?, maybe_time(row, 2)?.unwrap_or(now));
    let millis = ended.0.min(span.ends).saturating_sub(begun.0.max(span.begins));
    let followed: Option<Exit> = maybe_word(row, 3)?;
    let restart = followed.is_some_and(|exit| Exit::UNEXPECTED.contains(&exit))
        && (span.begins..span.ends).contains(&begun.0);
    let millis = u64::try_from(millis).unwrap_or(0);
    let reported = whole(row, 4)? > 0 || whole(row, 5)? > 0;
    let unreported_millis = if reported { 0 } else { millis };
    let spent = Spent { restarts: restart.into(), millis, unreported_millis, ..Spent::default() };
    Ok((maybe_word(row, 0)?, spent))
}

/// From when to when, in milliseconds since the epoch.
#[derive(Clone, Copy)]
struct Span {
    begins: i64,
    ends: i64,
}

impl Span {
    const ALWAYS: Self = Self { begins: i64::MIN, ends: i64::MAX };

    /// Days are compared as text, which is right for this form only: `2026-03-02`.
    fn of_day(day: &str) -> Result<Self> {
        const LENGTH: i64 = 24 * 60 * 60 * 1000;
        let right = day.len() == 10
            && day.bytes().enumerate().all(|(place, byte)| match place {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !right {
            return Err(Error::Invalid { what: words::store::NOT_A_DAY });
        }
        let number = |from: usize, to: usize| day[from..to].parse::<i64>().unwrap_or(0);
        let begins = days_since_1970(number(0, 4), number(5, 7), number(8, 10)) * LENGTH;
        Ok(Self { begins, ends: begins + LENGTH })
    }
}

/// The calendar counted from March, so that the leap day is the last of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (since_march * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn days_begin_when_the_calendar_says() {
        let cases =
            [("1970-01-01", 0), ("2000-02-29", 11_016), ("2023-11-14", 19_675), ("2026-03-02", 20_514)];
        for (day, number) in cases {
            assert_eq!(Span::of_day(day).unwrap().begins, number * 86_400_000, "{day}");
        }
    }
}
