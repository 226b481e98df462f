//! What sessions have spent, by task, by role and by day.
//!
//! A session reports what it has spent since its start. The highest report of each day is kept, so
//! that one that comes twice, or late, or after a restart, counts once; a day's share is what lies
//! above the days before it. Not here: what may be spent (the core's `budget`).

use std::collections::BTreeMap;

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::session::budget::Spent;
use rusqlite::{Row, params};

use super::{Store, sessions};
use crate::Result;
use crate::column::{Whole, Word, maybe_whole};
use crate::error::{Error, failed_to};

impl Store {
    /// Takes a session's report in: what it has spent since its start, as of this day
    /// (`YYYY-MM-DD`). The session's own row follows it.
    pub fn spend(
        &mut self,
        project: &ProjectName,
        issue: Option<u64>,
        session: &str,
        day: &str,
        total: Spent,
    ) -> Result<()> {
        const SQL: &str =
            "INSERT INTO spending (session, day, project, issue, tokens, micro_usd, turns, millis)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (session, day) DO UPDATE SET
                tokens = CASE WHEN excluded.tokens > spending.tokens
                    THEN excluded.tokens ELSE spending.tokens END,
                micro_usd = CASE WHEN excluded.micro_usd > spending.micro_usd
                    THEN excluded.micro_usd ELSE spending.micro_usd END,
                turns = CASE WHEN excluded.turns > spending.turns
                    THEN excluded.turns ELSE spending.turns END,
                millis = CASE WHEN excluded.millis > spending.millis
                    THEN excluded.millis ELSE spending.millis END";
        check_day(day)?;
        let failed = failed_to("record what was spent");
        let transaction = self.begin("record what was spent")?;
        let run = || {
            transaction.prepare_cached(SQL)?.execute(params![
                session,
                day,
                Word(project),
                issue.map(Whole),
                Whole(total.tokens),
                Whole(total.micro_usd),
                Whole(total.turns),
                Whole(total.millis)
            ])
        };
        run().map_err(&failed)?;
        sessions::measured(&transaction, session, None, Some(total))?;
        transaction.commit().map_err(failed)
    }

    /// What all sessions of a task have spent together.
    pub fn spent_on_task(&self, task: &TaskKey) -> Result<Spent> {
        let totals =
            self.rows("read what was spent", TASK, params![Word(&task.project), Whole(task.issue)], |row| {
                spent(row, 0)
            })?;
        Ok(totals.into_iter().fold(Spent::default(), Spent::plus))
    }

    /// What was spent on a day, by a project or by all together.
    pub fn spent_on_day(&self, project: Option<&ProjectName>, day: &str) -> Result<Spent> {
        let shares = self.shares(project, day)?;
        Ok(shares.into_iter().fold(Spent::default(), |sum, (_, share)| sum.plus(share)))
    }

    /// What was spent on a day, by role. A session that was never registered has none and is left
    /// out.
    pub fn spent_by_role_on_day(
        &self,
        project: Option<&ProjectName>,
        day: &str,
    ) -> Result<BTreeMap<String, Spent>> {
        let mut roles: BTreeMap<String, Spent> = BTreeMap::new();
        for (role, share) in self.shares(project, day)? {
            if let Some(role) = role {
                let sum = roles.entry(role).or_default();
                *sum = sum.plus(share);
            }
        }
        Ok(roles)
    }

    /// Each session's share of the day, with its role.
    fn shares(&self, project: Option<&ProjectName>, day: &str) -> Result<Vec<(Option<String>, Spent)>> {
        check_day(day)?;
        let sql = day_query(project.is_some());
        let read = |row: &Row<'_>| Ok((row.get(0)?, share(spent(row, 1)?, spent(row, 5)?)));
        match project {
            Some(project) => self.rows("read what was spent", &sql, params![day, Word(project)], read),
            None => self.rows("read what was spent", &sql, [day], read),
        }
    }
}

/// A session's total is its highest report of any day.
pub(super) const TASK: &str = "SELECT max(tokens), max(micro_usd), max(turns), max(millis) FROM spending
    WHERE project = $1 AND issue = $2 GROUP BY session";

pub(super) fn day_query(one_project: bool) -> String {
    let project = if one_project { "AND d.project = $2" } else { "" };
    format!(
        "SELECT s.role, d.tokens, d.micro_usd, d.turns, d.millis,
             max(e.tokens), max(e.micro_usd), max(e.turns), max(e.millis)
         FROM spending AS d
         LEFT JOIN spending AS e ON e.session = d.session AND e.day < d.day
         LEFT JOIN sessions AS s ON s.session = d.session
         WHERE d.day = $1 {project}
         GROUP BY d.session, d.day, s.session"
    )
}

/// What a day adds. If the clock was set back over midnight, the earlier day has more: then nothing.
fn share(total: Spent, before: Spent) -> Spent {
    Spent {
        tokens: total.tokens.saturating_sub(before.tokens),
        micro_usd: total.micro_usd.saturating_sub(before.micro_usd),
        turns: total.turns.saturating_sub(before.turns),
        millis: total.millis.saturating_sub(before.millis),
    }
}

/// Four columns from this one on; an empty one is nothing spent.
fn spent(row: &Row<'_>, first: usize) -> rusqlite::Result<Spent> {
    let part = |place: usize| maybe_whole(row, first + place).map(Option::unwrap_or_default);
    Ok(Spent { tokens: part(0)?, micro_usd: part(1)?, turns: part(2)?, millis: part(3)? })
}

/// Days are compared as text, which is right for this form only.
fn check_day(day: &str) -> Result<()> {
    let right = day.len() == 10
        && day.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if right { Ok(()) } else { Err(Error::Invalid { what: "a day that is not written YYYY-MM-DD" }) }
}
