//! What is read back beside transitions.

use std::path::PathBuf;

use pointsman_core::task::{Exit, State};
use pointsman_store::{
    Change, EntryScope, EntryStatus, EventFilter, NewEntry, ProjectRow, SessionRow, SessionScope, Store,
    VerdictRow,
};
use serde_json::json;

use crate::world::WriteOne as _;
use crate::world::{at, change, commit, key, project, session, sha, task};

pub(crate) fn events_are_filtered_and_paged(store: &mut Store) {
    for (issue, kind) in [(1, "a"), (2, "a"), (1, "b"), (1, "c"), (2, "b")] {
        commit(store, Change { kind: Some(kind.to_owned()), ..change(issue, &[]) });
    }
    let elsewhere = Change { project: Some(project("harbour")), issue: Some(1), ..Change::new(at(1), "a") };
    commit(store, elsewhere);
    commit(store, Change::new(at(1), "daemon_started"));

    let all = EventFilter::default();
    let of_task = EventFilter { project: Some(project("shop")), issue: Some(1), ..EventFilter::default() };
    let seqs = |filter: &EventFilter| {
        store.events(filter).unwrap().iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    assert_eq!(seqs(&all), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(seqs(&EventFilter { since: 5, ..all.clone() }), [6, 7]);
    assert_eq!(seqs(&EventFilter { limit: 2, ..all.clone() }), [1, 2]);
    assert_eq!(seqs(&EventFilter { limit: 2, latest: true, ..all.clone() }), [6, 7]);
    assert_eq!(seqs(&EventFilter { kinds: vec!["b".into(), "c".into()], ..all.clone() }), [3, 4, 5]);
    assert_eq!(seqs(&EventFilter { project: Some(project("shop")), ..all }), [1, 2, 3, 4, 5]);
    assert_eq!(seqs(&of_task), [1, 3, 4]);
    assert_eq!(seqs(&EventFilter { since: 1, limit: 1, kinds: vec!["c".into()], ..of_task }), [4]);
}

pub(crate) fn open_tasks_are_those_not_closed(store: &mut Store) {
    let mut closed = task(2);
    closed.state = State::Closed;
    let mut foreign = task(9);
    foreign.key.project = project("harbour");
    let tasks = [task(10), closed, task(3), foreign];
    let changes: Vec<Change> =
        tasks.iter().map(|task| Change { task: Some(task.clone()), ..Change::new(at(1), "seen") }).collect();
    store.commit(&changes).unwrap();

    let [ten, closed, three, foreign] = tasks;
    assert_eq!(store.open_tasks().unwrap(), [foreign.clone(), three.clone(), ten.clone()]);
    assert_eq!(store.tasks(Some(&project("shop"))).unwrap(), [closed, three, ten]);
    assert_eq!(store.tasks(None).unwrap().len(), 4);
    assert_eq!(store.task(&key(99)).unwrap(), None);
}

pub(crate) fn every_state_of_a_task_is_stored_under_its_name(store: &mut Store) {
    for state in State::ALL {
        let mut task = task(1);
        task.state = state;
        commit(store, Change { task: Some(task.clone()), ..Change::new(at(1), "stepped") });
        assert_eq!(store.task(&key(1)).unwrap(), Some(task));
        assert_eq!(store.open_tasks().unwrap().is_empty(), state == State::Closed);
    }
}

pub(crate) fn an_ended_session_stays_ended(store: &mut Store) {
    store.upsert_session(&session(1, 1)).unwrap();
    assert!(store.end_session("dev-shop-1.1", Exit::Crashed, at(50)).unwrap());
    assert!(!store.end_session("dev-shop-1.1", Exit::Done, at(60)).unwrap());
    assert!(!store.end_session("dev-shop-9.1", Exit::Done, at(60)).unwrap());
    store.upsert_session(&SessionRow { last_seen: at(70), ..session(1, 1) }).unwrap();
    let ended = store.session("dev-shop-1.1").unwrap().unwrap();
    assert_eq!((ended.ended_at, ended.exit), (Some(at(50)), Some(Exit::Crashed)));
    assert_eq!(ended.last_seen, at(70));
}

pub(crate) fn sessions_are_listed_by_project_and_life(store: &mut Store) {
    let second = SessionRow { predecessor: Some("dev-shop-1.1".into()), ..session(1, 2) };
    let bare = SessionRow {
        session: "gardener-harbour-1.1".into(),
        identity: "gardener-harbour-1".into(),
        project: project("harbour"),
        issue: None,
        tmux_session: None,
        pane: None,
        pid: None,
        start_time: None,
        tree: None,
        acknowledges: false,
        ..session(1, 3)
    };
    for row in [&second, &session(1, 1), &bare] {
        store.upsert_session(row).unwrap();
    }
    store.end_session("dev-shop-1.1", Exit::Crashed, at(50)).unwrap();
    let shop = project("shop");
    assert_eq!(store.sessions(Some(&shop), SessionScope::Live).unwrap(), std::slice::from_ref(&second));
    assert_eq!(store.sessions(Some(&shop), SessionScope::All).unwrap().len(), 2);
    assert_eq!(store.sessions(None, SessionScope::Live).unwrap(), [second, bare]);
    assert_eq!(store.session("dev-shop-1.9").unwrap(), None);
}

pub(crate) fn a_verdict_is_remembered_per_object_and_gate(store: &mut Store) {
    let shop = project("shop");
    let red =
        VerdictRow { verdict: json!({"verdict": "failed"}), log_path: None, at: at(1), took_ms: Some(900) };
    let green = VerdictRow {
        verdict: json!({"verdict": "passed"}),
        log_path: Some(PathBuf::from("/state/ci/1.log")),
        at: at(2),
        took_ms: None,
    };
    store.remember_verdict(&shop, &sha('a'), "ci", &red).unwrap();
    store.remember_verdict(&shop, &sha('a'), "merge", &red).unwrap();
    store.remember_verdict(&shop, &sha('a'), "ci", &green).unwrap();
    assert_eq!(store.verdict(&shop, &sha('a'), "ci").unwrap(), Some(green));
    assert_eq!(store.verdict(&shop, &sha('a'), "merge").unwrap(), Some(red));
    assert_eq!(store.verdict(&shop, &sha('b'), "ci").unwrap(), None);
    assert_eq!(store.verdict(&project("harbour"), &sha('a'), "ci").unwrap(), None);
}

fn entry(branch: &str, head: char) -> NewEntry {
    NewEntry {
        project: project("shop"),
        branch: branch.to_owned(),
        issue: Some(3),
        pr: Some(4),
        identity: Some(key(3).identity()),
        head: sha(head),
        requested_at: at(10),
        priority: 0,
        worktree: None,
        style: None,
    }
}

pub(crate) fn asking_twice_to_land_the_same_head_is_asking_once(store: &mut Store) {
    let first = store.enqueue(&entry("a", 'a')).unwrap();
    assert_eq!(store.enqueue(&NewEntry { requested_at: at(99), ..entry("a", 'a') }).unwrap(), first);
    let others = [
        store.enqueue(&entry("a", 'b')).unwrap(),
        store.enqueue(&entry("b", 'a')).unwrap(),
        store.enqueue(&NewEntry { project: project("harbour"), ..entry("a", 'a') }).unwrap(),
    ];
    assert!(!others.contains(&first));
    let line = store.queue_entries(&project("shop"), EntryScope::Unfinished).unwrap();
    assert_eq!(line.iter().map(|entry| entry.id).collect::<Vec<_>>(), [first, others[0], others[1]]);
    assert_eq!(line[0].requested_at, at(10));

    let mut red = line[0].clone();
    red.status = EntryStatus::Red;
    store.update_entry(&red).unwrap();
    assert_ne!(store.enqueue(&entry("a", 'a')).unwrap(), first, "its end was reached; this is a new try");
}

pub(crate) fn an_entry_is_updated_and_leaves_the_line(store: &mut Store) {
    let id = store.enqueue(&entry("a", 'a')).unwrap();
    let mut entry = store.queue_entry(id).unwrap().unwrap();
    assert_eq!((entry.status, entry.issue, entry.pr), (EntryStatus::Queued, Some(3), Some(4)));
    for status in [EntryStatus::Building, EntryStatus::Testing, EntryStatus::Conflict, EntryStatus::Landed] {
        entry.status = status;
        entry.base = Some(sha('0'));
        entry.candidate = Some(sha('c'));
        entry.conflict_files = vec!["src/a \"b\".rs".to_owned()];
        entry.landed_at = Some(at(77));
        entry.reason = Some("because".to_owned());
        store.update_entry(&entry).unwrap();
        assert_eq!(store.queue_entry(id).unwrap().as_ref(), Some(&entry));
        let line = store.queue_entries(&project("shop"), EntryScope::Unfinished).unwrap();
        assert_eq!(!line.is_empty(), status.is_unfinished());
    }
    assert_eq!(store.queue_entries(&project("shop"), EntryScope::All).unwrap(), [entry.clone()]);
    entry.id = pointsman_store::EntryId(99);
    store.update_entry(&entry).unwrap();
    assert_eq!(
        store.queue_entries(&project("shop"), EntryScope::All).unwrap().len(),
        1,
        "nothing comes of nothing"
    );
}

pub(crate) fn a_removed_project_is_not_listed_and_can_come_back(store: &mut Store) {
    let row = |name: &str, place: &str| ProjectRow {
        name: project(name),
        config_path: PathBuf::from(place).join("pointsman.toml"),
        checkout: PathBuf::from(place),
        added_at: at(1),
    };
    store.add_project(&row("shop", "/src/shop")).unwrap();
    store.add_project(&row("harbour", "/src/harbour")).unwrap();
    assert_eq!(store.projects().unwrap(), [row("harbour", "/src/harbour"), row("shop", "/src/shop")]);
    assert!(store.remove_project(&project("shop"), at(5)).unwrap());
    assert!(!store.remove_project(&project("shop"), at(6)).unwrap());
    assert_eq!(store.project(&project("shop")).unwrap(), None);
    store.add_project(&row("shop", "/elsewhere")).unwrap();
    assert_eq!(store.project(&project("shop")).unwrap(), Some(row("shop", "/elsewhere")));
}

pub(crate) fn cursors_belong_to_a_project_or_to_nobody(store: &mut Store) {
    let shop = project("shop");
    store.set_cursor(Some(&shop), "comments", "1").unwrap();
    store.set_cursor(None, "comments", "2").unwrap();
    store.set_cursor(Some(&shop), "comments", "3").unwrap();
    assert_eq!(store.cursor(Some(&shop), "comments").unwrap().as_deref(), Some("3"));
    assert_eq!(store.cursor(None, "comments").unwrap().as_deref(), Some("2"));
    assert_eq!(store.cursor(Some(&project("harbour")), "comments").unwrap(), None);
}
