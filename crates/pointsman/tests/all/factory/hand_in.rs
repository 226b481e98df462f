//! What a role hands in, and its place in the merge queue: written together, or not at all.

use pointsman::daemon::hand_in::{HandInEvent, HandInReport, memory, write};
use pointsman_core::hand_in::{HandIn, HandInFiles, Memory};
use pointsman_core::ids::Sha;
use pointsman_core::role::Role;
use pointsman_core::run::RunId;
use pointsman_store::{Change, EntryStatus, Error};
use serde_json::json;

use super::{Stage, at, shop};

fn sha(digit: &str) -> Sha {
    Sha::new(&digit.repeat(40)).unwrap()
}

impl Stage {
    /// How many commits there were.
    fn commits(&self) -> i64 {
        self.engine.store().next_key().split('.').nth(1).unwrap().parse().unwrap()
    }

    fn moved(&mut self, moved: HandInEvent) -> i64 {
        let before = self.commits();
        let told = HandInReport::Moved { commit: sha("a"), moved };
        write(&mut self.engine, &shop(), Role::Gardener, &told, at(1)).unwrap();
        self.commits() - before
    }

    fn remember(&mut self, memory: pointsman_store::Memory) {
        let mut change = Change::new(at(0), "remembered");
        change.project = Some(shop());
        change.memories.push(memory);
        self.engine.write(&[change]).unwrap();
    }
}

/// A kill between the two left it out of the queue and not remembered as taken out: it was stuck for good.
#[test]
fn it_enters_and_leaves_the_merge_queue_in_one_commit_with_its_memory() {
    let mut stage = Stage::new("");
    let taken = HandInFiles {
        run: RunId(5),
        commit: sha("a"),
        base: sha("b"),
        content: "k".into(),
        files: vec!["AGENTS.md".into()],
    };
    let open = HandIn { pr: Some(12), ..HandIn::new(Role::Gardener, taken) };
    let before = Memory { open: Some(open), ..Memory::default() };
    stage.remember(pointsman_store::Memory::new("hand-in.gardener", &before).unwrap());

    let mut last = None;
    for round in 0..2 {
        assert_eq!(stage.moved(HandInEvent::Entered), 1, "round {round}");
        let store = stage.engine.store();
        let open = memory(store, &shop(), Role::Gardener).unwrap().open.unwrap();
        let entry = store.queue_entry(open.entry.unwrap()).unwrap().unwrap();
        assert_eq!((entry.status, open.left), (EntryStatus::Queued, false));
        assert_ne!(Some(entry.id), last, "a new approval is a new entry");

        assert_eq!(stage.moved(HandInEvent::Left), 1, "round {round}");
        let store = stage.engine.store();
        let open = memory(store, &shop(), Role::Gardener).unwrap().open.unwrap();
        let entry = store.queue_entry(entry.id).unwrap().unwrap();
        assert_eq!((entry.status, open.left), (EntryStatus::Removed, true));
        last = Some(entry.id);
    }
    let moves: Vec<_> =
        stage.events("queue_moved").iter().map(|event| event.data["status"].clone()).collect();
    assert_eq!(moves, [json!("removed"), json!("removed")]);
    assert_eq!(stage.events("queue_entered").len(), 2);
}

#[test]
fn a_memory_that_cannot_be_read_is_neither_forgotten_nor_written_over() {
    let mut stage = Stage::new("");
    let snapshot = json!({ "open_pull_request": 12 });
    stage.remember(pointsman_store::Memory { name: "hand-in.gardener".into(), version: 1, snapshot });
    let told = HandInReport::Taken { run: RunId(6), taken: None, refused: Vec::new() };
    let refused = write(&mut stage.engine, &shop(), Role::Gardener, &told, at(1));
    assert!(matches!(refused, Err(Error::Unreadable(_))), "{refused:?}");
    assert_eq!(stage.engine.store().unreadable().unwrap().len(), 1, "it is still there");
    // The planner's is its own.
    write(&mut stage.engine, &shop(), Role::Planner, &told, at(1)).unwrap();
    assert_eq!(memory(stage.engine.store(), &shop(), Role::Planner).unwrap().looked, Some(RunId(6)));
}
