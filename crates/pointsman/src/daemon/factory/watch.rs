//! Looks when a role's time has come. Nothing here decides or writes.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use pointsman_adapters::projection;
use pointsman_core::health::{Machine, assess, remedies, report};
use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_store::Store;

use super::backoff::Backoff;
use super::supervisor::{self, Inspection};
use super::{Mode, RoleReport, carry_out, collect, is_due, send, tails, whole_machine};
use crate::daemon::clock;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;
use crate::journal;

/// Looks after the roles of all projects.
pub(crate) struct Watch {
    pub(super) inbox: Inbox,
    pub(super) world: Arc<EffectPerformer>,
    pub(super) patience: Arc<Backoff>,
    /// What the forge said when results were looked at last. It can be lost.
    pub(super) followed: BTreeMap<ProjectName, Timestamp>,
}

impl Watch {
    /// Nothing was seen yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<EffectPerformer>) -> Self {
        Self { inbox, world, patience: Arc::default(), followed: BTreeMap::new() }
    }

    /// Does what is due.
    pub(crate) fn look(&mut self, now: Timestamp) {
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        for served in projects.values() {
            if served.config.roles.supervisor.enabled
                && let Err(error) = self.supervise(served, now)
            {
                // It is tried again at the next look.
                tracing::error!(project = %served.config.name, error = format!("{error:#}"), "health was not looked at");
            }
            if served.config.roles.gardener.enabled
                && let Err(error) = self.garden(served, now)
            {
                tracing::error!(project = %served.config.name, error = format!("{error:#}"), "issues were not looked at");
            }
            if served.config.roles.planner.enabled
                && let Err(error) = self.plan(served, now)
            {
                tracing::error!(project = %served.config.name, error = format!("{error:#}"), "plans were not looked at");
            }
            if served.config.roles.predictor.enabled
                && let Err(error) = self.foresee(served, now)
            {
                tracing::error!(project = %served.config.name, error = format!("{error:#}"), "figures were not looked at");
            }
            if let Err(error) = self.follow_results(served, now) {
                tracing::error!(project = %served.config.name, error = format!("{error:#}"), "results were not looked at");
            }
        }
    }

    fn supervise(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        let config = &served.config;
        let project = &config.name;
        let machine = self.machine(served)?;
        let (waiting, memory, due, answered) = self.world.read(|store| {
            let waiting = !store.replies(project, &supervisor::topic())?.is_empty();
            let memory = supervisor::memory(store, project)?;
            let collect =
                |machine| collect(machine, &self.world.paths, store, config, Some(&served.known()), now);
            let facts = machine.map(collect).transpose()?;
            anyhow::Ok((waiting, memory, facts, supervisor::answered(store, project)?))
        })?;
        if waiting {
            send(&self.inbox, RoleReport::Heard { project: project.clone() });
        }
        if let Some(run) = answered {
            // Whoever ends early because the daemon does hears it once more from the next one.
            let _ = self.inbox.record(supervisor::judged(&run));
            return Ok(());
        }
        let Some(facts) = due else { return Ok(()) };
        let assessment = assess(&facts, config, &memory.keys(), now);
        let tails = tails(&self.world.paths, config, &facts, &assessment.findings);
        let mut done = Vec::new();
        if config.health.remedies {
            for remedy in remedies(&assessment.findings) {
                match carry_out(&self.world, &self.inbox, served, &remedy, Mode::Do, now) {
                    Ok(lines) => done.extend(lines),
                    Err(error) => {
                        tracing::warn!(%project, ?remedy, error = format!("{error:#}"), "not remedied");
                    }
                }
            }
        }
        let report = report(&memory, &assessment.findings, config, now);
        let news = report.changed || report.told.is_some() || !done.is_empty();
        let looked = Inspection { assessment, done, machine: facts.machine, tails };
        send(&self.inbox, RoleReport::Looked { project: project.clone(), looked: Box::new(looked) });
        if news { self.keep_journal(served, now) } else { Ok(()) }
    }

    /// The machine, if the supervisor's time has come. Nobody waits for the store meanwhile.
    fn machine(&self, served: &Served) -> anyhow::Result<Option<Machine>> {
        let config = &served.config;
        let memory = self.world.read(|store| supervisor::memory(store, &config.name))?;
        let is_due = |store: &Store| is_due(store, &config.name, supervisor::FORMULA, memory.looked_at);
        let due = self.world.read(is_due)?;
        let path = (self.world.environment)("PATH");
        Ok(due.then(|| whole_machine(&self.world.paths, config, path.as_deref())))
    }

    /// The supervisor's journal of the day as a file, for people who read files.
    fn keep_journal(&self, served: &Served, now: Timestamp) -> anyhow::Result<()> {
        let day = clock::day(now);
        let Some(span) = journal::span_of(&day) else { return Ok(()) };
        let read = |store: &Store| journal::read(store, &served.config.name, span, Some(supervisor::ROLE));
        let written = self.world.read(read)?;
        let mut text = format!("# {} on {day}\n", served.config.name);
        for written in &written {
            let at: String = clock::rfc3339(written.at).chars().skip(11).take(5).collect();
            text.push_str(&format!("\n## {at}\n\n"));
            text.extend(written.entry.lines.iter().map(|line| format!("- {line}\n")));
        }
        projection::write(
            served.paths.root(),
            &[supervisor::ROLE.as_str(), "journal"],
            &format!("{day}.md"),
            text.as_bytes(),
        )?;
        Ok(())
    }
}
