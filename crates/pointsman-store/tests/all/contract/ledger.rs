//! What is counted and kept: spending, checkpoints, and the line's new columns.

use pointsman_core::ids::ProjectName;
use pointsman_core::role::Role;
use pointsman_core::session::budget::{Spent, TokenClasses};
use pointsman_core::task::Exit;
use pointsman_store::{CheckpointRow, Error, NewEntry, SessionRow, Store};

use crate::world::WriteOne as _;
use crate::world::{at, key, project, session, sha};

const MONDAY: &str = "2026-03-02";
const TUESDAY: &str = "2026-03-03";

fn spent(tokens: u64) -> Spent {
    let classes = TokenClasses {
        input: tokens / 10,
        cache_writes: tokens / 5,
        cache_reads: tokens / 2,
        output: tokens / 20,
    };
    Spent { tokens, classes, micro_usd: tokens * 10, turns: tokens / 100, ..Spent::default() }
}

/// What sessions reported on a task; for how long they ran is another matter.
fn on_task(store: &Store, issue: u64) -> Spent {
    Spent { millis: 0, unreported_millis: 0, ..store.spent_on_task(&key(issue), at(0)).unwrap() }
}

/// The same of a day.
fn on_day(store: &Store, project: Option<&ProjectName>, day: &str) -> Spent {
    Spent { millis: 0, unreported_millis: 0, ..store.spent_on_day(project, day, at(0)).unwrap() }
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
    assert_eq!(on_task(store, 3), spent(500));
    assert_eq!(on_day(store, None, MONDAY), spent(500));
    assert_eq!(store.session("dev-shop-3.1").unwrap().unwrap().spent, spent(500));
    // Each part for itself: one may be reported without the others.
    let turns = Spent { turns: 99, ..Spent::default() };
    store.spend(&project("shop"), Some(3), "dev-shop-3.1", MONDAY, turns).unwrap();
    assert_eq!(on_task(store, 3), Spent { turns: 99, ..spent(500) });
}

pub(crate) fn a_day_is_charged_what_it_adds(store: &mut Store) {
    report(store, 3, 1, MONDAY, 500);
    report(store, 3, 1, TUESDAY, 700);
    report(store, 3, 2, TUESDAY, 1000);
    report(store, 3, 1, "2026-03-05", 800);
    report(store, 4, 1, TUESDAY, 40);
    store.spend(&project("harbour"), None, "gardener-harbour-1.1", TUESDAY, spent(6)).unwrap();
    let shop = project("shop");
    let tokens = |store: &Store, project, day| on_day(store, project, day).tokens;
    assert_eq!(tokens(store, Some(&shop), MONDAY), 500);
    assert_eq!(tokens(store, Some(&shop), TUESDAY), 200 + 1000 + 40);
    assert_eq!(tokens(store, None, TUESDAY), 200 + 1000 + 40 + 6);
    assert_eq!(tokens(store, None, "2026-03-04"), 0);
    assert_eq!(tokens(store, None, "2026-03-05"), 100, "a quiet day between is no gap");
    assert_eq!(on_task(store, 3), spent(800).plus(spent(1000)));
    assert_eq!(on_task(store, 9), Spent::default());
}

pub(crate) fn a_clock_set_back_over_midnight_charges_nothing_twice(store: &mut Store) {
    report(store, 3, 1, TUESDAY, 100);
    report(store, 3, 1, MONDAY, 120);
    let day = |day| on_day(store, None, day);
    assert_eq!((day(MONDAY), day(TUESDAY)), (spent(120), Spent::default()));
    assert_eq!(on_task(store, 3), spent(120));
}

pub(crate) fn a_day_is_shared_out_by_role(store: &mut Store) {
    for (issue, role) in [(1, Role::Dev), (2, Role::Dev), (3, Role::Review)] {
        store.upsert_session(&SessionRow { role, ..session(issue, 1) }).unwrap();
        report(store, issue, 1, MONDAY, 100);
        report(store, issue, 1, TUESDAY, 100 + issue);
    }
    report(store, 9, 1, TUESDAY, 5);
    let roles = store.spent_by_role_on_day(Some(&project("shop")), TUESDAY, at(0)).unwrap();
    let tokens: Vec<_> = roles.iter().map(|(role, spent)| (role.as_str(), spent.tokens)).collect();
    assert_eq!(tokens, [("dev", 3), ("review", 3)]);
    assert!(store.spent_by_role_on_day(Some(&project("harbour")), TUESDAY, at(0)).unwrap().is_empty());
}

pub(crate) fn an_issue_is_charged_for_its_reviews_and_its_task_is_not(store: &mut Store) {
    store.upsert_session(&session(3, 1)).unwrap();
    let review = "review-shop-7.1".to_owned();
    let row = SessionRow { session: review.clone(), identity: "review-shop-7".into(), ..session(3, 1) };
    store.upsert_session(&SessionRow { role: Role::Review, issue: None, ..row }).unwrap();
    report(store, 3, 1, MONDAY, 100);
    store.spend(&project("shop"), Some(3), &review, TUESDAY, spent(40)).unwrap();
    let issue = store.spent_on_issue(&key(3), at(0)).unwrap();
    assert_eq!((on_task(store, 3).tokens, issue.tokens), (100, 140));
    assert_eq!(issue.classes, spent(100).classes.plus(spent(40).classes));
    let roles = store.spent_by_role_on_issue(&key(3), at(0)).unwrap();
    assert_eq!((roles[&Role::Dev].tokens, roles[&Role::Review].tokens), (100, 40));
    assert_eq!(on_day(store, None, TUESDAY), spent(40));
}

pub(crate) fn time_of_sessions_that_told_nothing_is_counted_apart(store: &mut Store) {
    let hour = |n: i64| at(MONDAY_BEGINS + n * HOUR);
    for (generation, told) in [(1, Spent::default()), (2, spent(7))] {
        let row = SessionRow { created_at: hour(1), ended_at: Some(hour(3)), ..session(3, generation) };
        store.upsert_session(&SessionRow { spent: told, exit: Some(Exit::Stopped), ..row }).unwrap();
    }
    let all = store.spent_on_issue(&key(3), hour(9)).unwrap();
    assert_eq!((all.millis, all.unreported_millis), (4 * HOUR as u64, 2 * HOUR as u64));
    let day = store.spent_on_day(None, MONDAY, hour(9)).unwrap();
    assert_eq!(day.unreported_millis, 2 * HOUR as u64);
}

/// The first moment of [`MONDAY`].
const MONDAY_BEGINS: i64 = 20_514 * 86_400_000;
const HOUR: i64 = 3_600_000;

pub(crate) fn wall_time_is_counted_from_starts_and_ends_in_parallel_and_over_midnight(store: &mut Store) {
    let hour = |n: i64| at(MONDAY_BEGINS + n * HOUR);
    let run = |issue, generation, from: i64, to: Option<i64>| SessionRow {
        created_at: hour(from),
        ended_at: to.map(hour),
        exit: to.map(|_| Exit::Stopped),
        ..session(issue, generation)
    };
    // Two at once, one over midnight, one that still runs, and one of another project.
    for row in [run(3, 1, 1, Some(4)), run(4, 1, 2, Some(4)), run(3, 2, 22, Some(25)), run(4, 2, 26, None)] {
        store.upsert_session(&row).unwrap();
    }
    let other = SessionRow {
        project: project("harbour"),
        session: "dev-harbour-3.1".into(),
        ..run(3, 1, 1, Some(2))
    };
    store.upsert_session(&SessionRow { identity: "dev-harbour-3".into(), ..other }).unwrap();
    let hours = |spent: Spent| spent.millis as i64 / HOUR;
    let (shop, now) = (project("shop"), hour(30));
    assert_eq!(hours(store.spent_on_task(&key(3), now).unwrap()), 3 + 3);
    assert_eq!(hours(store.spent_on_task(&key(4), now).unwrap()), 2 + 4);
    assert_eq!(hours(store.spent_on_day(Some(&shop), MONDAY, now).unwrap()), 3 + 2 + 2);
    assert_eq!(hours(store.spent_on_day(Some(&shop), TUESDAY, now).unwrap()), 1 + 4);
    assert_eq!(hours(store.spent_on_day(Some(&shop), TUESDAY, hour(32)).unwrap()), 1 + 6, "time goes on");
    assert_eq!(hours(store.spent_on_day(None, MONDAY, now).unwrap()), 3 + 2 + 2 + 1);
    assert_eq!(hours(store.spent_on_day(Some(&shop), "2026-03-01", now).unwrap()), 0);
    assert_eq!(hours(store.spent_by_role_on_issue(&key(3), now).unwrap()[&Role::Dev]), 6);
    // A clock that was set back takes nothing away.
    assert_eq!(hours(store.spent_on_task(&key(4), hour(0)).unwrap()), 2);
}

pub(crate) fn a_session_after_a_death_is_a_restart_of_the_day_it_began(store: &mut Store) {
    let exits = [Exit::Crashed, Exit::Handoff, Exit::Exited, Exit::Stopped, Exit::IdleTimeout, Exit::Done];
    for (generation, exit) in (1u32..).zip(exits) {
        let day = if generation <= 3 { 0 } else { 24 };
        let begun = at(MONDAY_BEGINS + (day + i64::from(generation)) * HOUR);
        store
            .upsert_session(&SessionRow {
                created_at: begun,
                ended_at: Some(begun.after(std::time::Duration::from_secs(60))),
                exit: Some(exit),
                predecessor: (generation > 1).then(|| key(3).session(generation - 1)),
                ..session(3, generation)
            })
            .unwrap();
    }
    let now = at(MONDAY_BEGINS + 40 * HOUR);
    // After the crash; after the clean exit, a day later; after the time-out.
    assert_eq!(store.spent_on_task(&key(3), now).unwrap().restarts, 3);
    assert_eq!(store.spent_on_day(None, MONDAY, now).unwrap().restarts, 1);
    let roles = store.spent_by_role_on_day(Some(&project("shop")), TUESDAY, now).unwrap();
    assert_eq!((roles[&Role::Dev].restarts, roles[&Role::Dev].millis), (2, 3 * 60_000));
}

pub(crate) fn a_day_that_is_none_is_refused(store: &mut Store) {
    for day in ["", "today", "2026-3-2", "02.03.2026", "2026-03-02T10", "２０26-03-02"] {
        let answer = store.spend(&project("shop"), Some(3), "dev-shop-3.1", day, spent(1));
        assert!(matches!(answer, Err(Error::Invalid { .. })), "{day}");
        assert!(matches!(store.spent_on_day(None, day, at(0)), Err(Error::Invalid { .. })), "{day}");
    }
    assert_eq!(on_task(store, 3), Spent::default());
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
    let all = store.all_checkpoints(&project("shop")).unwrap();
    assert_eq!(all.iter().map(|c| (c.task.issue, c.n)).collect::<Vec<_>>(), [(3, 1), (3, 2), (4, 2)]);
    assert!(store.all_checkpoints(&project("harbour")).unwrap().is_empty());
}

pub(crate) fn a_checkpoint_can_be_forgotten_unless_it_is_the_newest(store: &mut Store) {
    for n in 1..=5 {
        store.add_checkpoint(&checkpoint(n, i64::try_from(n).unwrap() * 100)).unwrap();
    }
    assert!(store.forget_checkpoint(&key(3), 1).unwrap());
    assert!(!store.forget_checkpoint(&key(3), 1).unwrap());
    assert!(!store.forget_checkpoint(&key(3), 5).unwrap(), "its number would be given again");
    assert_eq!(store.next_checkpoint_number(&key(3)).unwrap(), 6);
    assert_eq!(store.checkpoints(&key(3)).unwrap().len(), 4);
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
        style: None,
    };
    let id = store.enqueue(&new).unwrap();
    let mut entry = store.queue_entry(id).unwrap().unwrap();
    assert_eq!((entry.priority, entry.attempts, entry.style.as_deref()), (0, 0, None));
    (entry.priority, entry.attempts, entry.style) = (-2, 3, Some("squash".to_owned()));
    store.update_entry(&entry).unwrap();
    assert_eq!(store.queue_entry(id).unwrap(), Some(entry));
}
