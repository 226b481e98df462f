//! What is counted and kept: spending, checkpoints, and the line's new columns.

use pointsman_core::session::budget::Spent;
use pointsman_core::time::Timestamp;
use pointsman_store::{CheckpointRow, Error, NewEntry, SessionRow, Store};

use crate::world::{at, key, project, session, sha};

const MONDAY: &str = "2026-03-02";
const TUESDAY: &str = "2026-03-03";

fn spent(tokens: u64) -> Spent {
    Spent { tokens, micro_usd: tokens * 10, turns: tokens / 100, millis: tokens * 3 }
}

fn report(store: &mut Store, issue: u64, generation: u32, day: &str, tokens: u64) {
    let session = key(issue).session(generation);
    store.spend(&project("shop"), Some(issue), &session, day, spent(tokens)).unwrap();
}

pub(crate) fn a_report_that_comes_twice_or_late_counts_once(store: &mut Store) {
    store.upsert_session(&SessionRow { spent: Spent::default(), ..session(3, 1) }).unwrap();
    for tokens in [100, 500, 500, 300] {
        report(store, 3, 1, MONDAY, tokens);
    }
    assert_eq!(store.spent_on_task(&key(3)).unwrap(), spent(500));
    assert_eq!(store.spent_on_day(None, MONDAY).unwrap(), spent(500));
    assert_eq!(store.session("dev-shop-3.1").unwrap().unwrap().spent, spent(500));
    // Each part for itself: one may be reported without the others.
    let turns = Spent { turns: 99, ..Spent::default() };
    store.spend(&project("shop"), Some(3), "dev-shop-3.1", MONDAY, turns).unwrap();
    assert_eq!(store.spent_on_task(&key(3)).unwrap(), Spent { turns: 99, ..spent(500) });
}

pub(crate) fn a_day_is_charged_what_it_adds(store: &mut Store) {
    report(store, 3, 1, MONDAY, 500);
    report(store, 3, 1, TUESDAY, 700);
    report(store, 3, 2, TUESDAY, 1000);
    report(store, 3, 1, "2026-03-05", 800);
    report(store, 4, 1, TUESDAY, 40);
    store.spend(&project("harbour"), None, "gardener-harbour-1.1", TUESDAY, spent(6)).unwrap();
    let shop = project("shop");
    let tokens = |store: &Store, project, day| store.spent_on_day(project, day).unwrap().tokens;
    assert_eq!(tokens(store, Some(&shop), MONDAY), 500);
    assert_eq!(tokens(store, Some(&shop), TUESDAY), 200 + 1000 + 40);
    assert_eq!(tokens(store, None, TUESDAY), 200 + 1000 + 40 + 6);
    assert_eq!(tokens(store, None, "2026-03-04"), 0);
    assert_eq!(tokens(store, None, "2026-03-05"), 100, "a quiet day between is no gap");
    assert_eq!(store.spent_on_task(&key(3)).unwrap(), spent(800).plus(spent(1000)));
    assert_eq!(store.spent_on_task(&key(9)).unwrap(), Spent::default());
}

pub(crate) fn a_clock_set_back_over_midnight_charges_nothing_twice(store: &mut Store) {
    report(store, 3, 1, TUESDAY, 100);
    report(store, 3, 1, MONDAY, 120);
    let day = |day| store.spent_on_day(None, day).unwrap();
    assert_eq!((day(MONDAY), day(TUESDAY)), (spent(120), Spent::default()));
    assert_eq!(store.spent_on_task(&key(3)).unwrap(), spent(120));
}

pub(crate) fn a_day_is_shared_out_by_role(store: &mut Store) {
    for (issue, role) in [(1, "dev"), (2, "dev"), (3, "review")] {
        store.upsert_session(&SessionRow { role: role.to_owned(), ..session(issue, 1) }).unwrap();
        report(store, issue, 1, MONDAY, 100);
        report(store, issue, 1, TUESDAY, 100 + issue);
    }
    report(store, 9, 1, TUESDAY, 5);
    let roles = store.spent_by_role_on_day(Some(&project("shop")), TUESDAY).unwrap();
    let tokens: Vec<_> = roles.iter().map(|(role, spent)| (role.as_str(), spent.tokens)).collect();
    assert_eq!(tokens, [("dev", 3), ("review", 3)]);
    assert!(store.spent_by_role_on_day(Some(&project("harbour")), TUESDAY).unwrap().is_empty());
}

pub(crate) fn a_day_that_is_none_is_refused(store: &mut Store) {
    for day in ["", "today", "2026-3-2", "02.03.2026", "2026-03-02T10", "２０26-03-02"] {
        let answer = store.spend(&project("shop"), Some(3), "dev-shop-3.1", day, spent(1));
        assert!(matches!(answer, Err(Error::Invalid { .. })), "{day}");
        assert!(matches!(store.spent_on_day(None, day), Err(Error::Invalid { .. })), "{day}");
    }
    assert_eq!(store.spent_on_task(&key(3)).unwrap(), Spent::default());
}

fn checkpoint(n: u64, when: i64) -> CheckpointRow {
    CheckpointRow {
        task: key(3),
        n,
        session: Some(key(3).session(1)),
        reference: format!("refs/pointsman/checkpoints/3/{n}"),
        commit: sha('c'),
        tree: sha('7'),
        at: at(when),
        why: "turn_end".to_owned(),
        files: 12,
    }
}

pub(crate) fn a_checkpoint_is_remembered_once_under_its_number(store: &mut Store) {
    assert_eq!(store.next_checkpoint_number(&key(3)).unwrap(), 1);
    assert_eq!(store.latest_checkpoint(&key(3)).unwrap(), None);
    for n in [1, 2, 2] {
        store.add_checkpoint(&checkpoint(n, 10)).unwrap();
    }
    let other = CheckpointRow { commit: sha('d'), ..checkpoint(2, 10) };
    assert!(matches!(store.add_checkpoint(&other), Err(Error::Invalid { .. })));
    store.add_checkpoint(&CheckpointRow { task: key(4), session: None, ..other }).unwrap();
    assert_eq!(store.checkpoints(&key(3)).unwrap(), [checkpoint(1, 10), checkpoint(2, 10)]);
    assert_eq!(store.latest_checkpoint(&key(3)).unwrap(), Some(checkpoint(2, 10)));
    assert_eq!(store.next_checkpoint_number(&key(3)).unwrap(), 3);
    assert_eq!(store.checkpoints(&key(4)).unwrap().len(), 1);
}

pub(crate) fn old_checkpoints_go_and_the_newest_stays(store: &mut Store) {
    let prunable = |store: &Store, keep, before| {
        let rows = store.prunable_checkpoints(&key(3), keep, before).unwrap();
        rows.iter().map(|row| row.n).collect::<Vec<_>>()
    };
    let (never, always) = (Timestamp(i64::MIN), Timestamp(i64::MAX));
    assert!(prunable(store, 0, always).is_empty());
    for n in 1..=5 {
        store.add_checkpoint(&checkpoint(n, i64::try_from(n).unwrap() * 100)).unwrap();
    }
    assert_eq!(prunable(store, 3, never), [1, 2]);
    assert!(prunable(store, 5, never).is_empty());
    assert_eq!(prunable(store, 5, at(300)), [1, 2]);
    assert_eq!(prunable(store, 4, at(300)), [1, 2]);
    assert_eq!(prunable(store, 1, never), [1, 2, 3, 4]);
    assert_eq!(prunable(store, 0, always), [1, 2, 3, 4]);
    assert!(store.forget_checkpoint(&key(3), 1).unwrap());
    assert!(!store.forget_checkpoint(&key(3), 1).unwrap());
    assert!(!store.forget_checkpoint(&key(3), 5).unwrap(), "its number would be given again");
    assert_eq!(store.next_checkpoint_number(&key(3)).unwrap(), 6);
    assert_eq!(prunable(store, 3, never), [2]);
}

pub(crate) fn an_entry_has_a_priority_attempts_and_a_style(store: &mut Store) {
    let new = NewEntry {
        project: project("shop"),
        branch: "a".to_owned(),
        issue: None,
        pr: None,
        identity: None,
        head: sha('a'),
        requested_at: at(10),
        priority: 0,
        worktree: None,
    };
    let id = store.enqueue(&new).unwrap();
    let mut entry = store.queue_entry(id).unwrap().unwrap();
    assert_eq!((entry.priority, entry.attempts, entry.style.as_deref()), (0, 0, None));
    (entry.priority, entry.attempts, entry.style) = (-2, 3, Some("squash".to_owned()));
    store.update_entry(&entry).unwrap();
    assert_eq!(store.queue_entry(id).unwrap(), Some(entry));
}
