//! Reports of threads beside the loop: each is written in a commit of its own, and whoever follows from it is woken.

use pointsman_core::time::Timestamp;
use pointsman_store::Change;

use super::Dispatcher;
use crate::daemon::decisions;
use crate::daemon::factory;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::notifier::{self, NotifierReport};
use crate::daemon::queue_orders;
use crate::daemon::relay;
use crate::daemon::restored;
use crate::daemon::runs;
use crate::daemon::timetable;

impl Dispatcher {
    /// Writes a report down, tells whoever waits for that, and wakes whoever is concerned.
    pub(super) fn write_report(&mut self, report: ThreadReport, now: Timestamp) {
        match report {
            ThreadReport::QueueMoved { project, entries, audit, inputs, written } => {
                self.until_written("the queue", |d| {
                    let mut changes = queue_orders::all_moved(d.engine.store(), &entries, now)?;
                    if let Some(audit) = &audit {
                        changes.extend(queue_orders::audited(d.engine.store(), &project, audit, now)?);
                    }
                    d.engine.take_with(&inputs, changes, now).map(drop)
                });
                self.projections.nudge();
                let _ = written.send(());
            }
            ThreadReport::QueuePaused { project, stopped, written } => {
                self.until_written("a paused queue", |d| {
                    queue_orders::pause(&mut d.engine, &project, &stopped)
                });
                self.projections.nudge();
                let _ = written.send(());
            }
            ThreadReport::Audited { project, audit, written } => {
                self.until_written("an audit", |d| {
                    let change = queue_orders::audited(d.engine.store(), &project, &audit, now)?;
                    d.engine.write(change.as_slice()).map(drop)
                });
                self.projections.nudge();
                let _ = written.send(());
            }
            ThreadReport::Observed { workflow, observations, read_to } => {
                self.until_written("a work state", |d| {
                    d.engine.observe(&workflow, &observations, read_to.as_ref(), now)
                });
            }
            ThreadReport::Redelivered { message, became } => {
                if let Some(row) = self.redelivered(&message, became, now) {
                    let change = [Change::quiet(now, vec![row])];
                    self.until_written("a message", |d| d.engine.write(&change).map(drop));
                }
            }
            ThreadReport::Notifier { told, written } => {
                self.until_written("a notice", |d| notifier::take(&mut d.engine, &told, now));
                match *told {
                    NotifierReport::Heard { .. } => {
                        self.notices.nudge();
                        self.factory.nudge();
                    }
                    NotifierReport::Posted(_)
                    | NotifierReport::Dropped { .. }
                    | NotifierReport::Rested { .. }
                    | NotifierReport::Shown(_)
                    | NotifierReport::Failed { .. } => {}
                }
                let _ = written.send(());
            }
            ThreadReport::Role { told, written } => {
                self.until_written("a role's look", |d| factory::take(&mut d.engine, &told, now));
                self.notices.nudge();
                self.runs.nudge();
                let _ = written.send(());
            }
            ThreadReport::Timetable { project, standing } => {
                let mut begun = 0;
                self.until_written("a timetable", |d| {
                    begun = timetable::tick(&mut d.engine, &project, &standing, now)?;
                    Ok(())
                });
                if begun > 0 {
                    self.runs.nudge();
                    self.factory.nudge();
                }
            }
            ThreadReport::RunWanted { project, formula, subject, by, written } => {
                let mut answer = None;
                self.until_written("a run", |d| {
                    answer = Some(runs::begin_about(&mut d.engine, &project, &formula, &subject, &by, now)?);
                    Ok(())
                });
                if let Some(answer) = answer {
                    self.runs.nudge();
                    let _ = written.send(answer);
                }
            }
            ThreadReport::Decided(made) => {
                self.until_written("a decision", |d| decisions::settle(&mut d.engine, &made, now));
            }
            ThreadReport::Relayed { told, written } => {
                let mut budgets = Vec::new();
                self.until_written("relayed usage", |d| {
                    budgets = relay::take(&mut d.engine, &told, now)?;
                    Ok(())
                });
                let _ = written.send(budgets);
            }
            ThreadReport::Passed { written } => drop(written.send(())),
            ThreadReport::ForgeSeen { project } => {
                if self.engine.release(&project) {
                    tracing::info!("what the forges show was taken in");
                    restored::all_reconciled(&self.world.paths);
                }
            }
            ThreadReport::AskForge { project } => self.poller.ask(&project),
            // These are rows, and were written with the events.
            ThreadReport::VerdictGiven { .. }
            | ThreadReport::Seen { .. }
            | ThreadReport::Missed { .. }
            | ThreadReport::CheckpointTaken { .. } => {}
        }
    }
}
