//! The queue played through in memory: what a policy costs before anybody pays for it, and a place to prove its rules.
//!
//! This is the executor in small. It keeps the duties that [`plan`] counts on; only git, the gate and the clock are
//! missing, which are whatever the caller says.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{
    CandidateRuns, EntryId, Fault, GateVerdict, Plan, Policy, QueueFacts, Runs, Strategy, Subject,
    batch_size, plan,
};
use crate::task::CiVerdict;

/// The branches that a candidate holds beside what main held at the beginning.
pub type Tree = BTreeSet<EntryId>;

/// A branch that was taken out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ejected {
    pub entry: EntryId,
    pub fault: Fault,
    /// The candidate that it was judged by; without the branch itself, its base.
    pub candidate: Tree,
}

/// A queue in the middle of its work.
#[derive(Clone, Debug)]
pub struct QueueSimulation {
    policy: Policy,
    window: usize,
    line: BTreeSet<EntryId>,
    aside: BTreeMap<EntryId, Tree>,
    running: Vec<Tree>,
    known: HashMap<Tree, Runs>,
    landed: Vec<EntryId>,
    landings: Vec<Tree>,
    ejected: Vec<Ejected>,
    suspected: BTreeSet<EntryId>,
}

/// The cost of a rehearsal in time and in runs of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// From the first start to the last decision, in units of one gate run.
    pub makespan: usize,
    pub runs: u32,
}

/// Plays `entries` branches through, the ones at the places `bad` (from 0) being red, with a gate that always takes the
/// same time and an executor that takes none.
pub fn cost(policy: Policy, entries: usize, bad: &BTreeSet<usize>) -> Cost {
    let number = |place: usize| EntryId(i64::try_from(place).unwrap_or(i64::MAX));
    let bad: Tree = bad.iter().copied().map(number).collect();
    let mut queue = QueueSimulation::new(policy, (0..entries).map(number));
    let mut makespan = 0;
    loop {
        queue.settle();
        if queue.running.is_empty() {
            return Cost { makespan, runs: queue.known.values().map(|runs| runs.green + runs.red).sum() };
        }
        // They end at the same moment, but are heard of one after another.
        for tree in queue.running.clone() {
            if queue.running.contains(&tree) {
                queue.finish(&tree, &gate(&tree, &bad));
                queue.settle();
            }
        }
        makespan += 1;
    }
}

fn gate(tree: &Tree, bad: &Tree) -> CiVerdict {
    if tree.is_disjoint(bad) {
        CiVerdict::Passed
    } else {
        CiVerdict::Failed { summary: String::new(), log: String::new() }
    }
}

impl QueueSimulation {
    /// These branches wait, in the order of their numbers; nothing is known.
    pub fn new(policy: Policy, line: impl IntoIterator<Item = EntryId>) -> Self {
        Self {
            policy,
            window: policy.strategy.window(),
            line: line.into_iter().collect(),
            aside: BTreeMap::new(),
            running: Vec::new(),
            known: HashMap::new(),
            landed: Vec::new(),
            landings: Vec::new(),
            ejected: Vec::new(),
            suspected: BTreeSet::new(),
        }
    }

    /// Plans and does what is planned until there is nothing to do but wait for the tests.
    pub fn settle(&mut self) {
        while self.step() {}
    }

    /// Plans once and does it; false if there is nothing to do but wait.
    pub fn step(&mut self) -> bool {
        self.measure();
        let Plan { land, eject, set_aside, bring_back, test, main_is_red: _ } =
            plan(&self.policy, &self.chain());
        if let Some(place) = land {
            self.land(place);
        } else if !eject.is_empty() {
            eject.into_iter().for_each(|(entry, fault)| self.eject(entry, fault));
        } else if !set_aside.is_empty() {
            // Only the first entry is ever set aside.
            let candidate = self.candidate(0);
            self.suspected.extend(&set_aside);
            self.aside.extend(set_aside.into_iter().map(|entry| (entry, candidate.clone())));
        } else if !bring_back.is_empty() {
            self.aside.retain(|entry, _| !bring_back.contains(entry));
        } else {
            self.running = test.into_iter().map(|subject| self.tree(subject)).collect();
            return false;
        }
        true
    }

    /// The trees under test.
    pub fn running(&self) -> &[Tree] {
        &self.running
    }

    /// A test ended.
    pub fn finish(&mut self, tree: &Tree, verdict: &CiVerdict) {
        self.running.retain(|other| other != tree);
        let runs = self.known.entry(tree.clone()).or_default();
        *runs = runs.and(verdict);
    }

    /// A crash: verdicts and landings are remembered, nothing else.
    pub fn restart(&mut self) {
        self.aside.clear();
        self.running.clear();
    }

    /// Those that landed, in order.
    pub fn landed(&self) -> &[EntryId] {
        &self.landed
    }

    /// The main branch after each landing.
    pub fn landings(&self) -> &[Tree] {
        &self.landings
    }

    /// Those that are out, in order.
    pub fn ejected(&self) -> &[Ejected] {
        &self.ejected
    }

    /// Those that were beside the chain at some time.
    pub fn suspected(&self) -> &BTreeSet<EntryId> {
        &self.suspected
    }

    /// The runs of every tree so far.
    pub fn known(&self) -> &HashMap<Tree, Runs> {
        &self.known
    }

    /// The input that the planner gets.
    pub fn chain(&self) -> QueueFacts {
        let runs = |tree: &Tree| self.known.get(tree).copied().unwrap_or_default();
        let members = self
            .members()
            .zip(self.candidates())
            .map(|(entry, tree)| CandidateRuns { entry, runs: runs(&tree) });
        let aside = self.aside.iter().map(|(entry, tree)| CandidateRuns { entry: *entry, runs: runs(tree) });
        QueueFacts { main: runs(&self.main()), members: members.collect(), aside: aside.collect() }
    }

    fn main(&self) -> Tree {
        self.landings.last().cloned().unwrap_or_default()
    }

    fn members(&self) -> impl Iterator<Item = EntryId> {
        self.line.iter().filter(|entry| !self.aside.contains_key(entry)).take(self.window).copied()
    }

    fn candidates(&self) -> impl Iterator<Item = Tree> {
        self.members().scan(self.main(), |tree, entry| {
            tree.insert(entry);
            Some(tree.clone())
        })
    }

    fn candidate(&self, place: usize) -> Tree {
        self.main().into_iter().chain(self.members().take(place + 1)).collect()
    }

    fn tree(&self, subject: Subject) -> Tree {
        match subject {
            Subject::Main => self.main(),
            Subject::Member(place) => self.candidate(place),
            Subject::Aside(entry) => self.aside[&entry].clone(),
        }
    }

    /// Chooses the length of the next batch, unless one is under test.
    fn measure(&mut self) {
        if let Strategy::Batch { size } = self.policy.strategy
            && !self.candidates().any(|tree| self.running.contains(&tree))
        {
            let reds = self.ejected.iter().filter(|out| out.fault == Fault::Red).count();
            self.window = batch_size(size, reds, reds + self.landed.len());
        }
    }

    fn land(&mut self, place: usize) {
        let (from, to) = (self.main(), self.candidate(place));
        let chain: Vec<_> = self.members().take(place + 1).collect();
        self.line.retain(|entry| !chain.contains(entry));
        self.landed.extend(chain);
        self.landings.push(to);
        if self.known.get(&from).is_none_or(|runs| runs.standing() != GateVerdict::Green) {
            self.aside.clear();
        }
    }

    fn eject(&mut self, entry: EntryId, fault: Fault) {
        let candidate = self.aside.remove(&entry).unwrap_or_else(|| self.candidate(0));
        self.line.remove(&entry);
        self.ejected.push(Ejected { entry, fault, candidate });
    }
}
