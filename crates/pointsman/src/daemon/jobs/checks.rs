//! CI by a command of the project: for tasks, and for pull requests of people on the embedded forge.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_adapters::forge::{Error, Forge};
use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_core::artifact::{self, Origin};
use pointsman_core::forge::CheckState;
use pointsman_core::hand_in::UnreportedCi;
use pointsman_core::ids::{Number, ProjectName, Sha, TaskKey};
use pointsman_core::part::contribution::Event;
use pointsman_core::queue::Record;
use pointsman_core::task::CiVerdict;
use pointsman_core::words;
use pointsman_core::workflow::{self, Workflow, WorkflowId};
use pointsman_store::{Store, VerdictRow};

use super::outside::wait_for_checks;
use super::program::Program;
use super::{Jobs, branches, slug};
use crate::daemon::board::WorkflowMap;
use crate::daemon::clock;
use crate::daemon::engine::Input;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::served::{Served, artifacts_of};
use crate::paths::ProjectPaths;

/// What our CI is called among the checks of a commit.
pub(crate) const CHECK: &str = "ci";

/// The log of one run of a task's CI.
pub(crate) fn ci_log(paths: &ProjectPaths, key: &TaskKey, run: u32) -> PathBuf {
    log_of(paths, &run_name(&key.clone().into(), run))
}

/// The log of CI on the head of a pull request that no task is about.
pub(crate) fn ci_log_of_pull(
    paths: &ProjectPaths,
    project: &ProjectName,
    number: Number,
    sha: &Sha,
) -> PathBuf {
    log_of(paths, &pull_name(project, number, sha))
}

fn log_of(paths: &ProjectPaths, name: &str) -> PathBuf {
    paths.logs().join(format!("{name}.log"))
}

/// The last verdict of the project's CI on a tree, and how long that run took.
pub(crate) fn ci_verdict(
    store: &Store,
    project: &ProjectName,
    tree: &Sha,
    command: &[String],
) -> Result<Option<(CiVerdict, Option<Duration>)>, pointsman_store::Error> {
    let known = last_verdict(store, project, tree, &gate_name(command))?;
    Ok(known.map(|(record, row)| (record.last, row.took_ms.map(Duration::from_millis))))
}

fn run_name(id: &WorkflowId, run: u32) -> String {
    slug(id, &format!("ci-{run}"))
}

fn pull_name(project: &ProjectName, number: Number, sha: &Sha) -> String {
    format!("{project}-pr-{number}-{}", sha.short())
}

/// CI on one commit.
pub(super) struct Check {
    pub(super) owner: Workflow,
    pub(super) sha: Sha,
    pub(super) run: u32,
}

impl Check {
    pub(super) fn name(&self) -> String {
        run_name(&self.owner.id(), self.run)
    }

    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        if served.config.ci.kind.runs_outside() {
            return self.ask_outside(jobs, served);
        }
        let Some(command) = served.config.ci.command.clone() else { return };
        let Some(_runner) = jobs.runner(served) else { return };
        // The order may come later than a look that found the same check owed. Then this run is over, and its log stays as it is.
        if !jobs.read(|store| self.is_pending(store)) {
            return;
        }
        self.tell(jobs, Event::ChecksStarted { sha: self.sha.clone() });
        let issue = self.owner.id().issue().map(|issue| ("ISSUE", issue.to_string()));
        let env = Vec::from_iter(issue);
        let pr = self.owner.contribution().and_then(|part| part.pr());
        let artifacts = artifacts_of(self.owner.id().issue(), pr);
        let test = Test { command: &command, name: self.name(), sha: &self.sha, env, artifacts };
        let is_wanted = || jobs.read(|store| self.is_pending(store));
        let Some(Tested { verdict, flaky }) = test.run(jobs, served, &is_wanted) else { return };
        self.tell(jobs, Event::ChecksFinished { sha: self.sha.clone(), run: self.run, verdict, flaky });
    }

    /// Whether its owner still waits for this run. A store that does not answer says nothing.
    fn is_pending(&self, store: &Store) -> bool {
        let owner = match self.owner.id() {
            WorkflowId::Task(key) => {
                store.task(&key).map(|task| task.map(|task| Workflow::Task(task.into())))
            }
            WorkflowId::Run(key) => {
                store.run(&key.project, key.id).map(|run| run.map(|run| Workflow::Run(run.into())))
            }
            WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
                return false;
            }
        };
        let Ok(owner) = owner else { return true };
        let pending =
            |owner: &Workflow| owner.contribution()?.pending().map(|of| of == (&self.sha, self.run));
        owner.as_ref().and_then(pending).unwrap_or(false)
    }

    fn tell(&self, jobs: &Jobs, event: Event) {
        let id = self.owner.id();
        let event = workflow::Event::of_contribution(&id, event);
        jobs.inbox.tell(Input::of(id, event));
    }

    /// Somebody else runs CI; the forge, or the CI itself, tells what it says about exactly this commit.
    fn ask_outside(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        self.tell(jobs, Event::ChecksStarted { sha: self.sha.clone() });
        // Nobody calls it off: a verdict on an old head is not taken.
        let (_never, unwanted) = std::sync::mpsc::channel();
        if let Some(verdict) = wait_for_checks(jobs, served, &self.sha, &unwanted) {
            let left_out = matches!(verdict, CiVerdict::TimedOut { .. }) && self.is_left_out(served);
            let verdict = if left_out { CiVerdict::Passed } else { verdict };
            let (sha, run) = (self.sha.clone(), self.run);
            self.tell(jobs, Event::ChecksFinished { sha, run, verdict, flaky: false });
        }
    }

    /// Whether CI leaves out what a run hands in.
    fn is_left_out(&self, served: &Served) -> bool {
        let Workflow::Run(run) = &self.owner else { return false };
        let (Some(handed_in), config) = (&run.hand_in, &served.config) else { return false };
        // Only a forge's list tells that a CI has not even begun.
        let begun = match &served.woodpecker {
            Some(_) => true,
            None => served.forge.checks(&self.sha).map_or(true, |checks| !checks.is_empty()),
        };
        let unreported = UnreportedCi {
            begun,
            required: !config.ci.required.is_empty(),
            gate: config.gate().is_some(),
            files: &handed_in.files.files,
        };
        unreported.leaves_out()
    }
}

/// CI on the head of a pull request that no task is about: a person's.
pub(super) struct PullRequestCheck {
    pub(super) number: Number,
    pub(super) sha: Sha,
}

impl PullRequestCheck {
    pub(super) fn name(&self, project: &ProjectName) -> String {
        pull_name(project, self.number, &self.sha)
    }

    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        let Some(command) = served.config.ci.command.clone() else { return };
        let Some(_runner) = jobs.runner(served) else { return };
        if let Err(error) = served.mirror.fetch_remote() {
            tracing::warn!(pr = self.number, %error, "its commits could not be fetched; it is not tested yet");
            return;
        }
        let name = self.name(&served.config.name);
        let artifacts = artifacts_of(None, Some(self.number));
        let test = Test { command: &command, name, sha: &self.sha, env: Vec::new(), artifacts };
        if let Some(Tested { verdict, flaky }) = test.run(jobs, served, &|| true) {
            tracing::info!(pr = self.number, sha = %self.sha, ?verdict, flaky, "a pull request of no task was tested");
        }
    }
}

/// Pull requests of people that CI has not looked at: on the embedded forge nobody else would. A test that a daemon did
/// not live to finish is begun again.
pub(super) fn untested(served: &Served, picture: &WorkflowMap) -> Vec<PullRequestCheck> {
    let Some(forge) = served.embedded.as_ref().filter(|_| served.config.ci.kind.runs_here()) else {
        return Vec::new();
    };
    let is_ours = |branch: &str| branches(picture, &served.config.name).any(|ours| ours == branch);
    let looked_at = |sha: &Sha| {
        let checks = forge.checks(sha)?;
        Ok::<bool, Error>(checks.iter().any(|c| c.name == CHECK && c.state != CheckState::Pending))
    };
    let look = || -> Result<Vec<PullRequestCheck>, Error> {
        let mut untested = Vec::new();
        for pr in forge.open_pull_requests()?.into_iter().filter(|pr| !is_ours(&pr.head)) {
            if let Some(sha) = pr.head_sha
                && !looked_at(&sha)?
            {
                untested.push(PullRequestCheck { number: pr.number, sha });
            }
        }
        Ok(untested)
    };
    look().unwrap_or_else(|error| {
        tracing::warn!(%error, "pull requests of people could not be looked at");
        Vec::new()
    })
}

/// The project's CI on one commit.
struct Test<'a> {
    command: &'a [String],
    name: String,
    sha: &'a Sha,
    env: Vec<(&'static str, String)>,
    /// The name by which its artifacts are kept.
    artifacts: String,
}

/// What CI says about a commit.
struct Tested {
    verdict: CiVerdict,
    /// It failed, and passed when it ran again.
    flaky: bool,
}

/// One run of it.
struct Attempt {
    verdict: CiVerdict,
    took: Duration,
}

impl Test<'_> {
    /// Tests the commit, shows on the forge what comes of it, and remembers it. A red run is repeated once: a test that
    /// fails now and then is not the fault of who wrote the commit. None if the daemon stops, or if nobody waits any more.
    fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>, is_wanted: &dyn Fn() -> bool) -> Option<Tested> {
        show(served, self.sha, CheckState::Pending);
        let first = self.attempt(jobs, served)?;
        let log = log_of(&served.paths, &self.name);
        let first_log = log.with_extension("first");
        let is_red = matches!(first.verdict, CiVerdict::Failed { .. });
        let second = if is_red && is_wanted() {
            keep(fs::rename(&log, &first_log));
            Some(self.attempt(jobs, served)?)
        } else {
            None
        };
        let tested = match &second {
            Some(Attempt { verdict: CiVerdict::Passed, .. }) => {
                keep(append(&log, &first_log));
                Tested { verdict: CiVerdict::Passed, flaky: true }
            }
            Some(Attempt { verdict: verdict @ CiVerdict::Failed { .. }, .. }) => {
                keep(fs::remove_file(&first_log));
                Tested { verdict: verdict.clone(), flaky: false }
            }
            // The second run told nothing about the code.
            Some(_) => {
                keep(fs::rename(&first_log, &log));
                Tested { verdict: first.verdict.clone(), flaky: false }
            }
            None => Tested { verdict: first.verdict.clone(), flaky: false },
        };
        self.remember(jobs, served, std::iter::once(&first).chain(&second), log);
        let state = match tested.verdict {
            CiVerdict::Passed => CheckState::Success,
            CiVerdict::Failed { .. }
            | CiVerdict::Infra { .. }
            | CiVerdict::Unreached { .. }
            | CiVerdict::TimedOut { .. } => CheckState::Failure,
        };
        show(served, self.sha, state);
        Some(tested)
    }

    fn attempt(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) -> Option<Attempt> {
        let mut env = self.env.clone();
        env.push(("PROJECT_NAME", served.config.name.to_string()));
        let (name, command, sha) = (self.name.clone(), self.command, self.sha);
        let limit = served.config.timing.ci_timeout.into();
        let artifacts = served.paths.checkouts().join(format!("{name}.artifacts"));
        let made = remove_checkout(&artifacts).is_ok() && fs::create_dir(&artifacts).is_ok();
        let answer = made.then_some(artifacts.as_path());
        env.extend(answer.map(|dir| (artifact::VARIABLE, dir.to_string_lossy().into_owned())));
        let begun = Instant::now();
        let ran = Program { name, command, sha, env, answer, limit }.run(jobs, served);
        if made {
            served.keep_artifacts_in(&artifacts, self.artifacts.clone(), Origin::Ci, Some(sha));
            if let Err(error) = remove_checkout(&artifacts) {
                tracing::warn!(dir = %artifacts.display(), %error, "left artifacts");
            }
        }
        let verdict = match ran {
            Ok(ran) => ran.verdict("ci")?,
            Err(error) => {
                let reason = words::daemon::queue::ci_did_not_run(format!("{error:#}"));
                CiVerdict::Infra { reason, log: String::new() }
            }
        };
        Some(Attempt { verdict, took: begun.elapsed() })
    }

    /// The merge queue need not test again what was tested here. What says nothing about the code is not told.
    fn remember<'a>(
        &self,
        jobs: &Jobs,
        served: &Served,
        attempts: impl Iterator<Item = &'a Attempt>,
        log: PathBuf,
    ) {
        let Ok(tree) = served.mirror.tree_of(self.sha) else { return };
        let gate = gate_name(self.command);
        let mut known = jobs.read(|store| record(store, &served.config.name, &tree, &gate)).ok().flatten();
        let mut took = None;
        for attempt in attempts.filter(|attempt| tells_of_code(&attempt.verdict)) {
            known = Some(Record::add(known.as_ref(), attempt.verdict.clone()));
            took = Some(attempt.took);
        }
        if let (Some(record), Some(took)) = (&known, took) {
            remember(jobs, served, Verdict { tree: &tree, gate, record, log_path: Some(log), took });
        }
    }
}

/// Adds to the log of a green run what the red one before it printed.
fn append(log: &Path, first: &Path) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().append(true).open(log)?;
    writeln!(file, "{}", words::daemon::queue::first_run_printed())?;
    std::io::copy(&mut fs::File::open(first)?, &mut file)?;
    fs::remove_file(first)
}

/// A log is for people; nothing is decided from it.
fn keep(done: std::io::Result<()>) {
    if let Err(error) = done {
        tracing::warn!(%error, "the log of a CI run is incomplete");
    }
}

fn tells_of_code(verdict: &CiVerdict) -> bool {
    match verdict {
        CiVerdict::Passed | CiVerdict::Failed { .. } => true,
        CiVerdict::Infra { .. } | CiVerdict::Unreached { .. } | CiVerdict::TimedOut { .. } => false,
    }
}

/// People see on the forge what CI says; what follows from it is decided by the event.
fn show(served: &Served, sha: &Sha, state: CheckState) {
    if let Err(error) = served.forge.show_check(sha, CHECK, state) {
        tracing::warn!(%error, "the forge could not be told about CI");
    }
}

/// A gate's name in the table of verdicts.
pub(super) fn gate_name(command: &[String]) -> String {
    serde_json::to_string(command).unwrap_or_default()
}

/// What is remembered about a tree and a gate.
pub(super) fn record(
    store: &Store,
    project: &ProjectName,
    tree: &Sha,
    gate: &str,
) -> Result<Option<Record>, pointsman_store::Error> {
    Ok(last_verdict(store, project, tree, gate)?.map(|(record, _)| record))
}

/// The same with the row it is kept in. Earlier versions kept runs that told nothing about the code; they do not count.
pub(super) fn last_verdict(
    store: &Store,
    project: &ProjectName,
    tree: &Sha,
    gate: &str,
) -> Result<Option<(Record, VerdictRow)>, pointsman_store::Error> {
    let row = store.verdict(project, tree, gate)?;
    Ok(row.and_then(|row| {
        let record: Record = serde_json::from_value(row.verdict.clone()).ok()?;
        Some((record.kept()?, row))
    }))
}

/// What a gate said about a tree.
pub(super) struct Verdict<'a> {
    pub(super) tree: &'a Sha,
    pub(super) gate: String,
    pub(super) record: &'a Record,
    pub(super) log_path: Option<PathBuf>,
    /// How long the last run took.
    pub(super) took: Duration,
}

/// Remembers a verdict on a tree, so that the same content is not tested twice.
pub(super) fn remember(jobs: &Jobs, served: &Served, verdict: Verdict<'_>) {
    jobs.inbox.report(ThreadReport::VerdictGiven {
        project: served.config.name.clone(),
        tree: verdict.tree.clone(),
        gate: verdict.gate,
        verdict: Box::new(VerdictRow {
            verdict: serde_json::to_value(verdict.record).unwrap_or_default(),
            log_path: verdict.log_path,
            at: clock::now(),
            took_ms: u64::try_from(verdict.took.as_millis()).ok(),
        }),
    });
}

#[cfg(test)]
mod tests {
    use pointsman_core::part::contribution::{Ci, Contribution};
    use pointsman_core::queue::Runs;
    use pointsman_core::task::Task;
    use pointsman_core::time::Timestamp;
    use pointsman_store::{Change, Write};
    use serde_json::Value;

    use super::*;

    /// What a retest forgot is no verdict for anybody, also as an unreleased version wrote it.
    #[test]
    fn a_verdict_that_was_forgotten_is_not_shown_as_green() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("pointsman.db")).unwrap();
        let (project, command) = (ProjectName::new("shop").unwrap(), ["make".to_owned()]);
        let tree = Sha::new(&"a".repeat(40)).unwrap();
        let mut tell = |verdict: Value| {
            let (at, gate) = (Timestamp(1), gate_name(&command));
            let verdict = VerdictRow { verdict, log_path: None, at, took_ms: None };
            let write = Write::Verdict { project: project.clone(), object: tree.clone(), gate, verdict };
            store.commit(&[Change::quiet(at, vec![write])]).unwrap();
            ci_verdict(&store, &project, &tree, &command).unwrap().map(|(verdict, _)| verdict)
        };
        let passed = |runs: Runs| serde_json::to_value(Record { runs, last: CiVerdict::Passed }).unwrap();
        assert_eq!(tell(passed(Runs { green: 1, ..Runs::default() })), Some(CiVerdict::Passed));
        assert_eq!(tell(Value::Null), None);
        assert_eq!(tell(passed(Runs::default())), None);
    }

    /// A task that waits for this run on this head, as it is stored.
    fn waiting(head: &Sha, ci: &Ci) -> Task {
        let key = TaskKey { project: ProjectName::new("shop").unwrap(), issue: 7 };
        let mut task = Task::new(key, "Apples".to_owned(), "b".to_owned(), Timestamp(0));
        let mut stored = serde_json::to_value(Contribution::at("b".to_owned(), head.clone(), None)).unwrap();
        stored["progress"]["pushed"]["ci"] = serde_json::to_value(ci).unwrap();
        task.contribution = serde_json::from_value(stored).unwrap();
        task
    }

    #[test]
    fn a_check_that_was_answered_meanwhile_is_not_run_again() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = Store::open(&directory.path().join("pointsman.db")).unwrap();
        let [head, other] = ["a", "b"].map(|digit| Sha::new(&digit.repeat(40)).unwrap());
        let owner = Workflow::Task(waiting(&head, &Ci::Pending { run: 2 }).into());
        let check = Check { owner, sha: head.clone(), run: 2 };
        assert!(!check.is_pending(&store), "there is no such task");
        let mut is_pending_after = |task: Task| {
            let mut change = Change::new(Timestamp(1), "test");
            change.task = Some(task);
            store.commit(&[change]).unwrap();
            check.is_pending(&store)
        };
        assert!(is_pending_after(waiting(&head, &Ci::Pending { run: 2 })));
        assert!(!is_pending_after(waiting(&head, &Ci::Passed)));
        assert!(!is_pending_after(waiting(&head, &Ci::Pending { run: 3 })));
        assert!(!is_pending_after(waiting(&other, &Ci::Pending { run: 2 })));
    }
}
