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

    /// The last number and the last comment that were ever given out.
    pub fn newest(&self) -> Result<(Number, u64)> {
        let given = |table: &str| {
            let sql = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = $1";
            self.connection.prepare_cached(sql)?.query_row([table], |row| whole(row, 0))
        };
        let failed = failed_to(words::store::FIND_NUMBER);
        Ok((given("numbers").map_err(&failed)?, given("comments").map_err(&failed)?))
    }

    /// Gives out no number up to this one any more: they mean something elsewhere.
    pub fn skip_numbers(&mut self, upto: Number) -> Result<()> {
        let transaction = self.begin(words::store::ASSIGN_NUMBER)?;
        let run = || {
            let changed = transaction.execute(
                "UPDATE sqlite_sequence SET seq = $1 WHERE name = 'numbers' AND seq < $1",
                [Whole(upto)],
            )?;
            // The row comes with the first number.
            let sql = "INSERT INTO sqlite_sequence (name, seq) SELECT 'numbers', $1
                WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'numbers')";
            if changed == 0 { transaction.execute(sql, [Whole(upto)]).map(drop) } else { Ok(()) }
        };
        run().map_err(failed_to(words::store::ASSIGN_NUMBER))?;
        transaction.commit().map_err(failed_to(words::store::ASSIGN_NUMBER))
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
