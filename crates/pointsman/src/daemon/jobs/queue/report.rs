//! The outcomes of entries, reported to their tasks and written down.

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use pointsman_adapters::git::BranchName;
use pointsman_adapters::git::gateway::Gateway;
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::part::contribution::Event;
use pointsman_core::queue::{EntryId, Fault};
use pointsman_core::run::{Run, RunId};
use pointsman_core::task::{CiVerdict, QueueOutcome};
use pointsman_core::words;
use pointsman_core::workflow::{self, WorkflowId};
use pointsman_store::{Audit, EntryStatus, QueueEntry, Stopped, Store};

use super::landing::close_without_merge;
use super::{QueueWorker, QueuedCandidate, notices, outcomes, pushes};
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::hand_in;
use crate::daemon::engine::Input;
use crate::daemon::inbound::ThreadReport;

/// An entry and what became of it.
pub(crate) struct Outcome {
    pub entry: QueueEntry,
    pub outcome: QueueOutcome,
    pub branch: BranchFate,
    /// The log that shows why.
    pub log: Option<PathBuf>,
}

/// The fate of the branch of an entry that landed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BranchFate {
    /// It is deleted if nothing came to it meanwhile.
    Goes,
    /// It was deleted in the push that landed it.
    Gone,
    /// Its commits are not on main, so it is all there is of them.
    Stays,
}

impl QueueWorker<'_> {
    /// Takes an entry out for its fault, with the log that shows it.
    pub(super) fn eject(
        &mut self,
        id: EntryId,
        fault: Fault,
        members: &[QueuedCandidate],
    ) -> anyhow::Result<()> {
        let found = self.aside.iter().chain(members).find(|member| member.entry.id == id).cloned();
        let Some(member) = found else { return Ok(()) };
        let last = self.records.get(&member.built.tree).map(|record| record.last.clone());
        let outcome = match (fault, last) {
            (Fault::Red, Some(CiVerdict::Failed { summary, log })) => QueueOutcome::Red { summary, log },
            (Fault::Red, Some(CiVerdict::TimedOut { log })) => {
                QueueOutcome::Red { summary: words::daemon::queue::gate_timed_out().to_owned(), log }
            }
            (_, Some(CiVerdict::Infra { reason, log })) => QueueOutcome::Infra { reason, log },
            (_, Some(CiVerdict::Unreached { hosts, programs, log })) => {
                QueueOutcome::Unreached { hosts, programs, log }
            }
            (Fault::Infra, Some(CiVerdict::Failed { summary, log })) => {
                QueueOutcome::Infra { reason: words::daemon::queue::gate_gave_no_verdict(&summary), log }
            }
            (Fault::Red | Fault::Infra, _) => {
                let reason = words::daemon::queue::gate_could_not_run().to_owned();
                QueueOutcome::Infra { reason, log: String::new() }
            }
        };
        self.aside.retain(|member| member.entry.id != id);
        let tree = &member.built.tree;
        let log = self.last_runs.get(tree).and_then(|run| run.log.clone());
        let outcome = match (outcome, self.last_runs.get(tree)) {
            // Nothing was run for this look: the verdict is an older one.
            (QueueOutcome::Red { summary, log }, Some(run)) if run.at < member.entry.requested_at => {
                QueueOutcome::Red { summary: words::queue::tested_before(&summary, run.at), log }
            }
            (outcome, _) => outcome,
        };
        // What the machine could not do is no verdict on the tree.
        if matches!(outcome, QueueOutcome::Infra { .. } | QueueOutcome::Unreached { .. }) {
            self.records.remove(tree);
        }
        self.report_all(vec![Outcome { entry: member.entry, outcome, branch: BranchFate::Goes, log }], None);
        Ok(())
    }

    /// Reports one entry.
    pub(super) fn report(&mut self, entry: QueueEntry, outcome: QueueOutcome) {
        self.report_all(vec![Outcome { entry, outcome, branch: BranchFate::Goes, log: None }], None);
    }

    /// Reports entries that are over, with how far main is accounted for by that. All of it is written together: a daemon
    /// that dies leaves no task that landed by an entry that did not.
    pub(super) fn report_all(&mut self, outcomes: Vec<Outcome>, audit: Option<Audit>) {
        self.tidy_forge(&outcomes);
        crash_point("landing-tidied");
        let (mut over, mut logs, mut inputs) = (Vec::new(), Vec::new(), Vec::new());
        let mut ends = Vec::new();
        let mut unmerged = Vec::new();
        for Outcome { mut entry, outcome, log, branch } in outcomes {
            if let (QueueOutcome::Landed { sha }, BranchFate::Stays, Some(pr)) = (&outcome, branch, entry.pr)
            {
                unmerged.push((pr, sha.clone()));
            }
            let wanted = self.is_wanted(&entry).unwrap_or(true);
            let landed = matches!(outcome, QueueOutcome::Landed { .. });
            settle(&mut entry, &outcome);
            let log_end = log_of(&outcome).to_owned();
            if wanted || landed {
                let owner = self.owner(&entry);
                if let (Some(WorkflowId::Task(key)), false) = (&owner, landed) {
                    self.show_main(key, &entry);
                }
                let event = Event::QueueReported { head: entry.head.clone(), outcome };
                inputs.extend(owner.map(|id| {
                    let event = workflow::Event::of_contribution(&id, event);
                    Input::of(id, event)
                }));
            }
            if !wanted && !landed {
                entry.status = EntryStatus::Removed;
            }
            over.push(entry);
            logs.push(log);
            ends.push(log_end);
        }
        // Before it is written: a daemon that is killed in between decides the same again and posts it under the same key.
        for ((entry, log), end) in over.iter().zip(&logs).zip(&ends) {
            notices::taken_out(self.jobs, self.served, entry, end, log.as_deref());
        }
        crash_point("queue-reported");
        self.send(over.clone(), audit, inputs);
        // Only once its task is done: before that, a closed pull request would mean that a person gave it up.
        for (pr, main) in unmerged {
            close_without_merge(self.served, pr, &main);
        }
        for entry in over.iter().filter(|entry| entry.status == EntryStatus::Landed) {
            if let Err(error) = pushes::forget(&self.served.mirror, entry.id) {
                tracing::warn!(entry = %entry.id, error = format!("{error:#}"), "a push that has ended is still remembered");
            }
        }
        for (entry, log) in over.iter().zip(logs) {
            outcomes::tell(self.jobs, entry, log.as_deref());
        }
    }

    /// Whoever is asked to resolve a conflict, or to mend what fails on top of main, finds that main.
    fn show_main(&self, key: &TaskKey, entry: &QueueEntry) {
        let (Some(main), Some(branch)) = (&self.main, BranchName::new(&entry.branch)) else { return };
        let dir = self.served.session_files(key).gateway;
        if !dir.is_dir() {
            return;
        }
        if let Err(error) = Gateway::at(&dir, &branch).show_primary(&self.served.primary, main) {
            tracing::warn!(task = %key, %error, "the agent does not see the new main");
        }
    }

    /// The workflow whose branch an entry is.
    fn owner(&self, entry: &QueueEntry) -> Option<WorkflowId> {
        let project = &self.served.config.name;
        if let Some(issue) = entry.issue {
            return Some(TaskKey { project: project.clone(), issue }.into());
        }
        match self.jobs.read(|store| hand_in::landing_on(store, project, &entry.branch)) {
            Ok(run) => run.map(|run| run.key().into()),
            Err(error) => {
                // The forge shows what became of it.
                tracing::warn!(branch = entry.branch, %error, "nobody knows whose branch it is");
                None
            }
        }
    }

    /// Whether it still wants to land: its task may have left while the gate ran, or a person took it out.
    pub(super) fn is_wanted(&self, entry: &QueueEntry) -> anyhow::Result<bool> {
        self.jobs.read(|store| {
            let unfinished = store.queue_entry(entry.id)?.is_some_and(|e| e.status.is_unfinished());
            let Some(issue) = entry.issue else {
                let run = entry.identity.as_deref().map(|identity| run_of(store, &entry.project, identity));
                let lands = |run: Run| run.contribution().is_some_and(|part| part.is_queued(&entry.head));
                return Ok(unfinished && run.transpose()?.flatten().is_none_or(lands));
            };
            let key = TaskKey { project: self.served.config.name.clone(), issue };
            Ok(unfinished && store.task(&key)?.is_some_and(|task| task.wants_to_land(&entry.head)))
        })
    }

    /// Whether the task of an entry can be read, if it has one.
    pub(super) fn is_readable(&self, entry: &QueueEntry) -> bool {
        let Some(issue) = entry.issue else { return true };
        let key = TaskKey { project: self.served.config.name.clone(), issue };
        !matches!(self.jobs.read(|store| store.task(&key)), Err(pointsman_store::Error::Unreadable(_)))
    }

    /// Writes entries and waits until they are on disk.
    pub(super) fn write_down(&self, entries: Vec<QueueEntry>) {
        if entries.is_empty() {
            return;
        }
        self.send(entries, None, Vec::new());
    }

    fn send(&self, entries: Vec<QueueEntry>, audit: Option<Audit>, inputs: Vec<Input>) {
        let (written, wait) = sync_channel(1);
        let project = self.served.config.name.clone();
        self.jobs.inbox.report(ThreadReport::QueueMoved { project, entries, audit, inputs, written });
        // The daemon may be gone: then the next one looks at git.
        let _ = wait.recv();
    }

    /// Pauses the merge queue and waits until that is on disk.
    pub(super) fn pause_queue(&self, stopped: Stopped) {
        let (written, wait) = sync_channel(1);
        let project = self.served.config.name.clone();
        self.jobs.inbox.report(ThreadReport::QueuePaused { project, stopped, written });
        let _ = wait.recv();
    }
}

/// The run that entered a branch under its own name.
fn run_of(
    store: &Store,
    project: &ProjectName,
    identity: &str,
) -> Result<Option<Run>, pointsman_store::Error> {
    let id = identity.rsplit_once('-').and_then(|(_, id)| id.parse().ok());
    let run = id.map(|id| store.run(project, RunId(id))).transpose()?.flatten();
    Ok(run.filter(|run| run.identity() == identity))
}

/// The end of the log that an outcome has.
fn log_of(outcome: &QueueOutcome) -> &str {
    match outcome {
        QueueOutcome::Red { log, .. }
        | QueueOutcome::Infra { log, .. }
        | QueueOutcome::Unreached { log, .. } => log,
        QueueOutcome::Landed { .. } | QueueOutcome::Conflict { .. } | QueueOutcome::Stale { .. } => "",
    }
}

fn settle(entry: &mut QueueEntry, outcome: &QueueOutcome) {
    entry.tested_since = None;
    match outcome {
        QueueOutcome::Landed { .. } => {
            entry.status = EntryStatus::Landed;
            entry.landed_at = Some(clock::now());
            entry.reason = None;
        }
        QueueOutcome::Conflict { files, with } => {
            entry.status = EntryStatus::Conflict;
            entry.conflict_files.clone_from(files);
            entry.reason = with.as_ref().map(|with| words::daemon::queue::conflicts_with(with));
        }
        QueueOutcome::Red { summary, .. } => {
            entry.status = EntryStatus::Red;
            entry.reason = Some(summary.clone());
        }
        QueueOutcome::Unreached { hosts, programs, .. } => {
            entry.status = EntryStatus::Stale;
            entry.reason = Some(words::sandbox::unlisted(hosts, programs));
        }
        QueueOutcome::Infra { reason, .. } | QueueOutcome::Stale { reason } => {
            entry.status = EntryStatus::Stale;
            entry.reason = Some(reason.clone());
        }
    }
}
