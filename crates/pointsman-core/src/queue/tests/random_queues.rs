//! Whole queues in a random world: who is bad, which tests flake, which runs fail for reasons of their own, in which order
//! they end, and when the daemon is killed.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::random_chains::policies;
use crate::queue::simulation::{QueueSimulation, Tree};
use crate::queue::{EntryId, Fault, GateVerdict, Policy, Runs};
use crate::task::CiVerdict;

#[derive(Clone, Debug)]
struct World {
    entries: i64,
    bad: Tree,
    at_odds: Option<(EntryId, EntryId)>,
    /// Main is red; green with this branch, if it is in line.
    repair: Option<EntryId>,
    /// One in so many good trees is red at first; 0: none.
    flakes: u64,
    /// A tree has up to so many outages before it is tested.
    outages: u64,
    seed: u64,
}

/// A number that depends on all bits of both.
fn mix(a: u64, b: u64) -> u64 {
    let z = (a ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl World {
    fn is_good(&self, tree: &Tree) -> bool {
        tree.is_disjoint(&self.bad)
            && self.repair.is_none_or(|repair| tree.contains(&repair))
            && self.at_odds.is_none_or(|(a, b)| !(tree.contains(&a) && tree.contains(&b)))
    }

    /// What the next run on this tree says; the same in each life of the daemon.
    fn verdict(&self, tree: &Tree, before: Runs) -> CiVerdict {
        let luck = tree.iter().fold(self.seed, |sum, entry| mix(sum, entry.0.unsigned_abs()));
        let flaky = self.flakes > 0 && mix(luck, 1).is_multiple_of(self.flakes);
        if u64::from(before.infra) < mix(luck, 2) % (self.outages + 1) {
            CiVerdict::Infra { reason: String::new(), log: String::new() }
        } else if !self.is_good(tree) || (flaky && before.red == 0) {
            CiVerdict::TimedOut { log: String::new() }
        } else {
            CiVerdict::Passed
        }
    }

    /// Plays until nothing is left to wait for; killed once in so many verdicts, if at all.
    fn play(&self, policy: Policy, kills: u64) -> QueueSimulation {
        let mut queue = QueueSimulation::new(policy, (0..self.entries).map(EntryId));
        let mut luck = mix(self.seed, 99);
        let most = 60 * u64::try_from(self.entries).unwrap() + 60;
        for _ in 0..most {
            let mut planned = 0;
            while queue.step() {
                planned += 1;
                assert!(planned < 1000, "plans for ever: {queue:?}");
            }
            let running = queue.running();
            assert!(running.len() <= policy.runners);
            luck = mix(luck, 3);
            let Some(tree) = running.get(usize::try_from(luck % 64).unwrap() % running.len().max(1)).cloned()
            else {
                return queue;
            };
            let before = queue.known().get(&tree).copied().unwrap_or_default();
            queue.finish(&tree, &self.verdict(&tree, before));
            if kills > 0 && mix(luck, 4).is_multiple_of(kills) {
                queue.restart();
            }
        }
        panic!("does not end: {queue:?}");
    }
}

/// What must be true of every queue that came to its end.
fn keeps_the_promises(world: &World, queue: &QueueSimulation) -> Result<(), TestCaseError> {
    for main in queue.landings() {
        let runs = queue.known().get(main).copied().unwrap_or_default();
        prop_assert!(runs.green > 0 && world.is_good(main), "landed without a green run: {main:?}");
    }
    for (tree, runs) in queue.known() {
        prop_assert!(runs.green + runs.red + runs.infra <= Runs::LIMIT, "{runs:?} on {tree:?}");
    }
    for out in queue.ejected().iter().filter(|out| out.fault == Fault::Red) {
        let mut base = out.candidate.clone();
        prop_assert!(base.remove(&out.entry));
        prop_assert!(world.is_good(&base) && !world.is_good(&out.candidate), "{out:?} is innocent");
    }
    let calm: Vec<_> = queue.landed().iter().filter(|entry| !queue.suspected().contains(entry)).collect();
    prop_assert!(calm.is_sorted(), "overtaken: {calm:?}");

    let left = queue.chain();
    let decided = queue.landed().len() + queue.ejected().len();
    prop_assert_eq!(decided + left.aside.len(), usize::try_from(world.entries).unwrap(), "lost or doubled");
    prop_assert!(left.members.is_empty());
    prop_assert!(left.aside.is_empty() || left.main.standing() == GateVerdict::Red, "wedged");
    Ok(())
}

fn worlds(outages: impl Strategy<Value = u64>) -> impl Strategy<Value = World> {
    let ids = |entries: i64| (0..entries).prop_map(EntryId);
    let shape = (1..14_i64).prop_flat_map(move |entries| {
        (
            Just(entries),
            prop::collection::btree_set(ids(entries), 0..4),
            prop::option::weighted(0.3, (ids(entries), ids(entries))),
            prop::option::weighted(0.3, ids(entries + 1)),
        )
    });
    (shape, prop_oneof![Just(0), Just(1), 2..6_u64], outages, any::<u64>()).prop_map(
        |((entries, bad, at_odds, repair), flakes, outages, seed)| {
            let at_odds = at_odds.filter(|(a, b)| a != b);
            World { entries, bad, at_odds, repair, flakes, outages, seed }
        },
    )
}

fn set(entries: impl IntoIterator<Item = EntryId>) -> BTreeSet<EntryId> {
    entries.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn exactly_the_bad_ones_are_out(world in worlds(0..2_u64), policy in policies(), kills in 0..6_u64) {
        let world = World { at_odds: None, ..world };
        let queue = world.play(policy, kills);
        keeps_the_promises(&world, &queue)?;
        let red = set(queue.ejected().iter().map(|out| out.entry));
        prop_assert!(queue.ejected().iter().all(|out| out.fault == Fault::Red), "two of three runs told enough");
        // On a red main that nobody repairs, nobody lands and nobody is blamed.
        let repaired = world.repair.is_none_or(|repair| repair.0 < world.entries && !world.bad.contains(&repair));
        let (bad, good) = (0..world.entries).map(EntryId).partition(|entry| world.bad.contains(entry));
        let expected: (BTreeSet<_>, BTreeSet<_>) = if repaired { (bad, good) } else { Default::default() };
        prop_assert_eq!((red, set(queue.landed().iter().copied())), expected);
        let undisturbed = world.play(policy, 0);
        prop_assert_eq!(set(undisturbed.landed().iter().copied()), set(queue.landed().iter().copied()));
    }

    #[test]
    fn promises_hold_in_any_weather(world in worlds(0..5_u64), policy in policies(), kills in 0..6_u64) {
        keeps_the_promises(&world, &world.play(policy, kills))?;
    }

    #[test]
    fn of_two_at_odds_the_second_is_out(first in 0..8_i64, gap in 1..8_i64, policy in policies(), seed in any::<u64>()) {
        let second = EntryId((first + gap).min(8));
        let at_odds = Some((EntryId(first), second));
        let world = World { entries: 9, bad: Tree::new(), at_odds, repair: None, flakes: 0, outages: 0, seed };
        let queue = world.play(policy, 0);
        keeps_the_promises(&world, &queue)?;
        prop_assert_eq!(queue.ejected().len(), 1);
        prop_assert_eq!(queue.ejected()[0].entry, second);
    }
}
