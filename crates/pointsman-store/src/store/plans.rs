//! What grows for ever must not be scanned: query plans of the reads a running daemon repeats.

use pointsman_core::ids::ProjectName;
use rusqlite::params_from_iter;
use rusqlite::types::Value;

use super::{EntryScope, EventFilter, Store, events, merge_queue, messages, outbox, tasks};

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
}
