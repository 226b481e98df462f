//! Who is there, where they are in their work, and what they tell others.

use pointsman_core::role::Role;
use pointsman_core::session::budget::Spent;
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::session::work::{Observation, WorkPhase, WorkState};
use pointsman_core::signal::Signal;
use pointsman_core::task::{Exit, Phase, State};
use pointsman_core::time::Timestamp;
use pointsman_store::{AgentRow, Change, Error, EventFilter, SessionRow, SessionStatus, Store};
use serde_json::{Value, json};

use crate::world::WriteOne as _;
use crate::world::{at, change, commit, key, project, session, task};

/// As it is before its launch.
fn registered(issue: u64, generation: u32) -> SessionRow {
    SessionRow {
        tmux_session: None,
        pane: None,
        pid: None,
        start_time: None,
        gauge: None,
        spent: Spent::default(),
        ..session(issue, generation)
    }
}

fn read(store: &Store, id: &str) -> SessionRow {
    store.session(id).unwrap().unwrap()
}

pub(crate) fn r1_3_a_session_is_registered_before_it_is_launched(store: &mut Store) {
    commit(store, Change { sessions: vec![registered(3, 1)], ..change(3, &[]) });
    let row = read(store, "dev-shop-3.1");
    assert_eq!((row.status(), row.name()), (SessionStatus::Starting, "shop-3"));
    let launched = SessionRow { model: None, hook_path: None, ..session(3, 1) };
    store.upsert_session(&launched).unwrap();
    let row = read(store, "dev-shop-3.1");
    assert_eq!(
        (row.status(), row.pid, row.start_time),
        (SessionStatus::Active, Some(4242), Some(123_456_789))
    );
    assert_eq!((row.model, row.hook_path), (session(3, 1).model, session(3, 1).hook_path), "still known");
    // The registration is performed once more after a crash of ours.
    store.upsert_session(&registered(3, 1)).unwrap();
    let again = read(store, "dev-shop-3.1");
    assert_eq!((again.pid, again.start_time, again.pane), (Some(4242), Some(123_456_789), Some("%1".into())));
}

pub(crate) fn r1_4_last_seen_is_touched_for_live_sessions_and_never_goes_back(store: &mut Store) {
    for issue in 1..=4 {
        store.upsert_session(&session(issue, 1)).unwrap();
    }
    store.end_session("dev-shop-2.1", Exit::Done, at(30)).unwrap();
    assert_eq!(store.session_found_stale("dev-shop-1.1").unwrap(), Some(1));
    assert_eq!(store.session_found_stale("dev-shop-1.1").unwrap(), Some(2));
    assert_eq!(store.session_found_stale("dev-shop-2.1").unwrap(), None, "it has ended");
    let ids = ["dev-shop-1.1", "dev-shop-2.1", "dev-shop-3.1", "never-there"].map(str::to_owned);
    store.touch_sessions(&ids, at(60_000)).unwrap();
    store.touch_sessions(&ids, at(50_000)).unwrap();
    store.touch_sessions(&[], at(70_000)).unwrap();
    let seen: Vec<i64> = (1..=4).map(|n| read(store, &key(n).session(1)).last_seen.0).collect();
    assert_eq!(seen, [60_000, 20, 60_000, 20]);
    assert_eq!(read(store, "dev-shop-1.1").times_stale, 0, "a sign of life");
    // A row that was read before the touch and is written after it.
    store.upsert_session(&session(1, 1)).unwrap();
    assert_eq!(read(store, "dev-shop-1.1").last_seen, at(60_000));
}

pub(crate) fn r1_7_an_end_is_terminated_or_crashed(store: &mut Store) {
    let exits = [
        (Exit::Done, SessionStatus::Terminated),
        (Exit::Stopped, SessionStatus::Terminated),
        (Exit::Crashed, SessionStatus::Crashed),
    ];
    for (issue, (exit, status)) in (1..).zip(exits) {
        store.upsert_session(&session(issue, 1)).unwrap();
        store.end_session(&key(issue).session(1), exit, at(50)).unwrap();
        assert_eq!(read(store, &key(issue).session(1)).status(), status, "{exit:?}");
    }
    assert_eq!(SessionRow { ended_at: Some(at(1)), exit: None, ..session(1, 1) }.status().name(), "crashed");
}

pub(crate) fn a_measurement_outlives_rows_that_are_written_later(store: &mut Store) {
    let gauge = |used| Some(Gauge { used_permille: used, source: Source::StatusLine });
    let spent = |tokens, turns| Spent { tokens, turns, ..Spent::default() };
    store.upsert_session(&registered(1, 1)).unwrap();
    store.session_measured("dev-shop-1.1", gauge(800).unwrap()).unwrap();
    store.spend(&project("shop"), Some(1), "dev-shop-1.1", "2026-03-02", spent(100, 5)).unwrap();
    store.spend(&project("shop"), Some(1), "dev-shop-1.1", "2026-03-02", spent(90, 6)).unwrap();
    store.session_measured("never-there", gauge(1).unwrap()).unwrap();
    assert!(store.session("never-there").unwrap().is_none());
    store.upsert_session(&registered(1, 1)).unwrap();
    let row = read(store, "dev-shop-1.1");
    assert_eq!((row.gauge, row.spent), (gauge(800), spent(100, 6)));
    store.session_measured("dev-shop-1.1", gauge(20).unwrap()).unwrap();
    assert_eq!(read(store, "dev-shop-1.1").gauge, gauge(20), "a compaction empties a context");
}

pub(crate) fn agents_are_the_newest_sessions_with_what_their_tasks_are_at(store: &mut Store) {
    let mut waiting = task(1);
    (waiting.state, waiting.phase) = (State::AwaitingCi, Some(Phase::AwaitingCi));
    commit(store, Change { task: Some(waiting), ..Change::new(at(1), "stepped") });
    let successor = SessionRow { predecessor: Some("dev-shop-1.9".into()), ..session(1, 10) };
    let mut bare = SessionRow { issue: None, project: project("harbour"), ..session(7, 1) };
    (bare.session, bare.identity) = ("gardener-harbour-1.1".into(), "gardener-harbour-1".into());
    bare.role = Role::Gardener;
    // Out of order: an old row may be written again after its successor's.
    for row in [&successor, &session(1, 9), &bare, &session(2, 1), &session(1, 9)] {
        store.upsert_session(row).unwrap();
    }
    store.end_session("dev-shop-2.1", Exit::Crashed, at(50)).unwrap();
    let ended = SessionRow { ended_at: Some(at(50)), exit: Some(Exit::Crashed), ..session(2, 1) };
    let work = WorkState::begin(key(1).identity(), "apples", at(5));
    put_work_state(store, &work, 1, None, at(5));
    let agent = |session: &SessionRow, state, phase| AgentRow {
        session: session.clone(),
        state,
        phase,
        work_phase: None,
        restarts: 0,
    };
    let first = AgentRow {
        work_phase: Some(work.work_phase),
        ..agent(&successor, Some(State::AwaitingCi), Some(Phase::AwaitingCi))
    };
    let (second, other) = (agent(&ended, None, None), agent(&bare, None, None));
    let shop = project("shop");
    assert_eq!(store.agents(Some(&shop), false).unwrap(), [first.clone(), second.clone()]);
    assert_eq!(store.agents(None, false).unwrap(), [other, first.clone(), second.clone()]);
    let before = AgentRow { session: session(1, 9), ..first.clone() };
    assert_eq!(store.agents(Some(&shop), true).unwrap(), [before, first, second]);
    assert_eq!(store.agents(None, true).unwrap().len(), 4);
    // The task moves on; the agent's line follows.
    let mut moved = task(1);
    moved.state = State::Working;
    commit(store, Change { task: Some(moved), ..Change::new(at(2), "stepped") });
    let line = store.agents(Some(&shop), false).unwrap().remove(0);
    assert_eq!((line.state, line.phase), (Some(State::Working), None));
}

pub(crate) fn a_session_counts_those_of_its_identity_that_died_before_it(store: &mut Store) {
    let follow = |store: &mut Store, generation: u32, exit: Option<Exit>| {
        let predecessor = (generation > 1).then(|| key(3).session(generation - 1));
        store.upsert_session(&SessionRow { predecessor, ..session(3, generation) }).unwrap();
        if let Some(exit) = exit {
            store.end_session(&key(3).session(generation), exit, at(50)).unwrap();
        }
    };
    // Whatever the core calls unexpected counts, and nothing else.
    let [one, two, three] = Exit::UNEXPECTED;
    for (generation, exit) in (1..).zip([one, Exit::Handoff, two, Exit::Stopped, three]) {
        follow(store, generation, Some(exit));
    }
    follow(store, 6, None);
    let shop = project("shop");
    let counted: Vec<u64> = store.agents(Some(&shop), true).unwrap().iter().map(|a| a.restarts).collect();
    assert_eq!(counted, [0, 1, 1, 2, 2, 3]);
    // Written again, it keeps its count.
    follow(store, 6, None);
    assert_eq!(store.agents(Some(&shop), false).unwrap()[0].restarts, 3);
}

pub(crate) fn events_of_a_session_are_counted(store: &mut Store) {
    let ended = |session: &str, dedup: &str| Change {
        session: Some(session.to_owned()),
        dedup: Some(dedup.to_owned()),
        ..Change { kind: Some("turn_ended".to_owned()), ..change(3, &[]) }
    };
    for (session, dedup) in [("dev-shop-3.1", "a"), ("dev-shop-3.1", "b"), ("dev-shop-3.2", "c")] {
        assert!(!store.knows_input(dedup).unwrap());
        commit(store, ended(session, dedup));
        assert!(store.knows_input(dedup).unwrap());
    }
    let counted = |task, session: &str| store.count_of_session(&key(task), session, "turn_ended").unwrap();
    assert_eq!(
        (counted(3, "dev-shop-3.1"), counted(3, "dev-shop-3.2"), counted(4, "dev-shop-3.1")),
        (2, 1, 0)
    );
    assert_eq!(store.count_of_session(&key(3), "dev-shop-3.1", "other").unwrap(), 0);
}

pub(crate) fn r2_4_a_work_state_is_committed_with_its_signal(store: &mut Store) {
    let mut state = WorkState::begin(key(3).identity(), "add a basket", at(5));
    state.observe(
        &Observation::Said { phase: Some(WorkPhase::Testing), summary: Some("'; DROP TABLE x".into()) },
        at(6),
    );
    let updated = Change {
        session: Some("dev-shop-3.1".into()),
        work_state: Some(state.clone()),
        signals: vec![(Signal::HookUpdated, json!({"work_phase": "testing"}))],
        ..change(3, &[])
    };
    commit(store, updated.clone());
    assert_eq!(store.work_state("dev-shop-3").unwrap(), Some(state.clone()));
    assert_eq!(store.work_state("dev-shop-4").unwrap(), None);
    // With an error beside it nothing of it is there.
    let lost = Change { project: None, task: None, ..updated };
    let mut later = state.clone();
    later.work_summary = "later".to_owned();
    let refused = Change { work_state: Some(later.clone()), ..lost };
    assert!(matches!(store.commit(&[refused]), Err(Error::Invalid { .. })));
    assert_eq!(store.signals(&EventFilter::default()).unwrap().len(), 1);
    put_work_state(store, &later, 3, Some("dev-shop-3.2"), at(9));
    assert_eq!(store.work_state("dev-shop-3").unwrap(), Some(later));
}

pub(crate) fn signals_follow_their_event_and_are_read_on_from_where_one_was(store: &mut Store) {
    let crashed = Change {
        session: Some("dev-shop-3.1".into()),
        dedup: Some("exit:dev-shop-3.1".into()),
        signals: vec![
            (Signal::AgentCrashed, json!({"exit": "crashed"})),
            (Signal::AgentRegistered, Value::Null),
        ],
        ..change(3, &[])
    };
    let (seq, _) = commit(store, crashed.clone());
    store.commit(&[crashed]).unwrap();
    let elsewhere = Change {
        project: Some(project("harbour")),
        signals: vec![(Signal::MergeReady, Value::Null)],
        ..Change::new(at(2000), "stepped")
    };
    let (second, _) = commit(store, elsewhere);
    let all = store.events(&EventFilter::default()).unwrap();
    let kinds: Vec<&str> = all.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["stepped", "AGENT_CRASHED", "AGENT_REGISTERED", "stepped", "MERGE_READY"]);
    let crash = &all[1];
    assert_eq!((crash.seq, crash.at, crash.data.clone()), (seq + 1, at(1000), json!({"exit": "crashed"})));
    assert_eq!((crash.project.clone(), crash.issue), (Some(project("shop")), Some(3)));
    assert_eq!(crash.session.as_deref(), Some("dev-shop-3.1"));

    let seqs = |filter: EventFilter| {
        store.signals(&filter).unwrap().iter().map(|event| event.seq).collect::<Vec<_>>()
    };
    let any = EventFilter::default;
    assert_eq!(seqs(any()), [seq + 1, seq + 2, second + 1]);
    assert_eq!(seqs(EventFilter { since: seq + 1, ..any() }), [seq + 2, second + 1]);
    assert_eq!(seqs(EventFilter { limit: 2, ..any() }), [seq + 1, seq + 2]);
    assert_eq!(seqs(EventFilter { limit: 2, latest: true, ..any() }), [seq + 2, second + 1]);
    assert_eq!(seqs(EventFilter { project: Some(project("harbour")), ..any() }), [second + 1]);
    assert_eq!(
        seqs(EventFilter { project: Some(project("shop")), issue: Some(3), ..any() }),
        [seq + 1, seq + 2]
    );
    let of = |kinds: &[&str]| seqs(EventFilter { kinds: kinds.iter().map(|&k| k.into()).collect(), ..any() });
    assert_eq!(of(&["MERGE_READY", "MERGE_READY", "stepped"]), [second + 1]);
    assert!(of(&["stepped"]).is_empty(), "an event that is no signal");
}

fn put_work_state(store: &mut Store, state: &WorkState, issue: u64, session: Option<&str>, when: Timestamp) {
    let mut change = Change::new(when, "work_observed");
    (change.project, change.issue) = (Some(project("shop")), Some(issue));
    change.session = session.map(str::to_owned);
    change.work_state = Some(state.clone());
    store.commit(&[change]).unwrap();
}
