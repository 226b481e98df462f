//! A database that an earlier release has written is brought up to date with nothing lost.

use std::path::Path;
use std::time::Duration;

use pointsman_core::config::{Config, NotifierKind};
use pointsman_core::formula::{Formula, SHIPPED, variables};
use pointsman_core::notifier::{Lane, NotifierKey, Topic};
use pointsman_core::part::session::Stage;
use pointsman_core::run::{Run, RunId};
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::task::{Effect, Exit, Phase, State, Task};
use pointsman_core::timetable::ScheduleMemory;
use pointsman_core::value::{Following, RoleValue};
use pointsman_core::vault::{Action, Entry, Estimate, Event, Policy, step};
use pointsman_core::{gardener, hand_in, health, planner, predictor};
use pointsman_store::{
    Change, DeliveryId, EffectId, EntryId, EntryScope, Error, EventFilter, SessionScope, SessionStatus, Store,
};
use rusqlite::{Connection, params};

use crate::world::WriteOne as _;
use crate::world::{at, change, commit, key, project, session, sha, task};

const FIRST: &str = include_str!("../../src/migrations/store/0001_begin.sql");

/// A task as 0.1.0 stored it.
fn stored_task(state: &str, phase: &str) -> String {
    format!(
        r#"{{"key": {{"project": "shop", "issue": 3}}, "title": "issue 3", "state": "{state}", "since": 1,
        "phase": {phase}, "reason": null, "ready": false, "open_dependencies": [], "claimed": false,
        "branch": "pointsman/issue-3", "pr": null, "head": null, "generation": 1, "session": "alive",
        "ci": {{"status": "none"}}, "ci_run": 0, "review": {{"status": "none"}},
        "attempts": {{"ci_fixes": 2, "review_rounds": 0, "restarts": 1, "infra_retries": 0, "merge_conflicts": 0,
            "premature_done": 0, "handoffs": 0}},
        "idle_looks": 0, "escalation": null, "refusal": null, "deadline": null, "restart_at": null,
        "handed_in": false, "dependencies_seen": false, "block_seen": false, "diagnosis_due": false,
        "merged_as": null, "gauge": {{"used_permille": 250, "source": "status_line"}}, "gauge_at": 1,
        "symptoms": [], "urgency": "none", "handoff": null, "exhausted": null, "continues": false,
        "parked_until": null, "claims": 0, "comments": 0}}"#
    )
}

/// The same task as this program reads it.
fn read_task(state: State, phase: Option<Phase>) -> Task {
    let mut task = task(3);
    (task.state, task.phase, task.contribution.attempts.ci_fixes) = (state, phase, 2);
    let session = &mut task.session;
    (session.generation, session.stage, session.restarts) = (1, Stage::Alive, 1);
    session.context.gauge = Some(Gauge { used_permille: 250, source: Source::StatusLine });
    session.context.measured_at = Some(at(1));
    if state == State::AwaitingReview {
        // It had no deadline, and every wait has an end: it is over now.
        task.contribution.await_push(at(1));
    }
    task
}

/// Files as version 1 left them: three generations of one task, a crash, a formula's session, an
/// event, an order and a branch in the line.
fn write_version_1(path: &Path) {
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
    let snapshot = stored_task("awaiting_review", "\"awaiting_review\"");
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
    write_version_1(&path);
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
    assert_eq!(
        store.task(&key(3)).unwrap(),
        Some(read_task(State::AwaitingReview, Some(Phase::AwaitingReview)))
    );
    assert_eq!(store.events(&EventFilter::default()).unwrap().len(), 1);
    assert_eq!(store.pending_effects(&key(3).into()).unwrap()[0].effect, Effect::SyncBranch);
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
    write_version_1(&old);
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

/// A state directory of 0.1.0: schema 7, and rows in every table.
fn write_0_1_0(path: &Path) -> (Task, Run, Entry) {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    for migration in [
        FIRST,
        include_str!("../../src/migrations/store/0002_no_work_is_lost.sql"),
        include_str!("../../src/migrations/store/0003_the_line.sql"),
        include_str!("../../src/migrations/store/0004_the_factory.sql"),
        include_str!("../../src/migrations/store/0005_restarts.sql"),
        include_str!("../../src/migrations/store/0006_telling_people.sql"),
        include_str!("../../src/migrations/store/0007_subjects.sql"),
        include_str!("fixtures/0.1.0.sql"),
    ] {
        connection.execute_batch(migration).unwrap();
    }
    let json = |value: &dyn erased::Json| value.json();
    connection
        .execute(
            "INSERT INTO tasks (project, issue, state, since, snapshot, phase)
                VALUES ('shop', 3, 'working', 1, ?1, NULL)",
            params![stored_task("working", "null")],
        )
        .unwrap();
    let working = read_task(State::Working, None);
    let config = Config::parse("name = \"shop\"\n", "p.toml").unwrap();
    let (name, text) = SHIPPED[0];
    let formula = Formula::render(text, name, &variables(&config)).unwrap();
    let run = Run::new(RunId(7), formula, &config, "schedule", at(1));
    connection
        .execute(
            "INSERT INTO runs (project, id, formula, status, open, started_at, run)
                VALUES ('shop', 7, ?1, 'starting', TRUE, 1, ?2)",
            params![name, json(&run)],
        )
        .unwrap();
    let action = r#"{"id": "deploy-1", "type": "deploy", "source": "planner", "risk": "high", "reversible": false,
        "requires_human": true, "payload": "p"}"#;
    let action = Action::parse(action.as_bytes()).unwrap();
    let day = Duration::from_secs(24 * 3600);
    let people = Vec::new();
    let policy = Policy {
        auto_approve: false,
        high_risk_approvals: 1,
        look: false,
        people,
        timeout: day,
        approval: day,
        renotify: day,
    };
    let submitted = Event::Submitted { rule: Some(Estimate::of(&action)) };
    let new = Entry::new(project("shop"), action, at(2));
    let entry = step(&new, &submitted, &policy, at(2)).unwrap().entry;
    connection
        .execute(
            "INSERT INTO vault (project, id, status, open, submitted_at, hash, entry)
                VALUES ('shop', 'deploy-1', 'pending', TRUE, 2, ?1, ?2)",
            params![entry.hash, json(&entry)],
        )
        .unwrap();
    // Without a clean end, as a killed daemon leaves it.
    std::mem::forget(connection);
    (working, run, entry)
}

mod erased {
    pub(super) trait Json {
        fn json(&self) -> String;
    }

    impl<T: serde::Serialize> Json for T {
        fn json(&self) -> String {
            serde_json::to_string(self).unwrap()
        }
    }
}

#[test]
fn a_state_directory_of_0_1_0_goes_on_with_nothing_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pointsman.db");
    let (working, run, entry) = write_0_1_0(&path);
    let mut store = Store::open(&path).unwrap();
    let shop = project("shop");
    assert_eq!(store.unreadable().unwrap(), [], "all of it can be read");

    assert_eq!(store.task(&key(3)).unwrap(), Some(working));
    let work = store.work_state("dev-shop-3").unwrap().unwrap();
    assert_eq!((work.work_summary.as_str(), work.last_checkpoint_at), ("issue 3", at(15)));
    assert_eq!(store.run(&shop, RunId(7)).unwrap(), Some(run));
    assert_eq!(store.vault_entry(&shop, entry.id()).unwrap().as_ref(), Some(&entry));
    let numbers: Vec<_> = store
        .events(&EventFilter::default())
        .unwrap()
        .iter()
        .map(|event| (event.seq, event.project_seq))
        .collect();
    assert_eq!(numbers, [(1, 1), (2, 2), (4, 1), (5, 1), (7, 3)]);
    assert!(store.knows_input("review:shop:12:1").unwrap());
    assert_eq!(store.pending_effects(&key(3).into()).unwrap()[0].attempts, 2);
    assert_eq!(store.messages(&key(3).into()).unwrap().len(), 1);
    assert_eq!(store.session("dev-shop-3.1").unwrap().unwrap().spent.tokens, 77);
    assert_eq!(store.spent_on_task(&key(3), at(10)).unwrap().tokens, 77);
    assert_eq!(store.checkpoints(&key(3)).unwrap().len(), 1);
    assert!(store.verdict(&shop, &sha('b'), "gate").unwrap().is_some());
    let line = store.queue_state(&shop).unwrap();
    assert_eq!((line.stopped.unwrap().reason.as_str(), line.person_merges), ("a holiday", 2));
    assert_eq!(store.projects().unwrap().len(), 1);
    let lane = NotifierKey { project: shop.clone(), kind: NotifierKind::Matrix, lane: Lane::Ordinary };
    let told = store.pending_effects(&lane.into()).unwrap();
    assert_eq!(told.len(), 1, "a notice that waited is an effect of its notifier");
    let Effect::Tell { delivery } = told[0].effect else { panic!("{told:?}") };
    let delivery = store.delivery(DeliveryId(delivery)).unwrap().unwrap();
    assert_eq!((delivery.status.as_str(), delivery.not_before), ("pending", told[0].not_before));
    assert_eq!(store.open_threads(&shop, "!room").unwrap().len(), 1);
    assert_eq!(store.replies(&shop, &Topic::Agent("gardener".into())).unwrap().len(), 1);
    assert_eq!(store.cursor(Some(&shop), "comments.3").unwrap().as_deref(), Some("41"));
    assert_eq!(store.cursor(None, "daemon").unwrap().as_deref(), Some("x"));
    assert!(store.cursor(Some(&shop), "reverts").unwrap().is_some());

    // What roles remember, with the open pull request and its place in the merge queue.
    let handed_in: hand_in::Memory = store.memory(&shop, "hand-in.gardener").unwrap().unwrap();
    let open = handed_in.open.unwrap();
    assert_eq!((open.pr, open.entry, open.taken.run), (Some(12), Some(EntryId(8)), RunId(5)));
    assert_eq!(store.queue_entry(EntryId(8)).unwrap().unwrap().branch, open.branch);
    let groomed: gardener::Memory = store.memory(&shop, "gardener").unwrap().unwrap();
    assert_eq!((groomed.looked_at, groomed.people.len(), groomed.unblocked[&4]), (at(100), 1, 1));
    let planned: planner::Memory = store.memory(&shop, "planner").unwrap().unwrap();
    assert_eq!(planned.unanswered, Some(("f".to_owned(), 1)));
    let predicted: predictor::Memory = store.memory(&shop, "predictor").unwrap().unwrap();
    assert_eq!(predicted.said["disk"], at(299));
    let supervised: health::Memory = store.memory(&shop, "supervisor").unwrap().unwrap();
    assert_eq!(supervised.run, Some(RunId(7)));
    let followed: Following = store.memory(&shop, "results").unwrap().unwrap();
    assert_eq!((followed.seq, followed.filed.len()), (4, 1));
    let value: RoleValue = store.memory(&shop, "value.predictor").unwrap().unwrap();
    assert_eq!(value.paused_at, Some(at(60)));
    let times: ScheduleMemory = store.memory(&shop, "timetable.run-gardener").unwrap().unwrap();
    assert_eq!(times.used, Some(at(650)));
    assert_eq!(store.cursor(Some(&shop), "gardener").unwrap(), None, "it is in one place only");

    // And it goes on from there.
    let (seq, effects) = commit(&mut store, change(3, &[Effect::CleanUp]));
    // The notice that waited is the effect before it.
    assert_eq!((seq, effects[0]), (8, EffectId(8)));
    assert_eq!(store.next_entry(), EntryId(9));
    drop(store);
    let kept = Connection::open(directory.path().join("pointsman.db.before-8")).unwrap();
    let version: i64 = kept.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    let remembered: String = kept
        .query_row("SELECT value FROM cursors WHERE name = 'hand-in.gardener'", [], |row| row.get(0))
        .unwrap();
    assert_eq!((version, remembered.contains("\"pr\":12")), (7, true));
}
