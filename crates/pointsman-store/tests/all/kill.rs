//! Kill -9 at any moment: what is on disk then is what the next daemon finds.

use std::fs;
use std::path::{Path, PathBuf};

use pointsman_core::task::Effect;
use pointsman_store::{EventFilter, Store};
use tempfile::TempDir;

use crate::world::{Fresh, at, change, commit, lane, message, nobody};

/// The files as a killed daemon would leave them: no clean close, no shared memory.
fn as_if_killed(path: &Path) -> (TempDir, PathBuf) {
    let grave = tempfile::tempdir().unwrap();
    let copy = grave.path().join("pointsman.db");
    fs::copy(path, &copy).unwrap();
    fs::copy(log_of(path), log_of(&copy)).unwrap();
    (grave, copy)
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

#[test]
fn every_commit_that_returned_is_found_after_a_kill() {
    let mut fresh = Fresh::new();
    for issue in 1..=20 {
        commit(&mut fresh.store, change(issue, &[Effect::ClaimIssue, message(1)]));
        let (_grave, copy) = as_if_killed(&fresh.path());
        let reader = Store::open_read_only(&copy).unwrap();
        assert_eq!(reader.last_seq().unwrap(), i64::try_from(issue).unwrap(), "a reader without a daemon");
        drop(reader);
        let store = Store::open(&copy).unwrap();
        assert_eq!(store.tasks(None).unwrap(), fresh.store.tasks(None).unwrap());
        assert_eq!(
            store.due_effects(at(0), nobody).unwrap(),
            fresh.store.due_effects(at(0), nobody).unwrap()
        );
    }
}

#[test]
fn a_commit_torn_at_any_byte_is_there_as_a_whole_or_not_at_all() {
    let mut fresh = Fresh::new();
    const COMMITS: u64 = 8;
    for issue in 1..=COMMITS {
        commit(&mut fresh.store, change(issue, &[Effect::ClaimIssue, message(1)]));
    }
    let whole = fs::metadata(log_of(&fresh.path())).unwrap().len();
    let mut seen = std::collections::BTreeSet::new();
    // An odd step meets headers, page boundaries and the middle of pages.
    for length in (0..=whole).rev().step_by(4_001) {
        let (_grave, copy) = as_if_killed(&fresh.path());
        let log = fs::OpenOptions::new().write(true).open(log_of(&copy)).unwrap();
        log.set_len(length).unwrap();
        let store = Store::open(&copy).unwrap();
        let events = store.events(&EventFilter::default()).unwrap();
        let survived = u64::try_from(events.len()).unwrap();
        assert_eq!(store.tasks(None).unwrap().len(), events.len());
        for issue in 1..=COMMITS {
            let (effects, messages) = if issue <= survived { (2, 1) } else { (0, 0) };
            assert_eq!(store.pending_effects(&lane(issue)).unwrap().len(), effects);
            assert_eq!(store.messages(&lane(issue)).unwrap().len(), messages);
        }
        seen.insert(survived);
    }
    assert_eq!(seen, (0..=COMMITS).collect(), "every cut between commits was met");
}

#[test]
fn a_number_is_never_given_twice_even_if_its_commit_was_the_last() {
    let mut fresh = Fresh::new();
    let (seq, ids) = commit(&mut fresh.store, change(1, &[Effect::ClaimIssue]));
    let (_grave, copy) = as_if_killed(&fresh.path());
    let mut store = Store::open(&copy).unwrap();
    let (next, next_ids) = commit(&mut store, change(1, &[Effect::ClaimIssue]));
    assert!(next > seq && next_ids[0] > ids[0]);
}
