//! Inputs that were taken from the channel together and are written together.

use std::collections::BTreeMap;
use std::sync::mpsc::SyncSender;

use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::run as core_run;
use pointsman_core::session::work::Observation;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Audit, CheckpointRow, MessageRow, QueueEntry, Stopped, VerdictRow, Write};

use crate::control::protocol::{Reply, Request};
use crate::daemon::decisions::Made;
use crate::daemon::effects::ResendOutcome;
use crate::daemon::engine::Input;
use crate::daemon::factory;
use crate::daemon::inbound::{Answers, Inbound};
use crate::daemon::notifier;
use crate::daemon::outcome::Outcome;
use crate::daemon::poller::Poller;
use crate::daemon::timetable::ProjectFacts;

/// What was seen of a workflow's work, and how far its source was read by that.
#[derive(Default)]
pub(super) struct Observed {
    pub(super) observations: Vec<Observation>,
    pub(super) read_to: Option<(String, String)>,
}

/// Entries of a merge queue that moved, and what goes with that.
pub(super) struct QueueInput {
    pub(super) project: ProjectName,
    pub(super) entries: Vec<QueueEntry>,
    pub(super) audit: Option<Audit>,
    pub(super) inputs: Vec<Input>,
    pub(super) written: SyncSender<()>,
}

/// A run that is wanted.
pub(super) struct RunRequest {
    pub(super) project: ProjectName,
    pub(super) formula: String,
    pub(super) subject: core_run::Subject,
    pub(super) by: String,
    pub(super) written: SyncSender<Reply>,
}

/// What a gate said of a tree.
type Verdict = (ProjectName, Sha, String, VerdictRow);

/// What was taken from the inbox and is to be written.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) inputs: Vec<Input>,
    pub(super) performed: Vec<(pointsman_store::Outgoing, Outcome)>,
    pub(super) entries: Vec<QueueInput>,
    pub(super) stopped: Vec<(ProjectName, Stopped, SyncSender<()>)>,
    pub(super) audits: Vec<(ProjectName, Audit, SyncSender<()>)>,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) redelivered: Vec<(MessageRow, Option<ResendOutcome>)>,
    pub(super) observed: BTreeMap<WorkflowId, Observed>,
    pub(super) seen: Vec<String>,
    pub(super) silent: Vec<String>,
    pub(super) missed: Vec<String>,
    pub(super) checkpoints: Vec<(CheckpointRow, Vec<u64>)>,
    pub(super) recorded: Vec<(Vec<Input>, SyncSender<Answers>)>,
    pub(super) wanted: Vec<RunRequest>,
    pub(super) notifier: Vec<notifier::Waiting>,
    pub(super) factory: Vec<(Box<factory::RoleReport>, SyncSender<()>)>,
    pub(super) timetables: Vec<(ProjectName, ProjectFacts)>,
    pub(super) decided: Vec<Made>,
    pub(super) asks: Vec<(Request, SyncSender<Reply>)>,
    pub(super) passed: Vec<SyncSender<()>>,
    pub(super) stop: bool,
}

impl Batch {
    pub(super) fn verdict((project, object, gate, verdict): Verdict) -> Write {
        Write::Verdict { project, object, gate, verdict }
    }

    pub(super) fn add(&mut self, inbound: Inbound, poller: &Poller) {
        match inbound {
            Inbound::Inputs(inputs) => self.inputs.extend(inputs),
            Inbound::Performed { outgoing, outcome } => self.performed.push((*outgoing, outcome)),
            Inbound::Redelivered { message, became } => self.redelivered.push((*message, became)),
            Inbound::QueueMoved { project, entries, audit, inputs, written } => {
                self.entries.push(QueueInput { project, entries, audit, inputs, written });
            }
            Inbound::LineStopped { project, stopped, written } => {
                self.stopped.push((project, stopped, written));
            }
            Inbound::Audited { project, audit, written } => self.audits.push((project, audit, written)),
            Inbound::VerdictGiven { project, tree, gate, verdict } => {
                self.verdicts.push((project, tree, gate, *verdict));
            }
            Inbound::Observed { workflow, observations, read_to } => {
                let observed = self.observed.entry(workflow).or_default();
                observed.observations.extend(observations);
                observed.read_to = read_to.or(observed.read_to.take());
            }
            Inbound::Seen { sessions, silent } => {
                self.seen.extend(sessions);
                self.silent.extend(silent);
            }
            Inbound::Missed { sessions } => self.missed.extend(sessions),
            Inbound::CheckpointTaken { row, pruned } => self.checkpoints.push((*row, pruned)),
            Inbound::Record { inputs, written } => self.recorded.push((inputs, written)),
            Inbound::Notifier { told, written } => self.notifier.push((told, written)),
            Inbound::Factory { told, written } => self.factory.push((told, written)),
            Inbound::Timetable { project, standing } => self.timetables.push((project, standing)),
            Inbound::Passed { written } => self.passed.push(written),
            Inbound::RunWanted { project, formula, subject, by, written } => {
                self.wanted.push(RunRequest { project, formula, subject, by, written });
            }
            Inbound::Decided(made) => self.decided.push(*made),
            Inbound::Ask { request, reply } => self.asks.push((request, reply)),
            Inbound::AskForge { project } => poller.ask(&project),
            Inbound::Stop => self.stop = true,
        }
    }
}
