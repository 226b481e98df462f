//! Copies of several databases in one file. The file is an SQLite archive, so `sqlite3 FILE -A` lists and extracts it too.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use crate::database::{copy_into, create_draft, prepare, sync_directory};
use crate::error::{Error, failed_to};

/// The mode of a file in the archive: a regular one that its owner reads and writes.
const MODE: i64 = 0o100_600;

/// A database to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its place below the state directory.
    pub name: String,
    pub path: PathBuf,
}

/// The content of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub made_at: Timestamp,
    pub databases: Vec<Copied>,
}

/// A database in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copied {
    pub name: String,
    pub bytes: u64,
}

/// Copies these databases into a new file, beside whoever writes them. A file that is there is never replaced, and the
/// new one appears whole or not at all.
pub fn make(file: &Path, sources: &[Source], made_at: Timestamp) -> Result<Backup, Error> {
    let draft = Draft(create_draft(file)?);
    let databases = fill(&draft.0, sources, made_at)?;
    let failed = |source| Error::File { path: file.to_owned(), source };
    fs::File::open(&draft.0).and_then(|file| file.sync_all()).map_err(failed)?;
    fs::hard_link(&draft.0, file).map_err(failed)?;
    sync_directory(file)?;
    Ok(Backup { made_at, databases })
}

/// Reads what a backup holds.
pub fn read(file: &Path) -> Result<Backup, Error> {
    let connection = open_read_only(file)?;
    let failed = failed_to(words::store::READ_BACKUP);
    let made_at: i64 = connection
        .query_row("SELECT made_at FROM pointsman_backup", [], |row| row.get(0))
        .map_err(&failed)?;
    let mut statement = connection.prepare("SELECT name, sz FROM sqlar ORDER BY name").map_err(&failed)?;
    let rows = statement
        .query_map([], |row| Ok(Copied { name: row.get(0)?, bytes: row.get::<_, i64>(1)?.unsigned_abs() }));
    let databases = rows.and_then(Iterator::collect).map_err(&failed)?;
    Ok(Backup { made_at: Timestamp(made_at), databases })
}

/// Puts a database of a backup in its place. What is there is kept beside it, with its log files; nothing is moved before the
/// copy was found whole. Answers where it is kept. Nobody may have the database open.
pub fn restore(file: &Path, name: &str, place: &Path, at: Timestamp) -> Result<Option<PathBuf>, Error> {
    let failed = failed_to(words::store::READ_BACKUP);
    let draft = Draft(create_draft(place)?);
    let archive = open_read_only(file)?;
    let row: i64 = archive
        .query_row("SELECT rowid FROM sqlar WHERE name = $1", [name], |row| row.get(0))
        .map_err(&failed)?;
    let mut blob = archive.blob_open(MAIN_DB, "sqlar", "data", row, true).map_err(&failed)?;
    let unwritten = |source| Error::File { path: place.to_owned(), source };
    let mut copy = fs::OpenOptions::new().write(true).open(&draft.0).map_err(unwritten)?;
    std::io::copy(&mut blob, &mut copy).and_then(|_| copy.sync_all()).map_err(unwritten)?;
    drop((blob, copy));
    let health: String = open_read_only(&draft.0)?
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(&failed)?;
    if health != "ok" {
        return Err(Error::Invalid { what: words::store::DAMAGED_BACKUP });
    }
    let beside = |path: &Path, ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let kept = beside(place, &format!(".before-restore-{}", at.0 / 1000));
    // The log files first: a database without its log is an older one, a log without its database is nothing.
    let mut moved = None;
    for ending in ["-wal", "-shm", ""] {
        match fs::rename(beside(place, ending), beside(&kept, ending)) {
            Ok(()) if ending.is_empty() => moved = Some(kept.clone()),
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(unwritten(source)),
        }
    }
    fs::hard_link(&draft.0, place).map_err(unwritten)?;
    sync_directory(place)?;
    Ok(moved)
}

/// A file that goes with this value.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        // One that stays behind is only litter.
        let _ = fs::remove_file(&self.0);
    }
}

fn fill(draft: &Path, sources: &[Source], made_at: Timestamp) -> Result<Vec<Copied>, Error> {
    let failed = failed_to(words::store::WRITE_BACKUP);
    let archive = Connection::open_with_flags(draft, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(&failed)?;
    archive
        .execute_batch(
            "BEGIN; \
             CREATE TABLE sqlar (name TEXT PRIMARY KEY, mode INT, mtime INT, sz INT, data BLOB); \
             CREATE TABLE pointsman_backup (made_at INTEGER NOT NULL);",
        )
        .map_err(&failed)?;
    archive.execute("INSERT INTO pointsman_backup VALUES ($1)", [made_at.0]).map_err(&failed)?;
    let copied =
        sources.iter().map(|source| add(&archive, draft, source, made_at)).collect::<Result<_, _>>()?;
    archive.execute_batch("COMMIT").map_err(&failed)?;
    archive.close().map_err(|(_, source)| failed(source))?;
    Ok(copied)
}

fn add(archive: &Connection, draft: &Path, source: &Source, made_at: Timestamp) -> Result<Copied, Error> {
    let failed = failed_to(words::store::WRITE_BACKUP);
    let copy = Draft(create_draft(draft)?);
    copy_into(&open_read_only(&source.path)?, &copy.0)?;
    let unread = |error| Error::File { path: copy.0.clone(), source: error };
    let mut file = fs::File::open(&copy.0).map_err(unread)?;
    let bytes = file.metadata().map_err(unread)?.len();
    let size = i64::try_from(bytes).map_err(|_| Error::Invalid { what: words::store::BACKUP_TOO_LARGE })?;
    archive
        .execute(
            "INSERT INTO sqlar (name, mode, mtime, sz, data) VALUES ($1, $2, $3, $4, zeroblob($4))",
            (&source.name, MODE, made_at.0 / 1000, size),
        )
        .map_err(&failed)?;
    let row = archive.last_insert_rowid();
    let mut blob = archive.blob_open(MAIN_DB, "sqlar", "data", row, false).map_err(&failed)?;
    std::io::copy(&mut file, &mut blob).map_err(unread)?;
    blob.close().map_err(&failed)?;
    Ok(Copied { name: source.name.clone(), bytes })
}

/// Opens a database of whatever version.
fn open_read_only(path: &Path) -> Result<Connection, Error> {
    match path.try_exists() {
        Ok(true) => {}
        Ok(false) => return Err(Error::Missing { path: path.to_owned() }),
        Err(source) => return Err(Error::File { path: path.to_owned(), source }),
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection =
        Connection::open_with_flags(path, flags).map_err(failed_to(words::store::OPEN_DATABASE))?;
    prepare(&connection)?;
    Ok(connection)
}

/// Whether an error says that the file is there already.
pub fn is_taken(error: &Error) -> bool {
    matches!(error, Error::File { source, .. } if source.kind() == ErrorKind::AlreadyExists)
}

#[cfg(test)]
mod tests {
    use pointsman_core::ids::ProjectName;

    use super::*;
    use crate::{Change, ProjectRow, Store, Write};

    fn change(project: ProjectRow) -> Change {
        let mut change = Change::new(Timestamp(5), "project_added");
        change.writes = vec![Write::ProjectAdded(project)];
        change
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_backup_holds_what_was_committed_beside_an_open_writer_and_replaces_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pointsman.db");
        let mut store = Store::open(&path).unwrap();
        let project = ProjectRow {
            name: ProjectName::new("shop").unwrap(),
            config_path: "/shop/pointsman.toml".into(),
            added_at: Timestamp(5),
            checkout: "/shop".into(),
        };
        store.commit(&[change(project)]).unwrap();
        let sources = [
            Source { name: "pointsman.db".to_owned(), path: path.clone() },
            Source { name: "projects/a b/forge.db".to_owned(), path: path.clone() },
        ];
        let backups = dir.path().join("backups");
        fs::create_dir(&backups).unwrap();
        let file = backups.join("one.backup");
        let made = make(&file, &sources, Timestamp(1_000)).unwrap();
        assert_eq!(read(&file).unwrap(), made);
        assert_eq!(names(&backups), ["one.backup"], "no draft is left");

        let archive = Connection::open(&file).unwrap();
        let data: Vec<u8> = archive
            .query_row("SELECT data FROM sqlar WHERE name = 'pointsman.db'", [], |row| row.get(0))
            .unwrap();
        let extracted = dir.path().join("extracted.db");
        fs::write(&extracted, data).unwrap();
        let projects = Store::open(&extracted).unwrap().projects().unwrap();
        assert_eq!(projects.len(), 1);

        assert!(is_taken(&make(&file, &sources, Timestamp(2_000)).unwrap_err()));
        assert_eq!(read(&file).unwrap().made_at, Timestamp(1_000));
        assert_eq!(names(&backups), ["one.backup"]);
    }

    #[test]
    fn a_database_is_put_back_and_the_one_before_is_kept_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pointsman.db");
        let project = |name: &str| ProjectRow {
            name: ProjectName::new(name).unwrap(),
            config_path: format!("/{name}/pointsman.toml").into(),
            added_at: Timestamp(5),
            checkout: format!("/{name}").into(),
        };
        let mut store = Store::open(&path).unwrap();
        store.commit(&[change(project("shop"))]).unwrap();
        let file = dir.path().join("one.backup");
        let source = Source { name: "pointsman.db".to_owned(), path: path.clone() };
        make(&file, &[source], Timestamp(1_000)).unwrap();
        store.commit(&[change(project("till"))]).unwrap();
        assert_eq!(store.projects().unwrap().len(), 2);
        drop(store);
        let kept = restore(&file, "pointsman.db", &path, Timestamp(7_000)).unwrap().unwrap();
        assert_eq!(Store::open(&path).unwrap().projects().unwrap().len(), 1);
        assert_eq!(Store::open(&kept).unwrap().projects().unwrap().len(), 2, "nothing is lost");
        let gone = dir.path().join("gone.db");
        assert_eq!(restore(&file, "pointsman.db", &gone, Timestamp(8_000)).unwrap(), None);
        assert_eq!(Store::open(&gone).unwrap().projects().unwrap().len(), 1);
        restore(&file, "other.db", &gone, Timestamp(9_000)).unwrap_err();
        assert_eq!(Store::open(&gone).unwrap().projects().unwrap().len(), 1, "it is not touched");
    }

    #[test]
    fn a_source_that_is_missing_or_damaged_makes_no_backup() {
        let dir = tempfile::tempdir().unwrap();
        let damaged = dir.path().join("damaged.db");
        fs::write(&damaged, "this is no database, and it is long enough to be read as one").unwrap();
        for path in [dir.path().join("none.db"), damaged] {
            let file = dir.path().join("one.backup");
            let source = Source { name: "x.db".to_owned(), path };
            make(&file, &[source], Timestamp(1)).unwrap_err();
            assert!(!file.exists());
        }
        assert_eq!(names(dir.path()), ["damaged.db"], "no draft is left");
        assert!(read(&dir.path().join("damaged.db")).is_err());
    }
}
