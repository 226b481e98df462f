//! One transaction: all of it or nothing.

use pointsman_core::snapshot::Kind;
use pointsman_core::task::{Effect, Headline, State};
use pointsman_core::value::Following;
use pointsman_core::{gardener, hand_in};
use pointsman_store::{Change, Committed, Error, EventFilter, Memory, Retry, SessionScope, Store, Write};
use serde_json::json;

use crate::world::{at, change, commit, key, lane, message, nobody, project, session, task};

pub(crate) fn a_change_is_an_event_a_snapshot_and_its_effects(store: &mut Store) {
    let mut working = task(7);
    working.state = State::Working;
    let (seq, ids) = commit(
        store,
        Change {
            session: Some(key(7).session(1)),
            data: json!({"phase": "awaiting_ci"}),
            task: Some(working.clone()),
            effects: vec![Effect::SyncBranch, message(1)],
            ..Change::new(at(5), "phase_claimed")
        },
    );
    let events = store.events(&EventFilter::default()).unwrap();
    assert_eq!(events.len(), 1);
    let event = &events[0];
    assert_eq!((event.seq, event.at, event.kind.as_str()), (seq, at(5), "phase_claimed"));
    assert_eq!((event.project.clone(), event.issue), (Some(project("shop")), Some(7)));
    assert_eq!(event.session.as_deref(), Some("dev-shop-7.1"));
    assert_eq!(event.data, json!({"phase": "awaiting_ci"}));
    assert_eq!(store.last_seq().unwrap(), seq);
    assert_eq!(store.task(&key(7)).unwrap(), Some(working));

    let pending = store.pending_effects(&lane(7)).unwrap();
    let listed: Vec<_> = pending.iter().map(|out| (out.id, out.key.clone(), out.attempts)).collect();
    assert_eq!(listed, [(ids[0], format!("{seq}.0"), 0), (ids[1], format!("{seq}.1"), 0)]);
    assert_eq!(pending[0].effect, Effect::SyncBranch);
    let messages = store.messages(&lane(7)).unwrap();
    assert_eq!(messages.len(), 1, "only the delivery is a message");
    assert_eq!((messages[0].id, messages[0].headline), (ids[1], Headline::CiFailed));
}

pub(crate) fn changes_of_one_commit_keep_their_order(store: &mut Store) {
    let many: Vec<Change> = (1..=200).map(|issue| change(issue, &[Effect::ClaimIssue])).collect();
    let committed = store.commit(&many).unwrap();
    let seqs: Vec<i64> = committed
        .iter()
        .map(|done| match done {
            Committed::Done { seq, .. } => seq.unwrap(),
            Committed::Duplicate => panic!("no duplicate here"),
        })
        .collect();
    assert!(seqs.is_sorted_by(|a, b| a < b));
    let issues: Vec<u64> =
        store.events(&EventFilter::default()).unwrap().iter().filter_map(|event| event.issue).collect();
    assert_eq!(issues, (1..=200).collect::<Vec<_>>());
}

pub(crate) fn an_error_in_the_third_change_writes_none_of_them(store: &mut Store) {
    let (before, _) = commit(store, change(1, &[]));
    let no_task = Change { effects: vec![Effect::CleanUp], ..Change::new(at(2), "lost") };
    let named = Change { dedup: Some("hook:1".to_owned()), ..change(2, &[Effect::ClaimIssue]) };
    let changes = [named.clone(), change(3, &[message(1)]), no_task];
    assert!(matches!(store.commit(&changes), Err(Error::Invalid { .. })));

    assert_eq!(store.last_seq().unwrap(), before);
    assert_eq!(store.tasks(None).unwrap().len(), 1);
    assert_eq!(store.due_effects(at(i64::MAX), nobody).unwrap(), []);
    assert_eq!(store.messages(&lane(3)).unwrap(), []);
    // The input of the rolled-back change is not taken for seen.
    commit(store, named);
}

pub(crate) fn a_change_about_two_tasks_is_refused(store: &mut Store) {
    let wrong = Change { issue: Some(8), ..change(7, &[]) };
    assert!(matches!(store.commit(&[wrong]), Err(Error::Invalid { .. })));
    assert_eq!(store.last_seq().unwrap(), 0);
}

pub(crate) fn the_same_input_counts_once(store: &mut Store) {
    let named = Change { dedup: Some("ci:shop:1:abc".to_owned()), ..change(1, &[Effect::VerifyMerge]) };
    // Twice in one commit, and again later.
    let committed = store.commit(&[named.clone(), named.clone()]).unwrap();
    assert!(matches!(committed[0], Committed::Done { .. }));
    assert_eq!(committed[1], Committed::Duplicate);
    let moved_on = Change { at: at(9), task: Some(task(1)), ..named };
    assert_eq!(store.commit(&[moved_on]).unwrap(), [Committed::Duplicate]);
    assert_eq!(store.events(&EventFilter::default()).unwrap().len(), 1);
    assert_eq!(store.pending_effects(&lane(1)).unwrap().len(), 1);
}

pub(crate) fn a_duplicate_still_settles_its_effect(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[Effect::SyncBranch, Effect::OpenPullRequest]));
    let synced = Change {
        dedup: Some("synced:1".to_owned()),
        settles: Some(ids[0]),
        ..Change::new(at(5), "branch_synced")
    };
    commit(store, Change { settles: None, ..synced.clone() });
    assert_eq!(store.pending_effects(&lane(1)).unwrap().len(), 2);
    assert_eq!(store.commit(&[synced]).unwrap(), [Committed::Duplicate]);
    let pending = store.pending_effects(&lane(1)).unwrap();
    assert_eq!(pending.iter().map(|out| out.id).collect::<Vec<_>>(), [ids[1]]);
}

pub(crate) fn an_effect_that_failed_frees_the_lane(store: &mut Store) {
    let (_, ids) = commit(store, change(1, &[Effect::OpenPullRequest, Effect::CleanUp]));
    let gave_up = Change { settles: Some(ids[0]), failure: Some("no such branch".into()), ..change(1, &[]) };
    commit(store, gave_up);
    let due = store.due_effects(at(2000), nobody).unwrap();
    assert_eq!(due.iter().map(|out| out.id).collect::<Vec<_>>(), [ids[1]]);
}

pub(crate) fn cursors_and_sessions_are_written_with_the_event(store: &mut Store) {
    let with_all = Change {
        cursors: vec![("comments.7".to_owned(), "41".to_owned())],
        sessions: vec![session(7, 1), session(7, 2)],
        ..change(7, &[])
    };
    commit(store, with_all);
    assert_eq!(store.cursor(Some(&project("shop")), "comments.7").unwrap().as_deref(), Some("41"));
    assert_eq!(store.sessions(None, SessionScope::All).unwrap(), [session(7, 1), session(7, 2)]);
}

pub(crate) fn hostile_text_comes_back_as_it_was(store: &mut Store) {
    let hostile = [
        "\0",
        "a\0b",
        "#(touch x) $(id) `id` --upload-pack=x",
        "'; DROP TABLE events; --",
        "\u{1b}[200~\r\n\u{7f}\u{202e}\u{feff}",
        "{\"not\": \"json",
        "",
        &"x\u{1}é\n".repeat(250_000),
    ];
    for (issue, text) in (1..).zip(hostile) {
        let mut task = task(issue);
        task.title = text.to_owned();
        let effect = Effect::Comment { marker: text.to_owned(), body: text.to_owned() };
        let (seq, _) = commit(
            store,
            Change {
                data: json!({ text: text }),
                dedup: Some(text.to_owned()),
                session: Some(text.to_owned()),
                task: Some(task.clone()),
                effects: vec![effect.clone()],
                cursors: vec![(text.to_owned(), text.to_owned())],
                ..Change::new(at(1), text)
            },
        );
        assert_eq!(store.task(&key(issue)).unwrap(), Some(task));
        assert_eq!(store.pending_effects(&lane(issue)).unwrap()[0].effect, effect);
        assert_eq!(store.cursor(Some(&project("shop")), text).unwrap().as_deref(), Some(text));
        let filter = EventFilter { since: seq - 1, kinds: vec![text.to_owned()], ..EventFilter::default() };
        let event = store.events(&filter).unwrap().remove(0);
        assert_eq!((event.kind.as_str(), event.session.as_deref()), (text, Some(text)));
        assert_eq!(event.data, json!({ text: text }));
    }
}

pub(crate) fn no_change_is_no_event(store: &mut Store) {
    assert_eq!(store.commit(&[]).unwrap(), []);
    assert_eq!(store.last_seq().unwrap(), 0);
    assert_eq!(store.next_effect_time(nobody).unwrap(), None);
}

pub(crate) fn a_time_is_found_in_the_log_without_reading_it(store: &mut Store) {
    assert_eq!(store.seq_before(at(5)).unwrap(), 0, "nothing is written");
    let times = [10, 10, 20, 20, 20, 30];
    let changes: Vec<Change> = times.iter().map(|time| Change::new(at(*time), "tick")).collect();
    store.commit(&changes).unwrap();
    for (time, before) in [(0, 0), (10, 0), (11, 2), (20, 2), (21, 5), (30, 5), (31, 6), (99, 6)] {
        assert_eq!(store.seq_before(at(time)).unwrap(), before, "{time}");
    }
}

pub(crate) fn a_commit_has_a_key_that_tells_whether_it_happened(store: &mut Store) {
    let key = store.next_key();
    assert!(!store.has_happened(&key).unwrap());
    commit(store, change(1, &[]));
    assert!(store.has_happened(&key).unwrap());
    let next = store.next_key();
    assert_ne!(next, key);
    let wrong = Change { issue: Some(8), ..change(7, &[]) };
    store.commit(&[wrong]).unwrap_err();
    assert_eq!((store.next_key(), store.has_happened(&next).unwrap()), (next.clone(), false));
    assert_eq!(store.commit(&[]).unwrap(), [], "nothing to write is no commit");
    assert_eq!(store.next_key(), next);
}

pub(crate) fn events_are_numbered_in_their_project_without_gaps(store: &mut Store) {
    let of = |project: Option<&str>| Change {
        project: project.map(crate::world::project),
        ..Change::new(at(1), "happened")
    };
    store.commit(&[of(Some("shop")), of(Some("harbour")), of(None), of(Some("shop"))]).unwrap();
    // What is refused uses no number up.
    let refused = Change { effects: vec![Effect::CleanUp], ..of(Some("shop")) };
    store.commit(&[of(Some("shop")), refused]).unwrap_err();
    store.commit(&[of(Some("shop")), of(None)]).unwrap();
    let numbers: Vec<_> = store
        .events(&EventFilter::default())
        .unwrap()
        .into_iter()
        .map(|event| (event.seq, event.project.map(|name| name.to_string()), event.project_seq))
        .collect();
    let (shop, harbour) = (Some("shop".to_owned()), Some("harbour".to_owned()));
    assert_eq!(
        numbers,
        [
            (1, shop.clone(), 1),
            (2, harbour, 1),
            (3, None, 1),
            (4, shop.clone(), 2),
            (5, shop, 3),
            (6, None, 2)
        ]
    );
}

pub(crate) fn what_has_a_history_is_not_written_without_an_event(store: &mut Store) {
    let memory = Memory { name: "gardener".into(), version: 1, snapshot: json!({}) };
    let silent = |fill: fn(&mut Change)| {
        let mut change = Change { project: Some(project("shop")), ..Change::quiet(at(1), Vec::new()) };
        fill(&mut change);
        change
    };
    let mut changes = vec![
        silent(|change| change.task = Some(task(1))),
        silent(|change| change.writes.push(Write::QueueResumed { project: project("shop") })),
        silent(|change| change.dedup = Some("hook:1".into())),
    ];
    changes.push(Change { memories: vec![memory], ..silent(|_| ()) });
    for change in changes {
        assert!(matches!(store.commit(&[change]), Err(Error::Invalid { .. })));
    }
    assert_eq!(store.last_seq().unwrap(), 0);
}

pub(crate) fn a_memory_comes_back_as_it_was_and_one_that_cannot_be_read_stops_nobody_else(store: &mut Store) {
    let shop = project("shop");
    assert_eq!(store.memory::<Following>(&shop, "results").unwrap(), None);
    let following = Following { seq: 7, ..Following::default() };
    let remember = |memories: Vec<Memory>| Change {
        project: Some(project("shop")),
        memories,
        ..Change::new(at(1), "remembered")
    };
    let broken = Memory { name: "hand-in.gardener".into(), version: 1, snapshot: json!({ "opened": 12 }) };
    let newer = Memory { name: "gardener".into(), version: 9, snapshot: json!({}) };
    let fine = Memory::new("results", &following).unwrap();
    store.commit(&[remember(vec![fine, broken, newer])]).unwrap();
    assert_eq!(store.memory(&shop, "results").unwrap(), Some(following));
    for (name, found) in [
        ("hand-in.gardener", store.memory::<hand_in::Memory>(&shop, "hand-in.gardener").map(drop)),
        ("gardener", store.memory::<gardener::Memory>(&shop, "gardener").map(drop)),
    ] {
        let Err(error @ Error::Unreadable(_)) = found else { panic!("{name} was read: {found:?}") };
        assert_eq!(error.retry(), Retry::Never);
        assert!(error.to_string().contains(name), "{error}");
    }
    let listed = store.unreadable().unwrap();
    let names: Vec<_> = listed.iter().map(|one| (one.what, one.name.as_str(), one.version)).collect();
    assert_eq!(names, [(Kind::Memory, "gardener", 9), (Kind::Memory, "hand-in.gardener", 1)]);
}
