//! The database of the embedded forge: one project's issues, pull requests, checks and board as plain rows.
//!
//! Not here: git (the forge's adapter adds where a branch stands), and rules (who may approve,
//! what may land). The daemon and the command line may both have it open: every write takes the
//! database's write lock first and waits for its turn.

mod board;
mod issues;
mod pull_requests;

use std::path::Path;

use pointsman_core::ids::Number;
use pointsman_core::words;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::column::{Whole, whole};
use crate::error::{Error, failed_to};
use crate::{Result, database};

const MIGRATIONS: [&str; 2] =
    [include_str!("../migrations/forge/0001_begin.sql"), include_str!("../migrations/forge/0002_board.sql")];

/// One project's embedded forge on disk.
#[derive(Debug)]
pub struct ForgeDatabase {
    connection: Connection,
}

impl ForgeDatabase {
    /// Opens it; makes and migrates the file.
    pub fn open(path: &Path) -> Result<Self> {
        database::open(path, &MIGRATIONS).map(|connection| Self { connection })
    }

    /// Opens it for reading only; a missing or older file is an error.
    pub fn open_read_only(path: &Path) -> Result<Self> {
        database::open_read_only(path, &MIGRATIONS).map(|connection| Self { connection })
    }

    fn begin(&mut self, operation: &'static str) -> Result<Transaction<'_>> {
        self.connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed_to(operation))
    }
}

/// Issues and pull requests take their numbers here.
fn next_number(connection: &Connection, kind: &'static str) -> Result<Number> {
    let run = || {
        let sql = "INSERT INTO numbers (kind) VALUES ($1) RETURNING number";
        connection.prepare_cached(sql)?.query_row([kind], |row| whole(row, 0))
    };
    run().map_err(failed_to(words::store::ASSIGN_NUMBER))
}

/// Makes sure that `table` (one of ours) holds this number.
fn require(connection: &Connection, table: &'static str, what: &'static str, number: Number) -> Result<()> {
    let sql = format!("SELECT number FROM {table} WHERE number = $1");
    let run = || connection.prepare_cached(&sql)?.query_row([Whole(number)], |_| Ok(())).optional();
    match run().map_err(failed_to(words::store::FIND_NUMBER))? {
        Some(()) => Ok(()),
        None => Err(Error::NotFound { what: format!("{what} #{number}") }),
    }
}
