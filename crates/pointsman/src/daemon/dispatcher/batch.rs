//! Inputs that were taken from the channel together and are written together.

use std::sync::mpsc::SyncSender;

use pointsman_store::{Change, Outgoing, Write};

use crate::control::protocol::{Reply, Request};
use crate::daemon::engine::Input;
use crate::daemon::inbound::{Answers, Inbound, ThreadReport};
use crate::daemon::outcome::Outcome;

/// What was taken from the inbox and is to be written.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) inputs: Vec<Input>,
    pub(super) performed: Vec<(Outgoing, Outcome)>,
    /// Rows that nobody reads about in the log. They are written with the events.
    pub(super) rows: Vec<Write>,
    /// Inputs whose source waits for the answers.
    pub(super) awaited: Vec<(Vec<Input>, SyncSender<Answers>)>,
    pub(super) reports: Vec<ThreadReport>,
    pub(super) asks: Vec<(Request, SyncSender<Reply>)>,
    pub(super) stop: bool,
}

impl Batch {
    pub(super) fn add(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Inputs { inputs, answered: None } => self.inputs.extend(inputs),
            Inbound::Inputs { inputs, answered: Some(answered) } => self.awaited.push((inputs, answered)),
            Inbound::Performed { outgoing, outcome } => self.performed.push((*outgoing, outcome)),
            Inbound::Report(report) => match rows(*report) {
                Ok(rows) => self.rows.extend(rows),
                Err(report) => self.add_report(*report),
            },
            Inbound::Ask { request, reply } => self.asks.push((request, reply)),
            Inbound::Stop => self.stop = true,
        }
    }

    /// What was seen of one session in quick succession is written once.
    fn add_report(&mut self, report: ThreadReport) {
        if let ThreadReport::Observed { workflow, observations, read_to } = &report
            && let Some(ThreadReport::Observed { workflow: before, observations: known, read_to: upto }) =
                self.reports.last_mut()
            && before == workflow
        {
            known.extend(observations.iter().cloned());
            *upto = read_to.clone().or(upto.take());
            return;
        }
        self.reports.push(report);
    }

    /// The rows as one change, if there are any.
    pub(super) fn quiet(&mut self, now: pointsman_core::time::Timestamp) -> Vec<Change> {
        match std::mem::take(&mut self.rows) {
            rows if rows.is_empty() => Vec::new(),
            rows => vec![Change::quiet(now, rows)],
        }
    }
}

/// The rows of a report that is nothing but rows.
fn rows(report: ThreadReport) -> Result<Vec<Write>, Box<ThreadReport>> {
    Ok(match report {
        ThreadReport::VerdictGiven { project, tree, gate, verdict } => {
            vec![Write::Verdict { project, object: tree, gate, verdict: *verdict }]
        }
        ThreadReport::Seen { sessions, silent } => {
            let seen = (!sessions.is_empty()).then_some(Write::SessionsSeen(sessions));
            let silent = (!silent.is_empty()).then_some(Write::SessionsSilent(silent));
            seen.into_iter().chain(silent).collect()
        }
        ThreadReport::Missed { sessions } => sessions.into_iter().map(Write::SessionMissed).collect(),
        ThreadReport::CheckpointTaken { row, pruned } => {
            let task = row.task.clone();
            let forgotten = pruned.into_iter().map(|n| Write::CheckpointForgotten { task: task.clone(), n });
            std::iter::once(Write::Checkpoint(*row)).chain(forgotten).collect()
        }
        report @ (ThreadReport::Redelivered { .. }
        | ThreadReport::QueueMoved { .. }
        | ThreadReport::QueuePaused { .. }
        | ThreadReport::Audited { .. }
        | ThreadReport::RunWanted { .. }
        | ThreadReport::Notifier { .. }
        | ThreadReport::Role { .. }
        | ThreadReport::Timetable { .. }
        | ThreadReport::Decided(_)
        | ThreadReport::Observed { .. }
        | ThreadReport::Relayed { .. }
        | ThreadReport::Passed { .. }
        | ThreadReport::ForgeSeen { .. }
        | ThreadReport::AskForge { .. }) => return Err(Box::new(report)),
    })
}
