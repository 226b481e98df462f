//! The numbers that rows get. The one writer gives them out, so that a commit never has to ask for one.

use std::collections::BTreeMap;

use pointsman_core::ids::ProjectName;
use pointsman_core::words;
use rusqlite::{Connection, params};

use crate::Result;
use crate::column::Word;
use crate::error::failed_to;

/// The next number of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counter(i64);

impl Counter {
    pub(super) fn peek(self) -> i64 {
        self.0
    }

    pub(super) fn take(&mut self) -> i64 {
        let number = self.0;
        self.0 += 1;
        number
    }

    /// Somebody took this one by himself.
    pub(super) fn used(&mut self, number: i64) {
        self.0 = self.0.max(number.saturating_add(1));
    }
}

/// The next number of every kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) commit: Counter,
    pub(super) event: Counter,
    pub(super) effect: Counter,
    pub(super) entry: Counter,
    pub(super) notice: Counter,
    pub(super) delivery: Counter,
    pub(super) reply: Counter,
    pub(super) question: Counter,
    /// Of the projects that something happened in since the store was opened.
    projects: BTreeMap<Option<ProjectName>, Counter>,
}

impl Numbers {
    /// The numbers after those that are on disk.
    pub(super) fn read(connection: &Connection) -> Result<Self> {
        let next = |sql: &str| {
            let highest = connection.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
            highest
                .map(|highest| Counter(highest.unwrap_or(0) + 1))
                .map_err(failed_to(words::store::READ_LAST_NUMBERS))
        };
        Ok(Self {
            commit: next("SELECT max(number) FROM commits")?,
            event: next("SELECT max(seq) FROM events")?,
            effect: next("SELECT max(id) FROM outbox")?,
            entry: next("SELECT max(id) FROM queue")?,
            notice: next("SELECT max(id) FROM notices")?,
            delivery: next("SELECT max(id) FROM deliveries")?,
            reply: next("SELECT max(id) FROM replies")?,
            question: next("SELECT max(id) FROM questions")?,
            projects: BTreeMap::new(),
        })
    }

    /// The number of a project's next event. The first one is looked up: most projects are quiet for long.
    pub(super) fn of_project(
        &mut self,
        connection: &Connection,
        project: Option<&ProjectName>,
    ) -> Result<i64> {
        let key = project.cloned();
        if !self.projects.contains_key(&key) {
            self.projects.insert(key.clone(), Counter(last_of_project(connection, project)? + 1));
        }
        Ok(self.projects.get_mut(&key).map_or(1, Counter::take))
    }
}

/// The number of a project's newest event; 0 without one.
pub(super) fn last_of_project(connection: &Connection, project: Option<&ProjectName>) -> Result<i64> {
    const OF_PROJECT: &str = "SELECT max(project_seq) FROM events WHERE project = $1";
    const OF_NONE: &str = "SELECT max(project_seq) FROM events WHERE project IS NULL";
    let read = |row: &rusqlite::Row<'_>| row.get::<_, Option<i64>>(0);
    let run = || match project {
        Some(project) => connection.prepare_cached(OF_PROJECT)?.query_row(params![Word(project)], read),
        None => connection.prepare_cached(OF_NONE)?.query_row([], read),
    };
    run().map(|last| last.unwrap_or(0)).map_err(failed_to(words::store::READ_EVENTS))
}
