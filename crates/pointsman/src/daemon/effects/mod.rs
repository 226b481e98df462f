//! Performs effects with git, sessions, files and forges.
//!
//! There is one file per part of the world. Each `perform` first checks whether the effect already happened, because
//! after a crash every pending effect may have. The core decides what an effect means. Long jobs (CI, reviews,
//! landings) are only submitted here and run in [`super::jobs`].

mod activities;
mod branch;
mod briefing;
mod claude;
mod deeds;
mod delivery;
mod files;
pub(super) mod hand_in;
mod issue;
mod message;
mod model;
mod notify;
mod run;
mod session;
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use pointsman_adapters::driver::{self, Drivers};
use pointsman_adapters::git::Git;
use pointsman_adapters::retry::Retry;
use pointsman_adapters::watch::exits::ExitWatch;
use pointsman_adapters::{forge, git, tmux};
use pointsman_core::ids::ProjectName;
use pointsman_core::run::Run;
use pointsman_core::task::{Effect, Task};
use pointsman_core::vault::Entry;
use pointsman_core::words;
use pointsman_core::workflow::Workflow;
use pointsman_store::{DeliveryId, Outgoing, Store};

use super::inbound::ThreadReport;
use super::jobs::Jobs;
use super::notifier;
use super::outcome::{Outcome, PerformEffects, Performed};
use super::projections::Announced;
use super::reader::Reader;
use super::served::Served;
use super::session_sockets::SessionSockets;
use crate::enclosure::Enclosure;
use crate::paths::Paths;

pub(crate) use activities::SessionActivities;
pub(super) use claude::conversation_of;
pub(crate) use delivery::hook_inbox;
pub(super) use issue::{read_refusal, read_summary};
pub(super) use message::{Redelivery, ResendOutcome};
pub(super) use notify::put_up_from_job;
pub(super) use session::epoch;
pub(crate) use tree::Ports;

/// Everything effects are performed with.
pub(crate) struct EffectPerformer {
    pub paths: Paths,
    pub git: Git,
    pub drivers: Drivers,
    /// Processes that are watched for their end.
    pub exits: Arc<ExitWatch>,
    pub jobs: Arc<Jobs>,
    /// What the sessions are doing, as their hooks say.
    pub stances: SessionActivities,
    /// The sessions whose files were shown before they started.
    pub announced: Arc<Announced>,
    /// Reads what the daemon wrote.
    pub(super) reader: Reader,
    /// The projects that are served.
    pub projects: RwLock<BTreeMap<ProjectName, Arc<Served>>>,
    /// This program, to start it again inside sessions.
    pub program: PathBuf,
    /// The daemon's own environment, for the few variables that agents get.
    pub environment: fn(&str) -> Option<OsString>,
    /// The control sockets of sessions inside a sandbox.
    pub sockets: SessionSockets,
    /// The ports of tasks.
    pub ports: Ports,
}

impl PerformEffects for EffectPerformer {
    fn perform(&self, outgoing: &Outgoing, owner: &Workflow) -> Outcome {
        let project = outgoing.workflow.project();
        let Some(served) = self.project(project) else {
            return Outcome::Later { error: words::daemon::request::not_served(project) };
        };
        self.try_perform(&served, outgoing, owner).unwrap_or_else(EffectError::outcome)
    }
}

impl EffectPerformer {
    /// A project that is served.
    pub(crate) fn project(&self, name: &ProjectName) -> Option<Arc<Served>> {
        self.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(name).cloned()
    }

    /// The means to enclose programs, which are those of the machine; none while no project is served.
    pub(crate) fn any_enclosure(&self) -> Option<Enclosure> {
        let projects = self.projects.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        projects.values().next().map(|served| served.enclosure.clone())
    }

    /// Asks the store what the daemon wrote. The question must not wait for anything else.
    pub(crate) fn read<T>(&self, question: impl FnOnce(&Store) -> T) -> T {
        self.reader.read(question)
    }

    /// Whether a project is still served as it was when this was opened.
    pub(crate) fn serves(&self, served: &Arc<Served>) -> bool {
        self.project(&served.config.name).is_some_and(|now| Arc::ptr_eq(&now, served))
    }

    fn try_perform(
        &self,
        served: &Arc<Served>,
        outgoing: &Outgoing,
        owner: &Workflow,
    ) -> Result<Outcome, EffectError> {
        let effect = &outgoing.effect;
        match effect {
            // These have no session.
            Effect::StartSession { .. } | Effect::EndSession { .. } | Effect::Deliver { .. }
                if matches!(
                    owner,
                    Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_)
                ) =>
            {
                Err(not_its_effect(owner, effect))
            }
            Effect::StartSession { generation, opening } => {
                self.start_session(served, owner, *generation, *opening)
            }
            Effect::EndSession { generation, exit } => self.end_session(served, owner, *generation, *exit),
            Effect::Checkpoint { why } => {
                match owner {
                    Workflow::Task(task) => self.jobs.checkpoint(served, task, why),
                    // A run begins from main each time and lands nothing: what it has is kept as a rescue.
                    Workflow::Run(run) => {
                        self.keep_work(
                            served,
                            &run.session_name(),
                            &served.files_of(&run.key().into()).tree,
                        )?;
                    }
                    Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                        return Err(not_its_effect(owner, effect));
                    }
                }
                Ok(Outcome::done())
            }
            Effect::Deliver { generation, headline, subject, details } => {
                let message =
                    message::Message { id: outgoing.id, generation: *generation, headline: *headline };
                self.deliver(served, owner, &message, subject, details)
            }
            Effect::Notify(notice) => self.notify(served, owner, &outgoing.key, notice),
            Effect::CleanUp => match owner {
                Workflow::Task(task) => self.clean_up(served, task),
                Workflow::Run(run) => self.clean_up_run(served, run),
                Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                    Err(not_its_effect(owner, effect))
                }
            },
            Effect::NotifyQuestion => self.notify_question(owner),
            Effect::ReservePorts => self.reserve_ports(served, of_run(owner, effect)?),
            Effect::ReadResult { generation } => {
                self.read_result(served, of_run(owner, effect)?, *generation)
            }
            Effect::LookAtAction { hash } => self.look_at_action(served, of_action(owner, effect)?, hash),
            Effect::CallOffLook { hash } => self.call_off_look(of_action(owner, effect)?, hash),
            Effect::FireAction { firing } => self.fire(served, of_action(owner, effect)?, *firing),
            Effect::Tell { delivery } => {
                notifier::tell(self, served, &outgoing.workflow, DeliveryId(*delivery))
            }
            Effect::NotifyAction => self.notify_action(served, of_action(owner, effect)?),
            Effect::Deed { name, act } => self.deed(served, owner, &outgoing.key, name, act),
            Effect::ClaimIssue => self.claim_issue(served, of_task(owner, effect)?),
            Effect::NotifyNeed { need } => self.notify_need(served, of_run(owner, effect)?, need),
            Effect::SyncBranch => match owner {
                Workflow::Task(task) => self.sync_branch(served, task),
                Workflow::Run(run) => self.push_hand_in(served, run),
                Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                    Err(not_its_effect(owner, effect))
                }
            },
            Effect::OpenPullRequest => match owner {
                Workflow::Task(task) => Self::open_pull_request(served, task),
                Workflow::Run(run) => self.open_hand_in(served, run),
                Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                    Err(not_its_effect(owner, effect))
                }
            },
            Effect::RunChecks { sha, run } => {
                self.jobs.check(served, owner, sha, *run);
                Ok(Outcome::done())
            }
            Effect::RequestReview { sha } => {
                match served.config.review_agent() {
                    // It is found with all other open pull requests.
                    true => self
                        .jobs
                        .inbox
                        .report(ThreadReport::AskForge { project: owner.id().project().clone() }),
                    false => self.jobs.review(served, owner, sha),
                }
                Ok(Outcome::done())
            }
            Effect::Enqueue { head } => match owner {
                Workflow::Task(task) => Ok(Self::enqueue(served, task, head)),
                Workflow::Run(run) => Ok(Self::enqueue_hand_in(served, run, head)),
                Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                    Err(not_its_effect(owner, effect))
                }
            },
            Effect::Dequeue => {
                // What has ended since has left the queue, too.
                Ok(owner.contribution().map_or_else(Outcome::done, |contribution| {
                    Outcome::note(super::outcome::Note::Dequeue { branch: contribution.branch.clone() })
                }))
            }
            Effect::SetLabels { add, remove } => {
                Self::set_labels(served, of_task(owner, effect)?, add, remove)
            }
            Effect::Comment { marker, body } => Self::comment(served, of_task(owner, effect)?, marker, body),
            Effect::CloseIssue => Self::close_issue(served, of_task(owner, effect)?),
            Effect::RecordCiResult { text } => Self::record_ci_result(served, of_task(owner, effect)?, text),
            Effect::VerifyMerge => Self::verify_merge(served, of_task(owner, effect)?),
        }
    }
}

/// The task that ordered an effect which only a task can order.
fn of_task<'w>(owner: &'w Workflow, effect: &Effect) -> Result<&'w Task, EffectError> {
    match owner {
        Workflow::Task(task) => Ok(task),
        Workflow::Run(_)
        | Workflow::Vault(_)
        | Workflow::Concern(_)
        | Workflow::Role(_)
        | Workflow::Notifier(_) => Err(not_its_effect(owner, effect)),
    }
}

/// The run that ordered an effect which only a run can order.
fn of_run<'w>(owner: &'w Workflow, effect: &Effect) -> Result<&'w Run, EffectError> {
    match owner {
        Workflow::Run(run) => Ok(run),
        Workflow::Task(_)
        | Workflow::Vault(_)
        | Workflow::Concern(_)
        | Workflow::Role(_)
        | Workflow::Notifier(_) => Err(not_its_effect(owner, effect)),
    }
}

/// The vault action that ordered an effect which only an action can order.
fn of_action<'w>(owner: &'w Workflow, effect: &Effect) -> Result<&'w Entry, EffectError> {
    match owner {
        Workflow::Vault(entry) => Ok(entry),
        Workflow::Task(_)
        | Workflow::Run(_)
        | Workflow::Concern(_)
        | Workflow::Role(_)
        | Workflow::Notifier(_) => Err(not_its_effect(owner, effect)),
    }
}

fn not_its_effect(owner: &Workflow, effect: &Effect) -> EffectError {
    EffectError::never(words::daemon::process::not_its_effect(&owner.id().identity(), effect.kind()))
}

/// What stands in the way of an effect, and whether it may pass.
pub(super) struct EffectError {
    error: String,
    passes: bool,
    /// The answer to the order all the same: it cannot be carried out, and this is why.
    learned: Option<Box<Performed>>,
}

impl EffectError {
    pub(super) fn later(error: impl ToString) -> Self {
        Self { error: error.to_string(), passes: true, learned: None }
    }

    /// In words, for who does not retry by it.
    pub(super) fn into_error(self) -> anyhow::Error {
        anyhow::anyhow!(self.error)
    }

    pub(super) fn never(error: impl ToString) -> Self {
        Self { error: error.to_string(), passes: false, learned: None }
    }

    /// The effect is over, and its workflow learns why.
    pub(super) fn learned(performed: Performed) -> Self {
        Self { learned: Some(Box::new(performed)), ..Self::never("") }
    }

    fn outcome(self) -> Outcome {
        if let Some(performed) = self.learned {
            return Outcome::Done(*performed);
        }
        if self.passes { Outcome::Later { error: self.error } } else { Outcome::Never { error: self.error } }
    }

    fn from_error(error: &(dyn std::error::Error + 'static), retry: Retry) -> Self {
        // Every effect looks first whether it happened, so an ambiguous failure is one that passes.
        Self { error: chain(error), passes: !matches!(retry, Retry::Never), learned: None }
    }
}

/// An error with all its causes in one line.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

impl From<git::Error> for EffectError {
    fn from(error: git::Error) -> Self {
        Self::from_error(&error, error.retry())
    }
}

impl From<tmux::Error> for EffectError {
    fn from(error: tmux::Error) -> Self {
        Self::from_error(&error, error.retry())
    }
}

impl From<driver::Error> for EffectError {
    fn from(error: driver::Error) -> Self {
        Self::from_error(&error, error.retry())
    }
}

impl From<forge::Error> for EffectError {
    fn from(error: forge::Error) -> Self {
        Self::from_error(&error, error.retry())
    }
}

impl From<std::io::Error> for EffectError {
    // A full disk, a missing directory: somebody can mend it while we try again.
    fn from(error: std::io::Error) -> Self {
        Self::later(error)
    }
}

impl From<anyhow::Error> for EffectError {
    fn from(error: anyhow::Error) -> Self {
        Self::never(format!("{error:#}"))
    }
}

impl From<pointsman_store::Error> for EffectError {
    fn from(error: pointsman_store::Error) -> Self {
        Self::later(chain(&error))
    }
}
