//! A database that an earlier release has written is brought up to date with nothing lost.

use std::path::Path;

use pointsman_core::session::budget::Spent;
use pointsman_core::task::{Effect, Exit, Phase, State, Task};
use pointsman_store::{Change, EntryScope, Error, EventFilter, SessionScope, SessionStatus, Store};
use rusqlite::{Connection, params};

use crate::world::{at, change, commit, key, project, session, sha, task};

const FIRST: &str = include_str!("../../src/migrations/store/0001_begin.sql");

/// Files as version 1 left them: three generations of one task, a crash, a formula's session, an
/// event, an order and a branch in the line.
fn write_version_1(path: &Path, task: &Task) {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch(FIRST).unwrap();
    let sessions = [
        ("dev-shop-3.9", "shop", Some(3), 9, Some("crashed")),
        ("dev-shop-3.10", "shop", Some(3), 10, None),
        ("dev-shop-3.1", "shop", Some(3), 1, Some("idle_timeout")),
        ("dev-shop-4.1", "shop", Some(4), 1, Some("done")),
        ("gardener-harbour", "harbour", None, 1, None),
    ];
    for (session, project, issue, generation, exit) in sessions {
        let ended_at = exit.map(|_| 50);
        connection
            .execute(
                "INSERT INTO sessions VALUES (?1, ?2, ?3, 'dev', ?4, 'dev-shop-3', '%1', 4242, 123456789,
                    '/state/shop/tree', 10, 20, ?5, ?6, TRUE, NULL)",
                params![session, project, issue, generation, ended_at, exit],
            )
            .unwrap();
    }
    let snapshot = serde_json::to_string(task).unwrap();
    connection
        .execute("INSERT INTO tasks VALUES ('shop', 3, 'awaiting_review', 1, ?1)", params![snapshot])
        .unwrap();
    let effect = serde_json::to_string(&Effect::SyncBranch).unwrap();
    connection
        .execute(
            "INSERT INTO outbox VALUES (7, '5.0', 'shop', 3, ?1, 'pending', 0, 0, NULL, 1, NULL)",
            params![effect],
        )
        .unwrap();
    connection
        .execute_batch(&format!(
            "INSERT INTO events VALUES (5, 1, 'stepped', 'shop', 3, 'dev-shop-3.10', '{{}}');
             INSERT INTO inbox VALUES ('ci:1', 5, 1);
             INSERT INTO queue VALUES (2, 'shop', 'a', 3, 4, 'dev-shop-3', '{}', NULL, NULL, 'queued', '[]',
                 10, NULL, NULL);
             PRAGMA user_version = 1;",
            sha('a')
        ))
        .unwrap();
}

#[test]
fn version_1_comes_up_to_date_with_its_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pointsman.db");
    let mut reviewed = task(3);
    (reviewed.state, reviewed.phase) = (State::AwaitingReview, Some(Phase::AwaitingReview));
    write_version_1(&path, &reviewed);
    assert!(matches!(Store::open_read_only(&path), Err(Error::TooOld { found: 1, .. })));
    let mut store = Store::open(&path).unwrap();

    let agents = store.agents(None, false).unwrap();
    let lines: Vec<_> = agents
        .iter()
        .map(|agent| {
            (agent.session.identity.as_str(), agent.session.generation, agent.session.status(), agent.phase)
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("gardener-harbour", 1, SessionStatus::Active, None),
            ("dev-shop-3", 10, SessionStatus::Active, Some(Phase::AwaitingReview)),
            ("dev-shop-4", 1, SessionStatus::Terminated, None),
        ]
    );
    assert_eq!(agents.iter().map(|agent| agent.restarts).collect::<Vec<_>>(), [0, 2, 0], "two died");
    assert_eq!(store.sessions(None, SessionScope::All).unwrap().len(), 5);
    let crashed = store.session("dev-shop-3.9").unwrap().unwrap();
    assert_eq!((crashed.status(), crashed.exit), (SessionStatus::Crashed, Some(Exit::Crashed)));
    assert_eq!((crashed.host.as_str(), crashed.gauge, crashed.spent), ("", None, Spent::default()));
    assert_eq!(store.task(&key(3)).unwrap(), Some(reviewed));
    assert_eq!(store.events(&EventFilter::default()).unwrap().len(), 1);
    assert_eq!(store.pending_effects(&key(3)).unwrap()[0].effect, Effect::SyncBranch);
    let line = store.queue_entries(&project("shop"), EntryScope::Unfinished).unwrap();
    assert_eq!((line[0].priority, line[0].attempts, line[0].style.as_deref()), (0, 0, None));

    // And it goes on from there.
    let (seq, _) = commit(&mut store, Change { sessions: vec![session(3, 11)], ..change(3, &[]) });
    assert_eq!(seq, 6);
    assert_eq!(store.agents(Some(&project("shop")), false).unwrap()[0].session.generation, 11);
    store.touch_sessions(&["dev-shop-3.11".to_owned()], at(99)).unwrap();
    Store::open_read_only(&path).unwrap();
}

#[test]
fn an_updated_database_has_the_tables_of_a_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (directory.path().join("old.db"), directory.path().join("new.db"));
    write_version_1(&old, &task(3));
    let schema = |path: &Path| -> Vec<(String, String)> {
        drop(Store::open(path).unwrap());
        let connection = Connection::open(path).unwrap();
        let mut statement =
            connection.prepare("SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name").unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    };
    assert_eq!(schema(&old), schema(&new));
}
