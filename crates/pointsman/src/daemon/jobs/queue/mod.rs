//! The merge queue at work: builds the chain of candidates on the main branch, has the gate test what the plan asks
//! for, and lands what was tested as it is.
//!
//! What to do next is decided in the core ([`queue::plan`]); here it is done. Everything is found again after a
//! restart: the merge queue is in the store, candidates are built anew and are the same commits, verdicts are remembered by
//! tree, and whether something landed is read from git.

mod ahead;
mod audit;
mod chain;
mod gate;
mod handover;
mod landing;
mod notices;
mod outcomes;
mod outside;
mod pushes;
mod report;
mod reverts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use pointsman_adapters::forge::MergeTies;
use pointsman_adapters::git::candidate::{Built, Style};
use pointsman_core::config::{MergeStrategy, MergeStyle};
use pointsman_core::ids::Sha;
use pointsman_core::queue::{
    self, EntryId, GateVerdict, Plan, Policy, QueueFacts, Record, Runs, Strategy, Subject, Waiting,
};
use pointsman_core::task::{CiVerdict, QueueOutcome};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{EntryScope, EntryStatus, QueueEntry};

pub(super) use audit::look_at_main;
pub use outcomes::Outcomes;

use super::Jobs;
use crate::daemon::clock;
use crate::daemon::leaks;
use crate::daemon::served::Served;
use gate::{Finished, Gate, Running};

/// A red main is tested again after this long.
const RED_MAIN_AGAIN: Duration = Duration::from_secs(600);
/// How many decided branches the red rate is taken from.
const RECENT: u32 = 20;

/// What wakes the queue while it waits for a gate.
pub(super) enum WakeReason {
    Finished(Box<Finished>),
    /// Something changed: an entry came or went, the merge queue was paused or goes on.
    Look,
}

/// Works the project's merge queue through until nothing is left to do in it.
pub(super) fn work_through(jobs: &Arc<Jobs>, served: &Arc<Served>) {
    // It may have been read again since this job was ordered.
    let Some(served) = &jobs.served_now(&served.config.name) else { return };
    let (sender, signals) = channel();
    jobs.lock().wakers.insert(served.config.name.clone(), sender.clone());
    let mut line = QueueWorker::new(jobs, served, sender, signals);
    loop {
        match line.round() {
            Ok(Next::Again) => {}
            Ok(Next::Wait) if line.wait() => {}
            Ok(Next::Wait | Next::Nothing) => break,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::warn!(project = %served.config.name, error, "the merge queue failed for now");
                if !line.rest(&error) {
                    break;
                }
            }
        }
    }
    line.end_all_tests();
    line.remove_checkouts();
    jobs.lock().wakers.remove(&served.config.name);
}

/// What follows a round.
enum Next {
    /// Something was done: look again.
    Again,
    /// Gates run, or something may change.
    Wait,
    /// Nothing is left to do.
    Nothing,
}

/// The last run of the gate on a tree.
struct LastRun {
    at: Timestamp,
    log: Option<PathBuf>,
}

/// A candidate in the chain.
#[derive(Clone)]
struct QueuedCandidate {
    entry: QueueEntry,
    base: Sha,
    built: Built,
}

struct QueueWorker<'a> {
    jobs: &'a Arc<Jobs>,
    served: &'a Arc<Served>,
    gate: Option<Gate>,
    sender: Sender<WakeReason>,
    signals: Receiver<WakeReason>,
    /// The main branch, once it is known; unknown means that the forge has to be asked.
    main: Option<Sha>,
    /// Main was fetched, and what of the merge queue is on it has not been looked for yet.
    fetched: bool,
    trees: BTreeMap<Sha, Sha>,
    /// What candidates change of what they are built on although their branches did not.
    strays: BTreeMap<Sha, Vec<String>>,
    /// The secrets that were found in branches.
    looked_at: leaks::LookedAt,
    /// Commits that are checked out for a gate to come.
    checked_out: BTreeSet<Sha>,
    /// What is known of trees, by the store or by a gate of ours.
    records: BTreeMap<Sha, Record>,
    /// When the gate last ran on trees, and its log.
    last_runs: BTreeMap<Sha, LastRun>,
    /// Trees that are tested once more, whatever is known of them.
    retest: BTreeSet<Sha>,
    /// Candidates by what they are built on and whose they are: building is a function.
    built: BTreeMap<(Sha, EntryId), chain::BuildOutcome>,
    aside: Vec<QueuedCandidate>,
    /// Whether main was found red at the last look.
    main_was_red: Option<bool>,
    /// Gates at work, by tree.
    running: BTreeMap<Sha, Running>,
    /// How often something outside failed since a verdict, a landing or a quiet while. That a server can be read does not
    /// count: it may refuse every push.
    troubles: u32,
    /// The chain that is under test, in its order: whoever comes meanwhile goes behind it, however urgent, or every
    /// arrival would undo what has run so far.
    boarded: Vec<EntryId>,
    /// The trees of its candidates that are under test.
    tested: BTreeSet<Sha>,
    /// How often in a row the server refused a push.
    refusals: u32,
    /// A gate could not ask its server at all.
    outage: Option<String>,
    /// What ties pull requests to the forge's own ways of merging, as last read.
    ties: BTreeMap<EntryId, MergeTies>,
}

impl<'a> QueueWorker<'a> {
    fn new(
        jobs: &'a Arc<Jobs>,
        served: &'a Arc<Served>,
        sender: Sender<WakeReason>,
        signals: Receiver<WakeReason>,
    ) -> Self {
        Self {
            jobs,
            served,
            gate: Gate::of(&served.config),
            sender,
            signals,
            main: None,
            fetched: false,
            trees: BTreeMap::new(),
            strays: BTreeMap::new(),
            looked_at: leaks::LookedAt::default(),
            checked_out: BTreeSet::new(),
            records: BTreeMap::new(),
            last_runs: BTreeMap::new(),
            retest: BTreeSet::new(),
            built: BTreeMap::new(),
            aside: Vec::new(),
            main_was_red: None,
            running: BTreeMap::new(),
            troubles: 0,
            boarded: Vec::new(),
            tested: BTreeSet::new(),
            refusals: 0,
            outage: None,
            ties: BTreeMap::new(),
        }
    }

    /// Looks at everything once and does the most urgent thing.
    fn round(&mut self) -> anyhow::Result<Next> {
        if self.jobs.is_stopping() {
            return Ok(Next::Nothing);
        }
        while let Ok(signal) = self.signals.try_recv() {
            self.take(signal);
        }
        // What follows would be decided by a gate and a policy that the project no longer has.
        let served = self.jobs.served_now(&self.served.config.name);
        if !served.is_some_and(|served| Arc::ptr_eq(&served, self.served)) {
            return Ok(Next::Nothing);
        }
        for tree in self.jobs.take_retests(&self.served.config.name) {
            self.records.remove(&tree);
            self.retest.insert(tree);
        }
        if let Some(outage) = self.outage.take() {
            anyhow::bail!(outage);
        }
        if self.jobs.read(|store| store.queue_state(&self.served.config.name))?.stopped.is_some() {
            // What runs may end; its verdict is kept for when the merge queue goes on.
            if !self.running.is_empty() {
                return Ok(Next::Wait);
            }
            if let Err(error) = self.show_nothing_under_test() {
                tracing::warn!(project = %self.served.config.name, error = format!("{error:#}"), "the paused merge queue still shows a test");
            }
            return Ok(Next::Nothing);
        }
        let mut entries =
            self.jobs.read(|store| store.queue_entries(&self.served.config.name, EntryScope::Unfinished))?;
        if let Some(only) = self.jobs.only_entry() {
            entries.retain(|entry| entry.id == only);
        }
        // The branch of a task that cannot be read waits with it, and holds nobody up.
        entries.retain(|entry| self.is_readable(entry));
        if entries.is_empty() {
            return Ok(Next::Nothing);
        }
        let Some(entries) = self.hand_over(entries)? else { return Ok(Next::Again) };
        if entries.is_empty() {
            return Ok(Next::Wait);
        }
        let main = self.main_branch()?;
        if self.fetched && self.landed_by_earlier_push(&entries, &main)? {
            return Ok(Next::Again);
        }
        if !audit::look_at(self.jobs, self.served, &main)? {
            self.main = None;
            return Ok(Next::Again);
        }
        self.aside.retain(|member| entries.iter().any(|entry| entry.id == member.entry.id));
        let Some(entries) = self.still_valid(entries, &main)? else { return Ok(Next::Again) };
        let Some(members) = self.chain(&entries, &main)? else { return Ok(Next::Again) };
        let plan = self.plan(&main, &members)?;
        self.follow(plan, &main, &entries, &members)
    }

    /// Reports an entry that a push of an earlier daemon has brought to main; true if there was one.
    fn landed_by_earlier_push(&mut self, entries: &[QueueEntry], main: &Sha) -> anyhow::Result<bool> {
        for push in pushes::begun(&self.served.mirror)? {
            let Some(entry) = entries.iter().find(|entry| entry.id == push.entry) else { continue };
            let mirror = &self.served.mirror;
            if mirror.commit_exists(&push.candidate)? && mirror.is_ancestor(&push.candidate, main)? {
                let mut entry = entry.clone();
                (entry.base, entry.candidate) = (Some(push.base), Some(push.candidate.clone()));
                self.report(entry, QueueOutcome::Landed { sha: push.candidate });
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Nothing is tested while the queue is paused. An entry that is shown as under test may have landed when an earlier
    /// daemon was killed, so main is asked first: only what is not on it is back in the merge queue.
    fn show_nothing_under_test(&mut self) -> anyhow::Result<()> {
        let entries =
            self.jobs.read(|store| store.queue_entries(&self.served.config.name, EntryScope::Unfinished))?;
        let shown: Vec<QueueEntry> =
            entries.into_iter().filter(|entry| entry.status != EntryStatus::Queued).collect();
        if shown.is_empty() {
            return Ok(());
        }
        self.main = None;
        let main = self.main_branch()?;
        let mut waiting = Vec::new();
        for mut entry in shown {
            match self.landed(&entry, &main)? {
                Some(sha) => self.report(entry, QueueOutcome::Landed { sha }),
                None => {
                    entry.status = EntryStatus::Queued;
                    entry.tested_since = None;
                    waiting.push(entry);
                }
            }
        }
        self.write_down(waiting);
        Ok(())
    }

    fn plan(&mut self, main: &Sha, members: &[QueuedCandidate]) -> anyhow::Result<Plan> {
        let main_tree = self.tree_of(main)?;
        self.doubt_old_reds(&main_tree, members)?;
        let beside = self.aside.clone();
        let mut seen = |member: &QueuedCandidate| -> anyhow::Result<queue::CandidateRuns> {
            Ok(queue::CandidateRuns { entry: member.entry.id, runs: self.runs(&member.built.tree)? })
        };
        let planned = members.iter().map(&mut seen).collect::<anyhow::Result<_>>()?;
        let aside = beside.iter().map(&mut seen).collect::<anyhow::Result<_>>()?;
        let chain = QueueFacts { main: self.runs(&main_tree)?, members: planned, aside };
        Ok(queue::plan(&self.policy()?, &chain))
    }

    /// Red is not for ever: a service that was missing may be back. A red main is tested again after a while; and once it
    /// turned green without a change, what was red before that says nothing any more.
    fn doubt_old_reds(&mut self, main: &Sha, members: &[QueuedCandidate]) -> anyhow::Result<()> {
        let runs = self.runs(main)?;
        let Some(tested_at) = self.last_runs.get(main).map(|run| run.at) else { return Ok(()) };
        match runs.standing() {
            GateVerdict::Red if tested_at.after(RED_MAIN_AGAIN) <= clock::now() => {
                self.retest.insert(main.clone());
            }
            GateVerdict::Green if runs.red >= 2 => {
                let trees: Vec<Sha> =
                    self.aside.iter().chain(members).map(|member| member.built.tree.clone()).collect();
                for tree in trees {
                    let standing = self.runs(&tree)?.standing();
                    let is_older = self.last_runs.get(&tree).is_some_and(|run| run.at < tested_at);
                    if is_older && matches!(standing, GateVerdict::Red | GateVerdict::Suspect) {
                        self.records.remove(&tree);
                        self.retest.insert(tree);
                    }
                }
            }
            GateVerdict::Unknown
            | GateVerdict::Green
            | GateVerdict::Suspect
            | GateVerdict::Red
            | GateVerdict::Undecided => {}
        }
        Ok(())
    }

    /// Does the first thing the plan asks for.
    fn follow(
        &mut self,
        plan: Plan,
        main: &Sha,
        entries: &[QueueEntry],
        members: &[QueuedCandidate],
    ) -> anyhow::Result<Next> {
        if let Some(last) = plan.land {
            self.start_what_follows(entries, members, last)?;
            if !self.land(main, &members[..=last])? {
                // What was started stands on something that is not there.
                self.boarded.clear();
                self.tested.clear();
            }
            return Ok(Next::Again);
        }
        for (entry, fault) in &plan.eject {
            self.eject(*entry, *fault, members)?;
        }
        for entry in &plan.set_aside {
            self.aside.extend(members.iter().find(|member| member.entry.id == *entry).cloned());
        }
        self.aside.retain(|member| !plan.bring_back.contains(&member.entry.id));
        if !plan.eject.is_empty() || !plan.set_aside.is_empty() || !plan.bring_back.is_empty() {
            return Ok(Next::Again);
        }
        if plan.main_is_red {
            self.say_main_is_red(main);
        } else if self.main_was_red != Some(false) {
            notices::main_is_green(self.jobs, self.served);
        }
        self.main_was_red = Some(plan.main_is_red);
        let mut wanted = BTreeSet::new();
        self.tested.clear();
        self.boarded = members.iter().map(|member| member.entry.id).collect();
        let mut under_test = None;
        for subject in plan.test {
            let (commit, tree) = match subject {
                Subject::Main => (main.clone(), self.tree_of(main)?),
                Subject::Member(at) => (members[at].built.commit.clone(), members[at].built.tree.clone()),
                Subject::Aside(id) => match self.aside.iter().find(|member| member.entry.id == id) {
                    Some(member) => (member.built.commit.clone(), member.built.tree.clone()),
                    None => continue,
                },
            };
            wanted.insert(tree.clone());
            if let Subject::Member(at) = subject {
                self.tested.insert(tree.clone());
                under_test = under_test.max(Some(at));
            }
            self.test(commit, tree)?;
        }
        self.end_tests(&wanted);
        if let Some(last) = under_test {
            self.show_under_test(&members[..=last])?;
            return self.look_ahead(entries, members);
        }
        // With nothing under test the merge queue waits for the main branch to move.
        Ok(Next::Wait)
    }

    /// Nobody is blamed for a red main; those that were tried on it wait for a repair, and say so.
    fn say_main_is_red(&self, main: &Sha) {
        let tested_at = self.trees.get(main).and_then(|tree| self.last_runs.get(tree)).map(|run| run.at);
        let reason = words::queue::main_is_red(main.short(), tested_at);
        let tree = self.trees.get(main);
        let log = tree.and_then(|tree| self.records.get(tree)).map_or("", |record| match &record.last {
            CiVerdict::Failed { log, .. }
            | CiVerdict::TimedOut { log }
            | CiVerdict::Infra { log, .. }
            | CiVerdict::Unreached { log, .. } => log,
            CiVerdict::Passed => "",
        });
        let path = tree.and_then(|tree| self.last_runs.get(tree)).and_then(|run| run.log.as_deref());
        notices::main_is_red(self.jobs, self.served, &reason, (log, path));
        for member in &self.aside {
            // Read apart from what follows: the loop needs the reader to write the entry down.
            let known = self.jobs.read(|store| store.queue_entry(member.entry.id));
            if let Ok(Some(mut entry)) = known
                && entry.reason.as_ref() != Some(&reason)
            {
                tracing::warn!(project = %self.served.config.name, branch = entry.branch, reason);
                entry.reason = Some(reason.clone());
                self.write_down(vec![entry]);
            }
        }
    }

    /// Waits for something to happen; false if the daemon stops.
    fn wait(&mut self) -> bool {
        let pace = self.served.config.timing.forge_poll.duration();
        match self.signals.recv_timeout(pace) {
            Ok(signal) => self.take(signal),
            // Somebody may have moved main meanwhile.
            Err(RecvTimeoutError::Timeout) => {
                (self.main, self.troubles) = (None, 0);
                self.ties.clear();
            }
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        !self.jobs.is_stopping()
    }

    /// After trouble outside: says so, waits a while, longer each time, and looks at everything anew. False if the
    /// daemon stops.
    fn rest(&mut self, error: &str) -> bool {
        const FIRST: Duration = Duration::from_secs(1);
        self.main = None;
        let doubled = FIRST.saturating_mul(1u32.checked_shl(self.troubles.min(16)).unwrap_or(u32::MAX));
        self.troubles += 1;
        let waiting =
            self.jobs.read(|store| store.queue_entries(&self.served.config.name, EntryScope::Unfinished));
        if let Some(mut first) = waiting.ok().and_then(|entries| entries.into_iter().next()) {
            first.reason = Some(words::daemon::queue::not_now(error));
            self.write_down(vec![first]);
        }
        let until = Instant::now() + doubled.min(self.served.config.timing.forge_poll.duration().max(FIRST));
        while let Ok(signal) = self.signals.recv_timeout(until.saturating_duration_since(Instant::now())) {
            self.take(signal);
            if self.jobs.is_stopping() {
                return false;
            }
        }
        !self.jobs.is_stopping()
    }

    fn take(&mut self, signal: WakeReason) {
        match signal {
            WakeReason::Finished(finished) => self.finished(*finished),
            WakeReason::Look => {}
        }
    }

    fn policy(&self) -> anyhow::Result<Policy> {
        let merge = &self.served.config.merge;
        Ok(match merge.strategy {
            MergeStrategy::Sequential => Policy { strategy: Strategy::Sequential, runners: 1 },
            // A confirming run goes beside the next batch.
            MergeStrategy::Batch => {
                Policy { strategy: Strategy::Batch { size: self.batch_size()? }, runners: 2 }
            }
            MergeStrategy::Speculative => {
                let depth = merge.depth.max(1) as usize;
                Policy { strategy: Strategy::Speculative { depth }, runners: depth }
            }
        })
    }

    /// How many candidates the chain has. A batch keeps its length while it is tested.
    fn window(&self) -> anyhow::Result<usize> {
        let strategy = self.policy()?.strategy;
        Ok(match strategy {
            Strategy::Batch { .. } if self.is_under_test() => self.boarded.len(),
            other => other.window(),
        })
    }

    fn is_under_test(&self) -> bool {
        self.tested.iter().any(|tree| self.running.contains_key(tree))
    }

    /// Smaller while many branches are red.
    fn batch_size(&self) -> anyhow::Result<usize> {
        let decided = self.jobs.read(|store| store.decided_entries(&self.served.config.name, RECENT))?;
        let told = decided.iter().filter(|e| matches!(e.status, EntryStatus::Landed | EntryStatus::Red));
        let reds = told.clone().filter(|e| e.status == EntryStatus::Red).count();
        Ok(queue::batch_size(self.served.config.merge.batch_size.max(1) as usize, reds, told.count()))
    }

    fn style(&self, entry: &QueueEntry) -> Style {
        style_of(self.merge_style(entry))
    }

    /// How an entry lands: its own way, or the project's.
    fn merge_style(&self, entry: &QueueEntry) -> MergeStyle {
        let all = [MergeStyle::Rebase, MergeStyle::Merge, MergeStyle::Squash];
        let own = all.into_iter().find(|style| entry.style.as_deref() == Some(style.as_str()));
        own.unwrap_or(self.served.config.merge.style)
    }

    /// What is known of a tree. Without a gate everything is green.
    fn runs(&mut self, tree: &Sha) -> anyhow::Result<Runs> {
        let Some(gate) = &self.gate else { return Ok(Runs { green: 1, ..Runs::default() }) };
        if self.retest.contains(tree) {
            return Ok(Runs::default());
        }
        if let Some(record) = self.records.get(tree) {
            return Ok(record.runs);
        }
        let name = gate.name();
        let known = self
            .jobs
            .read(|store| super::checks::last_verdict(store, &self.served.config.name, tree, &name))?;
        let Some((record, row)) = known else { return Ok(Runs::default()) };
        let runs = record.runs;
        self.last_runs.insert(tree.clone(), LastRun { at: row.at, log: row.log_path });
        self.records.insert(tree.clone(), record);
        Ok(runs)
    }

    fn tree_of(&mut self, commit: &Sha) -> anyhow::Result<Sha> {
        if let Some(tree) = self.trees.get(commit) {
            return Ok(tree.clone());
        }
        let tree = self.served.mirror.tree_of(commit)?;
        self.trees.insert(commit.clone(), tree.clone());
        Ok(tree)
    }

    fn is_green(&mut self, commit: &Sha) -> anyhow::Result<bool> {
        let tree = self.tree_of(commit)?;
        Ok(self.runs(&tree)?.standing() == GateVerdict::Green)
    }

    /// Entries in the order in which they land.
    fn in_order(&self, entries: Vec<QueueEntry>) -> Vec<QueueEntry> {
        let waiting: Vec<Waiting> = entries
            .iter()
            .map(|e| Waiting { id: e.id, priority: e.priority, requested_at: e.requested_at })
            .collect();
        let mut by_id: BTreeMap<EntryId, QueueEntry> = entries.into_iter().map(|e| (e.id, e)).collect();
        let ageing = self.served.config.merge.ageing.duration();
        let mut order = queue::in_order(&waiting, clock::now(), ageing);
        // Also when its gate has just ended: what it said is about this order.
        let place = |id: &EntryId| self.boarded.iter().position(|b| b == id).unwrap_or(usize::MAX);
        order.sort_by_key(place);
        order.into_iter().filter_map(|id| by_id.remove(&id)).collect()
    }
}

/// The style of a candidate, as the configuration names it.
pub(in crate::daemon) fn style_of(style: MergeStyle) -> Style {
    match style {
        MergeStyle::Rebase => Style::Rebase,
        MergeStyle::Merge => Style::Merge,
        MergeStyle::Squash => Style::Squash,
    }
}
