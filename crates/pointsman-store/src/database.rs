//! Opening a database file: safe settings, and its schema brought up to date.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Error, failed_to};

/// How long we wait for another process's transaction; ours take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// More than the number of different statements, so that none is ever compiled twice.
const STATEMENTS: usize = 64;
/// After a burst the write-ahead log is cut back to this many bytes.
const WAL_KEPT: u32 = 16 * 1024 * 1024;

/// Opens for reading and writing; makes the file and applies missing migrations.
/// `migrations[n]` brings version `n` to `n + 1`.
pub(crate) fn open(path: &Path, migrations: &[&str]) -> Result<Connection, Error> {
    create_private(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(failed_to("open the database"))?;
    prepare(&connection)?;
    use_wal(&connection)?;
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = {WAL_KEPT};"
        ))
        .map_err(failed_to("set up the database"))?;
    migrate(&mut connection, path, migrations)?;
    Ok(connection)
}

/// Opens for reading only, beside a writer or after one was killed.
pub(crate) fn open_read_only(path: &Path, migrations: &[&str]) -> Result<Connection, Error> {
    let missing = || Error::Missing { path: path.to_owned() };
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(missing()),
        Err(source) => return Err(Error::File { path: path.to_owned(), source }),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed_to("open the database"))?;
    prepare(&connection)?;
    let (found, known) = (version(&connection)?, latest(migrations));
    match found {
        // The file was made, but its first migration is not committed: as good as none.
        0 => Err(missing()),
        found if found > known => Err(Error::TooNew { path: path.to_owned(), found, known }),
        found if found < known => Err(Error::TooOld { path: path.to_owned(), found, known }),
        _ => Ok(connection),
    }
}

/// Issues, logs and agents' words are nobody else's business. SQLite gives its log files the
/// same mode.
fn create_private(path: &Path) -> Result<(), Error> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(source) => Err(Error::File { path: path.to_owned(), source }),
    }
}

fn prepare(connection: &Connection) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed_to("set up the database"))
}

/// The mode is kept in the file; asking for it again would need a lock each time.
fn use_wal(connection: &Connection) -> Result<(), Error> {
    let failed = failed_to("switch the database to write-ahead logging");
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(&failed)?;
    if mode == "wal" {
        return Ok(());
    }
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(&failed)?;
    if mode == "wal" {
        Ok(())
    } else {
        Err(Error::Invalid { what: "this file system allows no WAL database" })
    }
}

fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), Error> {
    let known = latest(migrations);
    if version(connection)? == known {
        return Ok(());
    }
    let failed = failed_to("migrate the database");
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    // Another process may have migrated while we waited for the lock.
    let found = version(&transaction)?;
    if found > known {
        return Err(Error::TooNew { path: path.to_owned(), found, known });
    }
    let done =
        usize::try_from(found).map_err(|_| Error::Invalid { what: "a database of negative version" })?;
    for migration in &migrations[done..] {
        transaction.execute_batch(migration).map_err(&failed)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(&failed)?;
    transaction.commit().map_err(failed)
}

fn version(connection: &Connection) -> Result<i64, Error> {
    connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed_to("read the database's version"))
}

fn latest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}
