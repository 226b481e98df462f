//! SQLite files: versions, readers beside a writer, a full disk, damage, and query plans.

use std::os::unix::fs::PermissionsExt;

use pointsman_core::snapshot::{Kind, Snapshot as _};
use pointsman_core::task::{Effect, Task};
use pointsman_store::{Change, Error, Retry, Store};
use serde_json::json;

use crate::world::WriteOne as _;
use crate::world::{Fresh, at, change, commit, key, message, nobody, project, session};

#[test]
fn the_bundled_sqlite_has_the_write_ahead_log_fix_of_3_51_3() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn the_file_is_private_and_has_a_write_ahead_log() {
    let fresh = Fresh::new();
    assert_eq!(std::fs::metadata(fresh.path()).unwrap().permissions().mode() & 0o777, 0o600);
    let connection = rusqlite::Connection::open(fresh.path()).unwrap();
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_store_is_found_again_as_it_was_left() {
    let mut fresh = Fresh::new();
    commit(&mut fresh.store, change(1, &[Effect::SyncBranch]));
    let path = fresh.path();
    drop(fresh.store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.last_seq().unwrap(), 1);
    assert_eq!(store.pending_effects(&key(1)).unwrap().len(), 1);
}

#[test]
fn a_newer_version_is_refused_and_left_alone() {
    let fresh = Fresh::new();
    let path = fresh.path();
    drop(fresh.store);
    let set_version = |version: i64| {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    let known: i64 = rusqlite::Connection::open(&path)
        .and_then(|connection| connection.query_row("PRAGMA user_version", [], |row| row.get(0)))
        .unwrap();
    set_version(1000);
    for opened in [Store::open(&path), Store::open_read_only(&path)] {
        match opened {
            Err(error @ Error::TooNew { found: 1000, .. }) => assert_eq!(error.retry(), Retry::Never),
            other => panic!("{other:?}"),
        }
    }
    set_version(known);
    Store::open(&path).unwrap();
}

#[test]
fn a_reader_finds_no_store_before_there_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pointsman.db");
    assert!(matches!(Store::open_read_only(&path), Err(Error::Missing { .. })));
    assert!(!path.exists(), "looking does not make one");
    std::fs::write(&path, "").unwrap();
    assert!(matches!(Store::open_read_only(&path), Err(Error::Missing { .. })), "made, but still empty");
    assert!(matches!(Store::open(&directory.path().join("no/such/dir.db")), Err(Error::File { .. })));
}

#[test]
fn a_reader_follows_a_writer_and_cannot_write() {
    let mut fresh = Fresh::new();
    let mut reader = Store::open_read_only(&fresh.path()).unwrap();
    for seq in 1..=5 {
        commit(&mut fresh.store, change(1, &[]));
        assert_eq!(reader.last_seq().unwrap(), seq);
    }
    assert!(matches!(reader.commit(&[change(1, &[])]), Err(Error::Sql { .. })));
    assert!(reader.set_cursor(None, "a", "b").is_err());
    commit(&mut fresh.store, change(1, &[]));
}

#[test]
fn rubbish_is_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pointsman.db");
    std::fs::write(&path, "this was never a database ".repeat(400)).unwrap();
    assert!(matches!(Store::open(&path), Err(Error::Corrupt { .. })));
    assert!(matches!(Store::open_read_only(&path), Err(Error::Corrupt { .. })));
}

#[test]
fn an_unreadable_snapshot_is_an_error_and_not_a_missing_task() {
    let mut fresh = Fresh::new();
    commit(&mut fresh.store, change(1, &[]));
    let connection = rusqlite::Connection::open(fresh.path()).unwrap();
    connection.execute("UPDATE tasks SET snapshot = '{\"state\": \"from the future\"}'", []).unwrap();
    let Err(Error::Unreadable(unreadable)) = fresh.store.task(&key(1)) else { panic!("it was read") };
    assert_eq!((unreadable.what, unreadable.name.as_str()), (Kind::Task, "1"));
    commit(&mut fresh.store, change(2, &[]));
    let open: Vec<u64> = fresh.store.open_tasks().unwrap().iter().map(|task| task.key.issue).collect();
    assert_eq!(open, [2], "the others go on");
    assert_eq!(fresh.store.unreadable().unwrap(), [*unreadable]);
    // A form of a later program is not guessed at either.
    connection.execute("UPDATE tasks SET version = 99 WHERE issue = 2", []).unwrap();
    let listed = fresh.store.unreadable().unwrap();
    assert_eq!(listed.iter().map(|one| one.version).collect::<Vec<_>>(), [Task::VERSION, 99]);
    assert!(listed[1].why.contains("version 99"), "{}", listed[1].why);
}

#[test]
fn a_run_that_is_over_and_cannot_be_read_is_named_if_it_is_still_asked_for() {
    let mut fresh = Fresh::new();
    let connection = rusqlite::Connection::open(fresh.path()).unwrap();
    for (id, formula, subject) in
        [(1, "groom", "NULL"), (2, "groom", "NULL"), (3, "look", "'vault:a'"), (4, "look", "NULL")]
    {
        let sql = format!(
            "INSERT INTO runs (project, id, formula, status, open, started_at, run, subject)
                VALUES ('shop', {id}, '{formula}', 'done', FALSE, 1, '{{}}', {subject})"
        );
        connection.execute_batch(&sql).unwrap();
    }
    commit(&mut fresh.store, change(1, &[]));
    let named: Vec<String> = fresh.store.unreadable().unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(named, ["2", "3", "4"], "the newest of each formula, and those about something");
}

#[test]
fn a_full_disk_loses_nothing_and_passes() {
    let mut fresh = Fresh::new();
    let store = &mut fresh.store;
    commit(store, change(1, &[message(1)]));
    store.limit_pages_for_test(1).unwrap();
    let large = Change {
        data: json!("x".repeat(64 * 1024)),
        settles: store.pending_effects(&key(1)).unwrap().first().map(|out| out.id),
        cursors: vec![("comments".to_owned(), "1".to_owned())],
        ..change(2, &[Effect::ClaimIssue, message(1)])
    };
    // The small one would fit; it must not go without its neighbour.
    let together = [change(3, &[]), large];
    let error = store.commit(&together).unwrap_err();
    assert!(matches!(error, Error::Full { .. }), "{error:?}");
    assert_eq!(error.retry(), Retry::Later);

    assert_eq!(store.last_seq().unwrap(), 1);
    assert_eq!(store.tasks(None).unwrap().len(), 1);
    assert_eq!(store.due_effects(at(i64::MAX), nobody).unwrap().len(), 1, "not settled, nothing added");
    assert_eq!(store.messages(&key(2)).unwrap(), []);
    assert_eq!(store.cursor(Some(&project("shop")), "comments").unwrap(), None);

    store.limit_pages_for_test(u32::MAX).unwrap();
    store.commit(&together).unwrap();
    assert_eq!(store.last_seq().unwrap(), 3);
    assert_eq!(store.pending_effects(&key(1)).unwrap(), []);
    assert_eq!(store.pending_effects(&key(2)).unwrap().len(), 2);
}

#[test]
fn an_effect_that_failed_keeps_its_reason() {
    let mut fresh = Fresh::new();
    let (_, ids) = commit(&mut fresh.store, change(1, &[Effect::OpenPullRequest]));
    let gave_up = Change { settles: Some(ids[0]), failure: Some("no branch".into()), ..change(1, &[]) };
    commit(&mut fresh.store, gave_up);
    let connection = rusqlite::Connection::open(fresh.path()).unwrap();
    let sql = "SELECT status, error, settled_at FROM outbox";
    let row = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    assert_eq!(row, ("failed".to_owned(), "no branch".to_owned(), 1000_i64));
}

#[test]
fn a_session_of_a_role_that_nobody_knows_is_an_error_and_not_another_role() {
    let mut fresh = Fresh::new();
    fresh.store.upsert_session(&session(1, 1)).unwrap();
    let connection = rusqlite::Connection::open(fresh.path()).unwrap();
    connection.execute("UPDATE sessions SET role = 'gardner'", []).unwrap();
    let error = fresh.store.session("dev-shop-1.1").unwrap_err();
    let told = chain(&error);
    assert!(told.contains("gardner") && told.contains("gardener"), "{told}");
}

/// An error with all that caused it.
fn chain(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(|error| format!("{error}: ")).collect()
}
