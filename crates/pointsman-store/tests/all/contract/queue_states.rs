//! The line in front of a main branch: stopped or at work, and audited.

use pointsman_core::time::Timestamp;
use pointsman_store::{Audit, EntryStatus, NewEntry, QueueRow, Stopped, StoppedBy, Store, VerdictRow};
use serde_json::json;

use crate::world::WriteOne as _;
use crate::world::{at, project, sha};

fn stopped(by: StoppedBy, at: Timestamp, reason: &str) -> Stopped {
    Stopped { at, by, reason: reason.to_owned() }
}

pub(crate) fn a_merge_queue_is_at_work_until_it_is_paused_and_keeps_its_first_reason(store: &mut Store) {
    let shop = project("shop");
    assert_eq!(store.queue_state(&shop).unwrap(), QueueRow::default());
    let first = stopped(StoppedBy::Person, at(1), "a release is under way");
    store.pause_queue(&shop, &first).unwrap();
    store.pause_queue(&shop, &stopped(StoppedBy::Audit, at(2), "later")).unwrap();
    assert_eq!(store.queue_state(&shop).unwrap().stopped, Some(first));
    assert_eq!(store.queue_state(&project("harbour")).unwrap().stopped, None);
    assert!(store.resume_line(&shop).unwrap());
    assert!(!store.resume_line(&shop).unwrap(), "it is at work already");
    assert_eq!(store.queue_state(&shop).unwrap().stopped, None);
    let refusal = stopped(StoppedBy::Refusal, at(3), "the server refused the push to main");
    store.pause_queue(&shop, &refusal).unwrap();
    assert_eq!(store.queue_state(&shop).unwrap().stopped, Some(refusal));
}

pub(crate) fn an_audit_is_counted_once_with_how_far_it_came(store: &mut Store) {
    let shop = project("shop");
    let quiet = Audit { after: None, upto: sha('a'), direct: 0, person: 2, alarm: None };
    store.audited(&shop, &quiet).unwrap();
    store.audited(&shop, &quiet).unwrap();
    let alarm = stopped(StoppedBy::Audit, at(3), "one commit past the queue");
    store
        .audited(
            &shop,
            &Audit {
                after: Some(sha('a')),
                upto: sha('b'),
                direct: 1,
                person: 1,
                alarm: Some(alarm.clone()),
            },
        )
        .unwrap();
    let row = store.queue_state(&shop).unwrap();
    assert_eq!((row.audited, row.direct_merges, row.person_merges), (Some(sha('b')), 1, 3));
    assert_eq!(row.stopped, Some(alarm.clone()));
    // A later, quiet audit does not let the line go on.
    store
        .audited(&shop, &Audit { after: Some(sha('b')), upto: sha('c'), direct: 0, person: 0, alarm: None })
        .unwrap();
    assert_eq!(store.queue_state(&shop).unwrap().stopped, Some(alarm));
    assert!(store.resume_line(&shop).unwrap());
    assert_eq!(store.queue_state(&shop).unwrap().direct_merges, 1, "what happened stays counted");
}

pub(crate) fn a_landing_is_found_by_its_candidate(store: &mut Store) {
    let shop = project("shop");
    let new = NewEntry {
        project: shop.clone(),
        branch: "a".to_owned(),
        issue: None,
        pr: None,
        identity: None,
        head: sha('a'),
        requested_at: at(1),
        priority: 4,
        worktree: Some("/trees/a".into()),
        style: None,
    };
    let id = store.enqueue(&new).unwrap();
    let mut entry = store.queue_entry(id).unwrap().unwrap();
    assert_eq!((entry.priority, entry.worktree.clone()), (4, Some("/trees/a".into())));
    assert_eq!(store.entry_of_candidate(&shop, &sha('c')).unwrap(), None);
    (entry.candidate, entry.status, entry.tested_since) = (Some(sha('c')), EntryStatus::Testing, Some(at(2)));
    entry.conflicts_with = Some("b".to_owned());
    store.update_entry(&entry).unwrap();
    assert_eq!(store.entry_of_candidate(&shop, &sha('c')).unwrap(), Some(entry.clone()));
    assert!(store.decided_entries(&shop, 5).unwrap().is_empty());
    entry.status = EntryStatus::Red;
    store.update_entry(&entry).unwrap();
    assert_eq!(store.entry_of_candidate(&shop, &sha('c')).unwrap(), None, "red never lands");
    assert_eq!(store.decided_entries(&shop, 5).unwrap(), [entry]);
}

pub(crate) fn a_gates_pace_is_the_middle_of_its_last_runs(store: &mut Store) {
    let shop = project("shop");
    assert_eq!(store.gate_pace(&shop, "ci").unwrap(), None);
    for (nth, (object, took)) in [('a', 30), ('b', 10), ('c', 20)].into_iter().enumerate() {
        let row = VerdictRow {
            verdict: json!({}),
            log_path: None,
            at: at(i64::try_from(nth).unwrap()),
            took_ms: Some(took),
        };
        store.remember_verdict(&shop, &sha(object), "ci", &row).unwrap();
    }
    assert_eq!(store.gate_pace(&shop, "ci").unwrap(), Some(20));
    assert_eq!(store.gate_pace(&shop, "merge").unwrap(), None);
}
