//! Query plans of the reads that a running daemon repeats: a table that grows for ever must not be scanned.

use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::signal::Signal;
use pointsman_core::time::Timestamp;
use rusqlite::types::Value;
use rusqlite::{StatementStatus, params_from_iter};

use super::{
    Change, EntryScope, EventFilter, SessionRow, Store, VaultScope, agents, deliveries, events, merge_queue,
    messages, notices, outbox, questions, replies, runs, spending, tasks, threads, vault,
};

fn fresh() -> (Store, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Store::open(&directory.path().join("pointsman.db")).unwrap(), directory)
}

fn plan(store: &Store, sql: &str, values: Vec<Value>) -> Vec<String> {
    let mut statement = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = statement.query_map(params_from_iter(values), |row| row.get("detail")).unwrap();
    rows.collect::<rusqlite::Result<_>>().unwrap()
}

#[test]
fn a_history_is_read_through_an_index_without_a_sort() {
    let (store, _directory) = fresh();
    let all = EventFilter { since: 500_000, ..EventFilter::default() };
    let of_project = EventFilter { project: ProjectName::new("shop"), ..all.clone() };
    let of_task = EventFilter { issue: Some(3), ..of_project.clone() };
    let of_kind = EventFilter { kinds: vec!["a".into(), "b".into()], ..of_task.clone() };
    let cases = [
        (all, "PRIMARY KEY (rowid>?)"),
        (of_project, "events_of_project (project=? AND "),
        (of_task, "events_of_task (project=? AND issue=? AND "),
        (of_kind, "events_of_task (project=? AND issue=? AND "),
    ];
    for (filter, index) in cases {
        for latest in [false, true] {
            let (sql, values) = events::query(&EventFilter { latest, ..filter.clone() }).unwrap();
            let plan = plan(&store, &sql, values);
            assert!(plan.len() == 1 && plan[0].starts_with("SEARCH") && plan[0].contains(index), "{plan:?}");
        }
    }
}

#[test]
fn settled_effects_and_closed_tasks_cost_nothing() {
    let (store, _directory) = fresh();
    let zero = || vec![Value::Integer(0)];
    for (sql, values) in [(outbox::DUE, zero()), (outbox::NEXT, vec![])] {
        let plan = plan(&store, sql, values);
        let cheap = |step: &String| {
            step.contains("PRIMARY KEY (rowid=?)")
                || step.contains("outbox_lanes")
                || step.starts_with("LIST")
        };
        assert!(plan.iter().all(cheap), "{plan:?}");
    }
    assert_eq!(plan(&store, tasks::OPEN, vec![]), ["SCAN tasks USING INDEX tasks_open"]);
    let waiting = plan(&store, messages::WAITING, zero());
    assert_eq!(waiting, ["SEARCH messages USING INDEX messages_waiting (sent_at<?)"]);
    let line = plan(&store, &merge_queue::entries(EntryScope::Unfinished), zero());
    assert_eq!(line, ["SEARCH queue USING INDEX queue_line (project=?)"]);
    let runs = plan(&store, runs::OPEN, zero());
    assert_eq!(runs, ["SEARCH runs USING INDEX runs_open (project=?)"]);
    let about = plan(&store, runs::ABOUT, vec![Value::Null, Value::Null]);
    assert_eq!(about, ["SEARCH runs USING INDEX runs_about (project=? AND subject=?)"]);
    let vault = plan(&store, vault::entries(VaultScope::Open), zero());
    assert_eq!(vault, ["SEARCH vault USING INDEX vault_open (project=?)"]);
}

#[test]
fn settled_questions_cost_nothing() {
    let (store, _directory) = fresh();
    assert_eq!(plan(&store, questions::OPEN, vec![]), ["SCAN questions USING INDEX questions_open"]);
    let about = plan(&store, questions::ABOUT, vec![Value::Null, Value::Null]);
    assert_eq!(about, ["SEARCH questions USING INDEX questions_about (project=? AND issue=?)"]);
    let last = plan(&store, questions::LAST, vec![Value::Null, Value::Null]);
    assert_eq!(last, ["SEARCH questions USING INDEX questions_of_owner (project=? AND owner=?)"]);
}

#[test]
fn notices_that_were_told_cost_nothing() {
    let (store, _directory) = fresh();
    let cases = [
        (deliveries::WAITING, 2, "deliveries_pending"),
        (deliveries::SENT_AS, 2, "deliveries_sent_as"),
        (notices::TOLD_LAST, 2, "notices_of_words"),
        (notices::ASKED, 3, "notices_of_topic"),
        (threads::OPEN, 2, "threads_open"),
        (threads::OF_ROOT, 3, "threads_of_root"),
        (replies::OPEN, 2, "replies_waiting"),
    ];
    for (sql, values, index) in cases {
        let plan = plan(&store, sql, vec![Value::Integer(1); values]);
        assert!(plan[0].starts_with("SEARCH") && plan[0].contains(index), "{sql}: {plan:?}");
        assert!(plan.iter().all(|step| step.starts_with("SEARCH")), "{sql}: {plan:?}");
    }
}

#[test]
fn signals_are_merged_from_their_index_without_a_sort() {
    let (store, _directory) = fresh();
    let kinds: Vec<String> = Signal::ALL.iter().map(|signal| signal.name().to_owned()).collect();
    let all = EventFilter { kinds, ..EventFilter::default() };
    let of_project = EventFilter { project: ProjectName::new("shop"), ..all.clone() };
    for filter in [all, of_project] {
        for latest in [false, true] {
            let (sql, values) = events::query(&EventFilter { latest, ..filter.clone() }).unwrap();
            let plan = plan(&store, &sql, values);
            let reads: Vec<_> = plan.iter().filter(|step| step.contains("events")).collect();
            assert_eq!(reads.len(), Signal::ALL.len(), "{plan:?}");
            assert!(reads.iter().all(|step| step.contains("events_of_kind (kind=? AND ")), "{plan:?}");
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
        }
    }
}

/// How many steps the list of agents takes SQLite: time without a clock.
fn steps_to_list(identities: u64, generations: u32) -> i32 {
    let (mut store, _directory) = fresh();
    let shop = ProjectName::new("shop").unwrap();
    let mut change = Change::new(Timestamp(1), "started");
    for generation in 1..=generations {
        for issue in 1..=identities {
            change.sessions.push(session(TaskKey { project: shop.clone(), issue }, generation));
        }
    }
    store.commit(&[change]).unwrap();
    let agents = store.agents(Some(&shop), false).unwrap();
    assert_eq!(u64::try_from(agents.len()).unwrap(), identities);
    assert!(agents.iter().all(|agent| agent.session.generation == generations));
    let mut statement = store.connection.prepare(&agents::query(true, false)).unwrap();
    let mut rows = statement.query(["shop"]).unwrap();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    statement.get_status(StatementStatus::VmStep)
}

fn session(task: TaskKey, generation: u32) -> SessionRow {
    SessionRow {
        session: task.session(generation),
        identity: task.identity(),
        issue: Some(task.issue),
        project: task.project,
        role: Role::Dev,
        generation,
        host: "signal-box".to_owned(),
        model: None,
        bead_id: None,
        node_id: None,
        hook_path: None,
        tmux_session: None,
        pane: None,
        pid: None,
        start_time: None,
        tree: None,
        created_at: Timestamp(1),
        last_seen: Timestamp(1),
        times_stale: 0,
        ended_at: None,
        exit: None,
        acknowledges: false,
        predecessor: None,
        gauge: None,
        spent: Spent::default(),
    }
}

#[test]
fn a_thousand_identities_cost_the_same_after_twenty_generations() {
    let young = steps_to_list(1_000, 1);
    assert_eq!(steps_to_list(1_000, 20), young);
    assert!(young < 1_000 * 70, "a fixed number of steps for each: {young}");
}

#[test]
fn old_generations_and_other_days_cost_nothing() {
    let (store, _directory) = fresh();
    let text = || Value::Text("shop".to_owned());
    let task = "SEARCH t USING INDEX sqlite_autoindex_tasks_1 (project=? AND issue=?) LEFT-JOIN";
    let work = "SEARCH w USING INDEX sqlite_autoindex_work_states_1 (identity=?) LEFT-JOIN";
    let newest = plan(&store, &agents::query(true, false), vec![text()]);
    assert_eq!(newest, ["SEARCH s USING INDEX sessions_newest (project=?)", task, work]);
    let everywhere = plan(&store, &agents::query(false, false), vec![]);
    assert_eq!(everywhere, ["SCAN s USING INDEX sessions_newest", task, work]);
    let all = plan(&store, &agents::query(true, true), vec![text()]);
    assert_eq!(all, ["SEARCH s USING INDEX sessions_of_identity (project=?)", task, work]);
    for (sql, index, values) in [
        (
            events::COUNT_OF_SESSION.to_owned(),
            "events_of_task (project=? AND issue=?)",
            vec![text(), Value::Integer(3), text(), text()],
        ),
        (
            spending::ISSUE.to_owned(),
            "spending_of_task (project=? AND issue=?)",
            vec![text(), Value::Integer(3)],
        ),
        (
            spending::RAN_ON_ISSUE.to_owned(),
            "sessions_of_task (project=? AND issue=?)",
            vec![text(), Value::Integer(3)],
        ),
        (
            spending::ran_query(true),
            "sessions_of_time (project=? AND ended_at",
            vec![text(), Value::Integer(0)],
        ),
        (spending::day_query(false), "spending_of_day (day=?)", vec![text()]),
        (spending::day_query(true), "spending_of_day (day=? AND project=?)", vec![text(), text()]),
    ] {
        let plan = plan(&store, &sql, values);
        assert!(plan.iter().any(|step| step.contains(index)), "{plan:?}");
        assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{plan:?}");
    }
    let ran = plan(&store, &spending::ran_query(true), vec![text(), Value::Integer(0)]);
    assert_eq!(ran.iter().filter(|step| step.contains("(project=? AND ended_at")).count(), 2, "{ran:?}");
}
