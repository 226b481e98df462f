//! The gate: one run of the project's tests on one candidate, on a thread of its own.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use pointsman_adapters::git::push::{Change, Expect, PushOutcome, PushRef};
use pointsman_adapters::git::{self, BranchName};
use pointsman_adapters::retry::Retry;
use pointsman_core::config::Config;
use pointsman_core::ids::Sha;
use pointsman_core::queue::Record;
use pointsman_core::task::CiVerdict;
use pointsman_core::words;

use super::super::checks::{self, Verdict};
use super::super::outside::wait_for_checks;
use super::super::program::{Program, Ran};
use super::super::{Jobs, run_number};
use super::{LastRun, QueueWorker, WakeReason, notices};
use crate::daemon::clock;
use crate::daemon::served::Served;

/// How long gates that are called off are waited for. One that asks a server may take longer to notice.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A gate at work.
pub(super) struct Running {
    /// The name of its program, by which it can be ended.
    name: String,
    /// Ends the wait for an outside CI.
    call_off: Sender<()>,
    /// Nobody wants to know any more.
    unwanted: bool,
}

/// What a gate said.
pub(in crate::daemon::jobs) struct Finished {
    tree: Sha,
    verdict: Option<CiVerdict>,
    /// Why the server could not be asked at all.
    outage: Option<String>,
    took: Duration,
    log_path: Option<PathBuf>,
}

/// Who tests candidates.
#[derive(Clone)]
pub(super) enum Gate {
    /// A command on this machine, in a clean checkout.
    Command(Vec<String>),
    /// The project's own CI, on a branch pushed for it.
    Checks,
}

impl Gate {
    pub(super) fn of(config: &Config) -> Option<Gate> {
        match config.gate() {
            Some(command) => Some(Gate::Command(command.to_vec())),
            None => config.gate_is_checks().then_some(Gate::Checks),
        }
    }

    /// Its name in the table of verdicts.
    pub(super) fn name(&self) -> String {
        match self {
            Gate::Command(command) => checks::gate_name(command),
            Gate::Checks => "checks".to_owned(),
        }
    }
}

impl QueueWorker<'_> {
    /// Has this commit tested, unless it is being tested already.
    pub(super) fn test(&mut self, commit: Sha, tree: Sha) -> anyhow::Result<()> {
        let Some(gate) = self.gate.clone() else { return Ok(()) };
        // One that is being ended says so, and is started anew then.
        if self.running.contains_key(&tree) {
            return Ok(());
        }
        self.checked_out.remove(&commit);
        let name = format!("{}-gate-{}-{}", self.served.config.name, tree.short(), run_number());
        let (call_off, unwanted) = channel();
        let test = Test {
            jobs: Arc::clone(self.jobs),
            served: Arc::clone(self.served),
            name: name.clone(),
            commit,
            tree: tree.clone(),
            unwanted,
        };
        let sender = self.sender.clone();
        std::thread::Builder::new().name("gate".to_owned()).spawn(move || {
            let (finished, ran) = test.run(&gate);
            // Without a listener the daemon stops, and the answer is owed again.
            let _ = sender.send(WakeReason::Finished(Box::new(finished)));
            // Only now its checkout is removed.
            drop(ran);
        })?;
        self.running.insert(tree, Running { name, call_off, unwanted: false });
        Ok(())
    }

    /// Ends the gates that nobody needs any more, with everything they started.
    pub(super) fn end_tests(&mut self, wanted: &BTreeSet<Sha>) {
        for (tree, running) in &mut self.running {
            if !wanted.contains(tree) && !running.unwanted {
                running.unwanted = true;
                // One that has just ended listens no more.
                let _ = running.call_off.send(());
                self.jobs.call_off(&running.name);
            }
        }
    }

    /// Ends all gates and waits until they are gone: the next look at the queue may begin at once, and should find nothing of
    /// this one at work. A daemon that stops does not wait here.
    pub(super) fn end_all_tests(&mut self) {
        self.end_tests(&BTreeSet::new());
        while !self.running.is_empty() && !self.jobs.is_stopping() {
            match self.signals.recv_timeout(END_LIMIT) {
                Ok(signal) => self.take(signal),
                Err(_) => return,
            }
        }
    }

    /// A gate's verdict is written down before anything follows from it.
    pub(super) fn finished(&mut self, finished: Finished) {
        let Finished { tree, verdict, outage, took, log_path } = finished;
        if let Some(running) = self.running.remove(&tree) {
            self.jobs.lock().called_off.remove(&running.name);
        }
        self.outage = outage.or(self.outage.take());
        let (Some(verdict), Some(gate)) = (verdict, &self.gate) else { return };
        self.troubles = 0;
        self.retest.remove(&tree);
        self.last_runs.insert(tree.clone(), LastRun { at: clock::now(), log: log_path.clone() });
        let record = Record::add(self.records.get(&tree), verdict);
        // Runs that told nothing about the code count for as long as this entry is looked at; they are not kept.
        if let Some(kept) = record.kept() {
            let verdict = Verdict { tree: &tree, gate: gate.name(), record: &kept, log_path, took };
            checks::remember(self.jobs, self.served, verdict);
        }
        self.records.insert(tree, record);
    }
}

/// The end of a test of main.
pub(super) enum MainTest {
    /// There is a verdict, or there is no gate.
    Over,
    /// Nothing could be learned.
    Later,
}

/// Tests a commit of main that the queue did not put there, and tells people if it is red.
pub(super) fn test_main(jobs: &Arc<Jobs>, served: &Arc<Served>, main: &Sha) -> anyhow::Result<MainTest> {
    let Some(gate) = Gate::of(&served.config) else { return Ok(MainTest::Over) };
    let tree = served.mirror.tree_of(main)?;
    let known = jobs.read(|store| checks::last_verdict(store, &served.config.name, &tree, &gate.name()))?;
    if known.is_some() {
        return Ok(MainTest::Over);
    }
    let name = format!("{}-gate-{}-{}", served.config.name, tree.short(), run_number());
    // Nobody calls it off: what is on main stays there.
    let (_call_off, unwanted) = channel();
    let (jobs_of_test, served_of_test) = (Arc::clone(jobs), Arc::clone(served));
    let test =
        Test { jobs: jobs_of_test, served: served_of_test, name, commit: main.clone(), tree, unwanted };
    let (finished, ran) = test.run(&gate);
    drop(ran);
    let Finished { tree, verdict, took, log_path, .. } = finished;
    let Some(verdict) = verdict else { return Ok(MainTest::Later) };
    let record = Record::add(None, verdict.clone());
    if let Some(kept) = record.kept() {
        let path = log_path.clone();
        checks::remember(
            jobs,
            served,
            Verdict { tree: &tree, gate: gate.name(), record: &kept, log_path: path, took },
        );
    }
    match &verdict {
        CiVerdict::Passed => notices::main_is_green(jobs, served),
        CiVerdict::Failed { log, .. }
        | CiVerdict::TimedOut { log }
        | CiVerdict::Infra { log, .. }
        | CiVerdict::Unreached { log, .. } => {
            let reason = words::queue::main_is_red(main.short(), Some(clock::now()));
            notices::main_is_red(jobs, served, &reason, (log, log_path.as_deref()));
        }
    }
    Ok(MainTest::Over)
}

/// One run of a gate.
struct Test {
    jobs: Arc<Jobs>,
    served: Arc<Served>,
    name: String,
    commit: Sha,
    tree: Sha,
    unwanted: Receiver<()>,
}

impl Test {
    fn run(self, gate: &Gate) -> (Finished, Option<Ran>) {
        let begun = Instant::now();
        let ran = match gate {
            Gate::Command(command) => self.run_here(command).map(|ran| (ran.verdict("gate"), Some(ran))),
            Gate::Checks => self.run_outside().map(|verdict| (verdict, None)),
        };
        if let Err(error) = &ran
            && let Some(git) = error.downcast_ref::<git::Error>()
            && matches!(gate, Gate::Checks)
            && git.retry() != Retry::Never
        {
            // The server is away. That is no verdict on anything, so it is waited for.
            let outage = Some(format!("{error:#}"));
            let finished =
                Finished { tree: self.tree, verdict: None, outage, took: begun.elapsed(), log_path: None };
            return (finished, None);
        }
        let (verdict, ran) = ran.unwrap_or_else(|error| {
            let reason = words::daemon::queue::gate_did_not_run(format!("{error:#}"));
            (Some(CiVerdict::Infra { reason, log: String::new() }), None)
        });
        let log_path = ran.as_ref().map(|ran| ran.log_path.clone());
        (Finished { tree: self.tree, verdict, outage: None, took: begun.elapsed(), log_path }, ran)
    }

    fn run_here(&self, command: &[String]) -> anyhow::Result<Ran> {
        let program = Program {
            name: self.name.clone(),
            command,
            sha: &self.commit,
            env: vec![("PROJECT_NAME", self.served.config.name.to_string())],
            answer: None,
            limit: self.served.config.timing.ci_timeout.into(),
        };
        program.run(&self.jobs, &self.served)
    }

    /// The candidate is pushed as a branch of its own, the project's CI tests it there, and the checks of exactly this
    /// commit are the verdict.
    fn run_outside(&self) -> anyhow::Result<Option<CiVerdict>> {
        let name = format!("pointsman/candidate/{}", self.commit.short());
        let branch = BranchName::new(&name).with_context(|| words::daemon::git::not_a_branch_name(&name))?;
        let mirror = &self.served.mirror;
        let at = mirror.remote_refs(std::iter::once(&branch.full()))?.pop().flatten();
        let push = PushRef {
            refname: branch.full(),
            change: Change::To(self.commit.clone()),
            expect: at.map_or(Expect::Absent, Expect::At),
        };
        match mirror.push(&[push])? {
            PushOutcome::Done => {}
            other => {
                anyhow::bail!(words::daemon::queue::candidate_not_pushed(format!("{other:?}")))
            }
        }
        let verdict = wait_for_checks(&self.jobs, &self.served, &self.commit, &self.unwanted);
        let gone = PushRef {
            refname: branch.full(),
            change: Change::Delete,
            expect: Expect::At(self.commit.clone()),
        };
        if let Err(error) = mirror.push(&[gone]) {
            tracing::warn!(%branch, %error, "a candidate's branch stays");
        }
        Ok(verdict)
    }
}
