//! The one channel into the daemon's loop.

use std::sync::mpsc::{SyncSender, sync_channel};

use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::run;
use pointsman_core::session::work::Observation;
use pointsman_core::workflow::{Refused, WorkflowId};
use pointsman_store::{Audit, CheckpointRow, MessageRow, Outgoing, QueueEntry, Stopped, VerdictRow};

use super::decisions::Made;
use super::effects::ResendOutcome;
use super::engine::Input;
use super::factory;
use super::notifier::NotifierReport;
use super::outcome::Outcome;
use super::relay::{RelayReport, SessionBudgets};
use super::timetable::ProjectFacts;
use crate::control::protocol::{Reply, Request};

/// How many things may wait for the loop before their sources have to wait themselves.
pub(super) const INBOX_LIMIT: usize = 10_000;

/// What became of each of several inputs.
pub(crate) type Answers = Vec<Result<(), Refused>>;

/// Everything that can happen to the daemon.
pub(crate) enum Inbound {
    /// Events of workflows. Whoever has to know is told the answer to each when they are on disk.
    Inputs {
        inputs: Vec<Input>,
        answered: Option<SyncSender<Answers>>,
    },
    /// A worker is done with an effect.
    Performed {
        outgoing: Box<Outgoing>,
        outcome: Outcome,
    },
    /// Something that a thread beside the loop has learnt, and that the loop writes down.
    Report(Box<ThreadReport>),
    Ask {
        request: Request,
        reply: SyncSender<Reply>,
    },
    Stop,
}

/// Something to be written down that is not an event of a workflow. Where a thread waits for that, `written` is told when it
/// is on disk.
pub(crate) enum ThreadReport {
    /// A message that nobody had acknowledged was looked after.
    Redelivered {
        message: Box<MessageRow>,
        /// What became of it; none if something stood in the way.
        became: Option<ResendOutcome>,
    },
    /// Merge queue entries moved. All of it is written at once.
    QueueMoved {
        project: ProjectName,
        /// The entries as they are now.
        entries: Vec<QueueEntry>,
        /// How far main is accounted for by that.
        audit: Option<Audit>,
        /// What their tasks learn.
        inputs: Vec<Input>,
        written: SyncSender<()>,
    },
    /// The forge of a project was looked at for the first time since the daemon began.
    ForgeSeen { project: ProjectName },
    /// A merge queue has to stop.
    QueuePaused { project: ProjectName, stopped: Stopped, written: SyncSender<()> },
    /// The main branch was audited.
    Audited { project: ProjectName, audit: Audit, written: SyncSender<()> },
    /// A gate gave its verdict on a tree.
    VerdictGiven { project: ProjectName, tree: Sha, gate: String, verdict: Box<VerdictRow> },
    /// A run about something is to begin.
    RunWanted {
        project: ProjectName,
        formula: String,
        subject: run::Subject,
        by: String,
        /// Told the run, or why there is none.
        written: SyncSender<Reply>,
    },
    /// People are to be told, were told, or spoke.
    Notifier { told: Box<NotifierReport>, written: SyncSender<()> },
    /// A role that works by rules has looked, or was spoken to.
    Role { told: Box<factory::RoleReport>, written: SyncSender<()> },
    /// A look at the clock, for formulas that run by themselves.
    Timetable { project: ProjectName, standing: ProjectFacts },
    /// A person decided something at the embedded forge: a decision that was kept about it is over.
    Decided(Box<Made>),
    /// Something was seen of a session's work.
    Observed {
        workflow: WorkflowId,
        observations: Vec<Observation>,
        /// How far its source was read by that: a named value to remember.
        read_to: Option<(String, String)>,
    },
    /// These sessions were seen alive.
    Seen {
        sessions: Vec<String>,
        /// Those that are there and gave no sign since the last look.
        silent: Vec<String>,
    },
    /// These sessions were looked for in vain; that says nothing by itself.
    Missed { sessions: Vec<String> },
    /// A working tree was saved.
    CheckpointTaken {
        /// What is known of it.
        row: Box<CheckpointRow>,
        /// Those that were pruned for it.
        pruned: Vec<u64>,
    },
    /// The relay has counted calls of the model, or heard that a credential has to wait.
    Relayed {
        told: Box<RelayReport>,
        /// Told the budgets of the sessions whose usage has changed.
        written: SyncSender<Vec<SessionBudgets>>,
    },
    /// Somebody wants to know when everything that was sent before this is on disk.
    Passed { written: SyncSender<()> },
    /// Something changed on the forge of this project: ask it now.
    AskForge { project: ProjectName },
}

/// The sending end: cheap to clone, held by every source.
#[derive(Clone)]
pub(crate) struct Inbox {
    sender: SyncSender<Inbound>,
}

impl Inbox {
    /// The two ends of the channel.
    pub(crate) fn new() -> (Self, std::sync::mpsc::Receiver<Inbound>) {
        let (sender, receiver) = sync_channel(INBOX_LIMIT);
        (Self { sender }, receiver)
    }

    /// Sends; waits if the loop is far behind. After the daemon's end nobody listens, and nothing
    /// is lost by that: sources tell their facts again at the next start.
    pub(crate) fn send(&self, inbound: Inbound) {
        let _ = self.sender.send(inbound);
    }

    /// Waits until everything that this thread has sent is on disk, or the daemon ends.
    pub(crate) fn wait_until_written(&self) {
        let (written, told) = sync_channel(1);
        self.report(ThreadReport::Passed { written });
        let _ = told.recv();
    }

    /// One event of one workflow, and whether it was taken. Nothing if the daemon ends.
    pub(crate) fn record(&self, input: Input) -> Option<Result<(), Refused>> {
        let (answered, told) = sync_channel(1);
        self.send(Inbound::Inputs { inputs: vec![input], answered: Some(answered) });
        told.recv().ok()?.pop()
    }

    /// One event of one workflow.
    pub(crate) fn tell(&self, input: Input) {
        self.tell_all(vec![input]);
    }

    /// Several events of workflows, written together.
    pub(crate) fn tell_all(&self, inputs: Vec<Input>) {
        self.send(Inbound::Inputs { inputs, answered: None });
    }

    /// Something that is not an event of a workflow.
    pub(crate) fn report(&self, report: ThreadReport) {
        self.send(Inbound::Report(Box::new(report)));
    }
}
