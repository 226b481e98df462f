//! Opening a database file: safe settings, and its schema brought up to date.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::error::{Error, failed_to};

use pointsman_core::words;

/// How long we wait for another process's transaction; ours take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// More than the number of different statements, so that none is ever compiled twice.
const STATEMENTS: usize = 128;
/// After a burst the write-ahead log is cut back to this many bytes.
const WAL_KEPT: u32 = 16 * 1024 * 1024;
/// So many bytes of the file are mapped at most; what lies behind is read.
const MAPPED: i64 = 1 << 30;
/// More threads than will ever make the same database at once, and killed processes with our pid.
const DRAFTS: u32 = 100;

/// Opens for reading and writing; makes the file and applies missing migrations.
/// `migrations[n]` brings version `n` to `n + 1`.
pub(crate) fn open(path: &Path, migrations: &[&str]) -> Result<Connection, Error> {
    if !exists(path)? {
        create(path, migrations)?;
    }
    connect(path, migrations)
}

/// Opens for reading only, beside a writer or after one was killed.
pub(crate) fn open_read_only(path: &Path, migrations: &[&str]) -> Result<Connection, Error> {
    let missing = || Error::Missing { path: path.to_owned() };
    if !exists(path)? {
        return Err(missing());
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(failed_to(words::store::OPEN_DATABASE))?;
    prepare(&connection)?;
    let (found, known) = (version(&connection)?, latest(migrations));
    match found {
        // Somebody made an empty file: as good as none.
        0 => Err(missing()),
        found if found > known => Err(Error::TooNew { path: path.to_owned(), found, known }),
        found if found < known => Err(Error::TooOld { path: path.to_owned(), found, known }),
        _ => Ok(connection),
    }
}

/// The same for a process that reads a little and ends: the file is mapped instead of copied page by page. A disk that
/// fails ends such a process, so it is nothing for a daemon.
pub(crate) fn open_mapped(path: &Path, migrations: &[&str]) -> Result<Connection, Error> {
    let connection = open_read_only(path, migrations)?;
    connection.pragma_update(None, "mmap_size", MAPPED).map_err(failed_to(words::store::SET_UP_DATABASE))?;
    Ok(connection)
}

/// Makes a database that appears whole or not at all: several processes may come first at the
/// same moment, and switching a file to write-ahead logging does not wait for its other users.
fn create(path: &Path, migrations: &[&str]) -> Result<(), Error> {
    let draft = create_draft(path)?;
    let published = connect(&draft, migrations).and_then(|connection| {
        connection.close().map_err(|(_, source)| failed_to(words::store::CLOSE_NEW_DATABASE)(source))?;
        match fs::hard_link(&draft, path) {
            Ok(()) => Ok(()),
            // Another process was faster; its database is as good.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(Error::File { path: path.to_owned(), source }),
        }
    });
    // A draft that stays behind is only litter.
    let _ = fs::remove_file(&draft);
    published
}

/// An empty file beside the database that only its owner may read: issues, logs and agents' words
/// are nobody else's business. SQLite gives its log files the same mode.
pub(crate) fn create_draft(path: &Path) -> Result<PathBuf, Error> {
    for attempt in 0..DRAFTS {
        let mut draft = path.as_os_str().to_owned();
        draft.push(format!(".{}-{attempt}.new", std::process::id()));
        let draft = PathBuf::from(draft);
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft) {
            Ok(_) => return Ok(draft),
            // Left by a killed process, or being written by another thread.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(Error::File { path: draft, source }),
        }
    }
    Err(Error::Invalid { what: words::store::TOO_MANY_DRAFTS })
}

fn exists(path: &Path) -> Result<bool, Error> {
    path.try_exists().map_err(|source| Error::File { path: path.to_owned(), source })
}

fn connect(path: &Path, migrations: &[&str]) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection =
        Connection::open_with_flags(path, flags).map_err(failed_to(words::store::OPEN_DATABASE))?;
    prepare(&connection)?;
    use_wal(&connection)?;
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA journal_size_limit = {WAL_KEPT};"
        ))
        .map_err(failed_to(words::store::SET_UP_DATABASE))?;
    migrate(&mut connection, path, migrations)?;
    Ok(connection)
}

/// Sets what every connection needs.
pub(crate) fn prepare(connection: &Connection) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed_to(words::store::SET_UP_DATABASE))
}

/// The mode is kept in the file; asking for it again would need a lock each time.
fn use_wal(connection: &Connection) -> Result<(), Error> {
    let failed = failed_to(words::store::SWITCH_TO_WAL);
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).map_err(&failed)?;
    if mode == "wal" {
        return Ok(());
    }
    let mode: String =
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(&failed)?;
    if mode == "wal" { Ok(()) } else { Err(Error::Invalid { what: words::store::NO_WAL }) }
}

fn migrate(connection: &mut Connection, path: &Path, migrations: &[&str]) -> Result<(), Error> {
    let known = latest(migrations);
    if version(connection)? == known {
        return Ok(());
    }
    keep_copy(connection, path, known)?;
    let failed = failed_to(words::store::MIGRATE_DATABASE);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
    // Another process may have migrated while we waited for the lock.
    let found = version(&transaction)?;
    if found > known {
        return Err(Error::TooNew { path: path.to_owned(), found, known });
    }
    let done = usize::try_from(found).map_err(|_| Error::Invalid { what: words::store::NEGATIVE_VERSION })?;
    for migration in &migrations[done..] {
        transaction.execute_batch(migration).map_err(&failed)?;
    }
    transaction.pragma_update(None, "user_version", known).map_err(&failed)?;
    transaction.commit().map_err(failed)
}

/// Keeps the database as it is before a newer program changes its form: `pointsman.db.before-8` is what the program before
/// schema 8 can go on with. A copy of an earlier attempt is replaced; it appears whole or not at all.
fn keep_copy(connection: &Connection, path: &Path, known: i64) -> Result<(), Error> {
    let found = version(connection)?;
    if found == 0 || found >= known {
        return Ok(());
    }
    let unkept = |source| Error::File { path: path.to_owned(), source };
    let mut copy = path.as_os_str().to_owned();
    copy.push(format!(".before-{}", found + 1));
    let draft = create_draft(path)?;
    let written = copy_into(connection, &draft)
        .and_then(|()| fs::File::open(&draft).and_then(|file| file.sync_all()).map_err(unkept))
        .and_then(|()| publish_copy(&draft, Path::new(&copy), found));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    sync_directory(path)
}

/// Sees to it that a new name outlives a crash of the machine.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = |source| Error::File { path: path.to_owned(), source };
    fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// Writes a copy of the database into an empty file. The path is given as the bytes that it is: made into text, a name
/// that is not UTF-8 would be another file's, and the copy would stay empty.
pub(crate) fn copy_into(connection: &Connection, draft: &Path) -> Result<(), Error> {
    let name = ToSqlOutput::Borrowed(ValueRef::Text(draft.as_os_str().as_bytes()));
    connection.execute("VACUUM INTO $1", [name]).map(drop).map_err(failed_to(words::store::COPY_DATABASE))
}

/// Gives a copy its name, if it has the form that was to be kept. Another process may have changed the database between
/// the look at its version and the copy. Then that process has kept the right copy, which must not be replaced.
fn publish_copy(draft: &Path, copy: &Path, expected: i64) -> Result<(), Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let copied = Connection::open_with_flags(draft, flags).map_err(failed_to(words::store::COPY_DATABASE))?;
    let moved = match version(&copied)? == expected {
        true => fs::rename(draft, copy),
        false => fs::remove_file(draft),
    };
    moved.map_err(|source| Error::File { path: copy.to_owned(), source })
}

fn version(connection: &Connection) -> Result<i64, Error> {
    connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed_to(words::store::READ_VERSION))
}

fn latest(migrations: &[&str]) -> i64 {
    i64::try_from(migrations.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{open, open_read_only};
    use crate::Error;

    const FIRST: &str = "CREATE TABLE a (x INTEGER PRIMARY KEY);";

    fn version(path: &std::path::Path) -> i64 {
        super::version(&rusqlite::Connection::open(path).unwrap()).unwrap()
    }

    #[test]
    fn a_writer_waits_for_the_disk_and_checks_references() {
        let directory = tempfile::tempdir().unwrap();
        let connection = open(&directory.path().join("a.db"), &[FIRST]).unwrap();
        let pragma = |name: &str| -> i64 {
            connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0)).unwrap()
        };
        assert_eq!(pragma("synchronous"), 2, "FULL");
        assert_eq!(pragma("foreign_keys"), 1);
        assert_eq!(pragma("busy_timeout"), 10_000);
    }

    #[test]
    fn an_older_database_is_migrated_by_a_writer_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        drop(open(&path, &[FIRST]).unwrap());
        let both = [FIRST, "ALTER TABLE a ADD COLUMN y TEXT;"];
        assert!(matches!(open_read_only(&path, &both), Err(Error::TooOld { found: 1, known: 2, .. })));
        open(&path, &both).unwrap().execute("INSERT INTO a (y) VALUES ('z')", []).unwrap();
        assert_eq!(version(&path), 2);
        open_read_only(&path, &both).unwrap();
        assert!(matches!(open(&path, &[FIRST]), Err(Error::TooNew { found: 2, known: 1, .. })));
    }

    #[test]
    fn a_copy_is_kept_before_a_database_changes_its_form() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let connection = open(&path, &[FIRST]).unwrap();
        connection.execute("INSERT INTO a VALUES (7)", []).unwrap();
        // Without a clean end: the last row is in the log only.
        std::mem::forget(connection);
        let both = [FIRST, "ALTER TABLE a ADD COLUMN y TEXT;"];
        drop(open(&path, &both).unwrap());
        let copy = directory.path().join("a.db.before-2");
        let kept = open_read_only(&copy, &[FIRST]).unwrap();
        let row: i64 = kept.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(row, 7);
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&copy).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "nobody else's business");
        let made = std::fs::metadata(&copy).unwrap().modified().unwrap();
        drop(open(&path, &both).unwrap());
        assert_eq!(std::fs::metadata(&copy).unwrap().modified().unwrap(), made, "once");
        let others = std::fs::read_dir(directory.path()).unwrap().filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            name.contains("new").then_some(name)
        });
        assert_eq!(others.count(), 0);
    }

    #[test]
    fn a_copy_is_whole_even_if_the_path_is_not_text() {
        use std::os::unix::ffi::OsStrExt;
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        std::fs::create_dir(&odd).unwrap();
        open(&odd.join("a.db"), &[FIRST]).unwrap().execute("INSERT INTO a VALUES (7)", []).unwrap();
        drop(open(&odd.join("a.db"), &[FIRST, "ALTER TABLE a ADD COLUMN y TEXT;"]).unwrap());
        let kept = open_read_only(&odd.join("a.db.before-2"), &[FIRST]).unwrap();
        let row: i64 = kept.query_row("SELECT x FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(row, 7);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "nothing was written elsewhere");
    }

    #[test]
    fn a_copy_of_what_another_process_has_converted_already_replaces_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let (path, copy) = (directory.path().join("a.db"), directory.path().join("a.db.before-2"));
        drop(open(&path, &[FIRST]).unwrap());
        let both = [FIRST, "ALTER TABLE a ADD COLUMN y TEXT;"];
        let connection = open(&path, &both).unwrap();
        assert_eq!(version(&copy), 1);
        let draft = super::create_draft(&path).unwrap();
        super::copy_into(&connection, &draft).unwrap();
        super::publish_copy(&draft, &copy, 1).unwrap();
        assert_eq!((version(&copy), draft.exists()), (1, false));
    }

    #[test]
    fn a_failing_migration_leaves_the_database_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        drop(open(&path, &[FIRST]).unwrap());
        let broken = [FIRST, "CREATE TABLE b (x INTEGER);", "CREATE TABLE c (x INTEGER); NOT SQL;"];
        assert!(matches!(open(&path, &broken), Err(Error::Sql { .. })));
        assert_eq!(version(&path), 1);
        open(&path, &[FIRST, "CREATE TABLE b (y TEXT);"]).unwrap();
    }

    #[test]
    fn a_database_that_could_not_be_made_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        assert!(open(&directory.path().join("a.db"), &["NOT SQL;"]).is_err());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
