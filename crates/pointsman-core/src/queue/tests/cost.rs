//! What the strategies cost, in units of one gate run.

use std::collections::BTreeSet;

use crate::queue::simulation::{Cost, cost};
use crate::queue::{Policy, Strategy};

const SEQUENTIAL: Policy = Policy { strategy: Strategy::Sequential, runners: 1 };
const BATCH: Policy = Policy { strategy: Strategy::Batch { size: 8 }, runners: 2 };
const SPECULATIVE: Policy = Policy { strategy: Strategy::Speculative { depth: 8 }, runners: 8 };
const ENTRIES: usize = 50;

fn worst(policy: Policy, entries: usize) -> usize {
    (0..entries).map(|place| cost(policy, entries, &BTreeSet::from([place])).makespan).max().unwrap()
}

#[test]
fn without_a_bad_branch() {
    let none = BTreeSet::new();
    for entries in 0..25 {
        let runs = u32::try_from(entries).unwrap();
        assert_eq!(cost(SEQUENTIAL, entries, &none), Cost { makespan: entries, runs });
    }
    assert_eq!(cost(BATCH, ENTRIES, &none), Cost { makespan: 7, runs: 7 });
    assert_eq!(cost(SPECULATIVE, ENTRIES, &none).makespan, 7);
}

/// One bad branch, at the dearest of all places.
#[test]
fn one_bad_branch_anywhere() {
    // A confirming run; and one of main, if the first branch is the bad one and nothing has landed yet.
    assert_eq!(worst(SEQUENTIAL, 10), 12);
    assert!(worst(BATCH, ENTRIES) <= 12);
    assert!(worst(SPECULATIVE, ENTRIES) <= 8);
}

/// The table for people: `cargo test -p pointsman-core every_tenth -- --nocapture`.
#[test]
fn every_tenth_branch_bad() {
    for (name, policy, most) in
        [("sequential", SEQUENTIAL, 56), ("batch", BATCH, 29), ("speculative", SPECULATIVE, 11)]
    {
        let none = cost(policy, ENTRIES, &BTreeSet::new());
        let tenth = cost(policy, ENTRIES, &(0..ENTRIES).step_by(10).collect());
        println!("{name:11}   0 % red: {:2} T, {:2} runs", none.makespan, none.runs);
        println!("{name:11}  10 % red: {:2} T, {:2} runs", tenth.makespan, tenth.runs);
        assert!(tenth.makespan <= most, "{name}: {tenth:?}");
    }
}
