//! CI by a command of the project.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::config::CiKind;
use pointsman_core::forge::CheckState;
use pointsman_core::ids::{ProjectName, Sha, TaskKey};
use pointsman_core::queue::Record;
use pointsman_core::task::{CiVerdict, Event};
use pointsman_store::{Store, VerdictRow};

use super::outside::wait_for_checks;
use super::program::Program;
use super::{Jobs, slug};
use crate::daemon::clock;
use crate::daemon::engine::Input;
use crate::daemon::inbound::Inbound;
use crate::daemon::served::Served;

/// What our CI is called among the checks of a commit.
const CHECK: &str = "ci";

/// CI on one commit.
pub(super) struct Check {
    pub(super) key: TaskKey,
    pub(super) sha: Sha,
    pub(super) run: u32,
}

impl Check {
    pub(super) fn name(&self) -> String {
        slug(&self.key, &format!("ci-{}", self.run))
    }

    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        if matches!(served.config.ci.kind, CiKind::Forge | CiKind::Woodpecker) {
            return self.ask_outside(jobs, served);
        }
        let Some(command) = served.config.ci.command.clone() else { return };
        let Some(_runner) = jobs.runner(served) else { return };
        let started = Event::ChecksStarted { sha: self.sha.clone() };
        jobs.inbox.tell(Input::new(self.key.clone(), started));
        show(served, &self.sha, CheckState::Pending);
        let program = Program {
            name: self.name(),
            command: &command,
            sha: &self.sha,
            env: vec![("PROJECT_NAME", self.key.project.to_string()), ("ISSUE", self.key.issue.to_string())],
            limit: served.config.timing.ci_timeout.into(),
        };
        let begun = Instant::now();
        let verdict = match program.run(jobs, served) {
            Ok(ran) => {
                let Some(verdict) = ran.verdict("ci") else { return };
                self.remember(jobs, served, &command, &verdict, ran.log_path, begun.elapsed());
                verdict
            }
            Err(error) => {
                CiVerdict::Infra { reason: format!("CI could not be run: {error:#}"), log: String::new() }
            }
        };
        show(
            served,
            &self.sha,
            match verdict {
                CiVerdict::Passed => CheckState::Success,
                CiVerdict::Failed { .. } | CiVerdict::Infra { .. } | CiVerdict::TimedOut { .. } => {
                    CheckState::Failure
                }
            },
        );
        let finished = Event::ChecksFinished { sha: self.sha.clone(), run: self.run, verdict };
        jobs.inbox.tell(Input::new(self.key.clone(), finished));
    }

    /// Somebody else runs CI; the forge, or the CI itself, tells what it says about exactly this commit.
    fn ask_outside(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        let started = Event::ChecksStarted { sha: self.sha.clone() };
        jobs.inbox.tell(Input::new(self.key.clone(), started));
        // Nobody calls it off: a verdict on an old head is not taken.
        let (_never, unwanted) = std::sync::mpsc::channel();
        if let Some(verdict) = wait_for_checks(jobs, served, &self.sha, &unwanted) {
            let finished = Event::ChecksFinished { sha: self.sha.clone(), run: self.run, verdict };
            jobs.inbox.tell(Input::new(self.key.clone(), finished));
        }
    }

    /// The merge queue need not test again what was tested here. What says nothing about the code is not told.
    fn remember(
        &self,
        jobs: &Jobs,
        served: &Served,
        command: &[String],
        verdict: &CiVerdict,
        log_path: PathBuf,
        took: Duration,
    ) {
        if !matches!(verdict, CiVerdict::Passed | CiVerdict::Failed { .. }) {
            return;
        }
        let Ok(tree) = served.mirror.tree_of(&self.sha) else { return };
        let gate = gate_name(command);
        let earlier = record(&jobs.reader(), &self.key.project, &tree, &gate).ok().flatten();
        let record = Record::add(earlier.as_ref(), verdict.clone());
        let log_path = Some(log_path);
        remember(jobs, served, Verdict { tree: &tree, gate, record: &record, log_path, took });
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
    let row = store.verdict(project, tree, gate)?;
    Ok(row.and_then(|row| serde_json::from_value(row.verdict).ok()))
}

/// What a gate said about a tree.
pub(super) struct Verdict<'a> {
    /// The tree.
    pub(super) tree: &'a Sha,
    /// The gate's name.
    pub(super) gate: String,
    /// All its runs.
    pub(super) record: &'a Record,
    /// The last run's log.
    pub(super) log_path: Option<PathBuf>,
    /// How long the last run took.
    pub(super) took: Duration,
}

/// Remembers a verdict on a tree, so that the same content is not tested twice.
pub(super) fn remember(jobs: &Jobs, served: &Served, verdict: Verdict<'_>) {
    jobs.inbox.send(Inbound::VerdictGiven {
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
