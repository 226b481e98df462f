//! Work that is done before it is needed, so that from the end of one gate to the begin of the next there is next to
//! nothing to do: candidates behind the chain, their checkouts, and what a landing must know.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use pointsman_adapters::git::candidate::Built;
use pointsman_adapters::git::changes;
use pointsman_core::ids::Sha;
use pointsman_core::queue::{EntryId, GateVerdict, Strategy, Subject};
use pointsman_store::QueueEntry;

use super::super::program;
use super::chain::BuildOutcome;
use super::gate::Gate;
use super::{Next, QueueWorker, QueuedCandidate};
use crate::daemon::served::Served;

/// Who helps while the merge queue builds.
const HELPERS: usize = 2;

/// Something that does not depend on anything else.
enum EarlyStep {
    /// What does this candidate change that its branch did not?
    Stray(Box<QueuedCandidate>),
    /// A checkout of this commit.
    CheckOut(Sha),
}

/// What came of errands.
#[derive(Default)]
struct EarlyResults {
    strays: Vec<(Sha, Vec<String>)>,
    checked_out: Vec<Sha>,
}

impl QueueWorker<'_> {
    /// The tests that will be asked for once these candidates have landed begin now: landing takes its time, and if it
    /// fails they are ended again. Only what was built ahead is looked at.
    pub(super) fn start_what_follows(
        &mut self,
        entries: &[QueueEntry],
        members: &[QueuedCandidate],
        last: usize,
    ) -> anyhow::Result<()> {
        let policy = self.policy()?;
        let landing = &members[last];
        let mut next = members[last + 1..].to_vec();
        for entry in self.behind(entries, members) {
            let base = next.last().map_or(&landing.built.commit, |member| &member.built.commit).clone();
            match self.built.get(&(base.clone(), entry.id)) {
                Some(BuildOutcome::Built(built)) if next.len() < policy.strategy.window() => {
                    next.push(QueuedCandidate { entry: entry.clone(), base, built: built.clone() });
                }
                Some(BuildOutcome::Built(_)) | None => break,
                Some(BuildOutcome::Conflict(_) | BuildOutcome::Nothing | BuildOutcome::Broken(_)) => {}
            }
        }
        self.trees.insert(landing.built.commit.clone(), landing.built.tree.clone());
        let plan = self.plan(&landing.built.commit, &next)?;
        self.tested.clear();
        self.boarded = next.iter().map(|member| member.entry.id).collect();
        for subject in plan.test {
            if let Subject::Member(at) = subject {
                let Built { commit, tree, .. } = next[at].built.clone();
                self.tested.insert(tree.clone());
                self.test(commit, tree)?;
            }
        }
        Ok(())
    }

    /// With many gates at once, the first need not wait until the last candidate is built: this one is tested in any case
    /// if nothing is known of it and of those ahead of it.
    pub(super) fn start_at_once(&mut self, members: &[QueuedCandidate]) -> anyhow::Result<()> {
        let Strategy::Speculative { depth } = self.policy()?.strategy else { return Ok(()) };
        // Suspects and main itself go first.
        if members.len() + self.aside.len() >= depth {
            return Ok(());
        }
        for member in members {
            if self.runs(&member.built.tree)?.standing() != GateVerdict::Unknown {
                return Ok(());
            }
        }
        match members.last().map(|member| member.built.clone()) {
            Some(Built { commit, tree, .. }) => self.test(commit, tree),
            None => Ok(()),
        }
    }

    /// While gates run: what a landing needs to know is found out, and the candidates behind the chain are built and
    /// checked out, until something happens.
    pub(super) fn look_ahead(
        &mut self,
        entries: &[QueueEntry],
        members: &[QueuedCandidate],
    ) -> anyhow::Result<Next> {
        let (served, stop, brought) =
            (self.served, AtomicBool::new(false), Mutex::new(EarlyResults::default()));
        let (give, take) = channel();
        let take = Mutex::new(take);
        for member in members.iter().filter(|member| !self.strays.contains_key(&member.built.commit)) {
            let _ = give.send(EarlyStep::Stray(Box::new(member.clone())));
        }
        let next = std::thread::scope(|scope| {
            for _ in 0..HELPERS {
                scope.spawn(|| run_errands(served, &take, &stop, &brought));
            }
            let next = self.build_ahead(entries, members, &give);
            if matches!(next, Ok(Next::Again) | Err(_)) {
                stop.store(true, Ordering::Relaxed);
            }
            drop(give);
            next
        });
        let EarlyResults { strays, checked_out } =
            brought.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.strays.extend(strays);
        self.checked_out.extend(checked_out);
        next
    }

    fn build_ahead(
        &mut self,
        entries: &[QueueEntry],
        members: &[QueuedCandidate],
        errands: &Sender<EarlyStep>,
    ) -> anyhow::Result<Next> {
        let Some(last) = members.last().filter(|member| self.tested.contains(&member.built.tree)) else {
            return Ok(Next::Wait);
        };
        let strategy = self.policy()?.strategy;
        let mut base = last.built.commit.clone();
        let mut left = strategy.window();
        let mut outdated = self.checked_out.clone();
        let runs_here = matches!(self.gate, Some(Gate::Command(_)));
        for entry in self.behind(entries, members) {
            if left == 0 {
                break;
            }
            if let Ok(signal) = self.signals.try_recv() {
                self.take(signal);
                return Ok(Next::Again);
            }
            if let BuildOutcome::Built(built) = self.made(entry, &base)? {
                base = built.commit;
                left -= 1;
                outdated.remove(&base);
                let is_tested = left == 0 || !matches!(strategy, Strategy::Batch { .. });
                if is_tested && runs_here && !self.checked_out.contains(&base) {
                    let _ = errands.send(EarlyStep::CheckOut(base.clone()));
                }
            }
        }
        for commit in outdated {
            self.checked_out.remove(&commit);
            program::forget_checkout(self.served, &commit);
        }
        Ok(Next::Wait)
    }

    /// Those in the merge queue that are neither in the chain nor beside it.
    fn behind<'e>(&self, entries: &'e [QueueEntry], members: &[QueuedCandidate]) -> Vec<&'e QueueEntry> {
        let placed: BTreeSet<EntryId> =
            members.iter().chain(&self.aside).map(|member| member.entry.id).collect();
        entries.iter().filter(|entry| !placed.contains(&entry.id)).collect()
    }

    /// Checkouts that no gate has taken.
    pub(super) fn remove_checkouts(&mut self) {
        for commit in std::mem::take(&mut self.checked_out) {
            program::forget_checkout(self.served, &commit);
        }
    }
}

fn run_errands(
    served: &Served,
    take: &Mutex<Receiver<EarlyStep>>,
    stop: &AtomicBool,
    brought: &Mutex<EarlyResults>,
) {
    let next = || take.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(errand) = next() {
        if stop.load(Ordering::Relaxed) {
            continue;
        }
        // What fails here is tried again when it is needed.
        match errand {
            EarlyStep::Stray(member) => {
                let QueuedCandidate { entry, base, built } = *member;
                let heads = std::slice::from_ref(&entry.head);
                if let Ok(stray) = changes::stray_paths(&served.mirror, &base, &built.commit, heads) {
                    let mut brought = brought.lock().unwrap_or_else(PoisonError::into_inner);
                    brought.strays.push((built.commit, stray));
                }
            }
            EarlyStep::CheckOut(commit) => {
                if program::check_out_ahead(served, &commit).is_ok() {
                    brought.lock().unwrap_or_else(PoisonError::into_inner).checked_out.push(commit);
                }
            }
        }
    }
}
