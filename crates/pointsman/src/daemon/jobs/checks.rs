//! CI by a command of the project.

use std::sync::Arc;

use pointsman_core::forge::CheckState;
use pointsman_core::ids::{Sha, TaskKey};
use pointsman_core::task::{CiVerdict, Event};

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
        let verdict = match program.run(jobs, served) {
            Ok(ran) => {
                let Some(verdict) = ran.verdict("ci") else { return };
                remember(jobs, served, &self.sha, &command, &verdict, ran.log_path);
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

/// Remembers a verdict on the tree of a commit, so that the same content is not tested twice.
pub(super) fn remember(
    jobs: &Jobs,
    served: &Served,
    sha: &Sha,
    command: &[String],
    verdict: &CiVerdict,
    log_path: std::path::PathBuf,
) {
    if !matches!(verdict, CiVerdict::Passed | CiVerdict::Failed { .. }) {
        return;
    }
    let Ok(tree) = served.mirror.tree_of(sha) else { return };
    jobs.inbox.send(Inbound::VerdictGiven {
        project: served.config.name.clone(),
        tree,
        gate: gate_name(command),
        verdict: Box::new(pointsman_store::VerdictRow {
            verdict: serde_json::to_value(verdict).unwrap_or_default(),
            log_path: Some(log_path),
            at: clock::now(),
        }),
    });
}
