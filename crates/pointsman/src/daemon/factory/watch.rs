//! Looks when a role's time has come. Nothing here decides or writes.

use std::sync::{Arc, PoisonError};

use pointsman_core::health::{assess, remedies, report};

use super::supervisor::{self, Looked};
use super::{Mode, Told, carry_out, collect, is_due, send};
use crate::daemon::clock;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;
use crate::daemon::world::RealWorld;

/// Looks after the roles of all projects.
pub(crate) struct Watch {
    inbox: Inbox,
    world: Arc<RealWorld>,
}

impl Watch {
    /// Nothing was seen yet.
    pub(crate) fn new(inbox: Inbox, world: Arc<RealWorld>) -> Self {
        Self { inbox, world }
    }

    /// Does what is due.
    pub(crate) fn look(&mut self) {
        let projects = self.world.projects.read().unwrap_or_else(PoisonError::into_inner).clone();
        for served in projects.values() {
            if served.config.roles.supervisor.enabled
                && let Err(error) = self.supervise(served)
            {
                // It is tried again at the next look.
                tracing::error!(project = %served.config.name, error = format!("{error:#}"), "health was not looked at");
            }
        }
    }

    fn supervise(&self, served: &Arc<Served>) -> anyhow::Result<()> {
        let (config, now) = (&served.config, clock::now());
        let project = &config.name;
        let seen = served.seen();
        let (waiting, memory, due) = {
            let reader = self.world.reader.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = !reader.replies(project, &supervisor::topic())?.is_empty();
            let memory = supervisor::memory(&reader, project)?;
            let due = is_due(&reader, project, supervisor::FORMULA, memory.looked_at)?;
            let facts = due
                .then(|| collect(&self.world.paths, &reader, config, Some(seen.as_deref()), now))
                .transpose()?;
            let assessment = facts.map(|facts| assess(&facts, config, &memory.keys(), now));
            (waiting, memory, assessment)
        };
        if waiting {
            send(&self.inbox, Told::Heard { project: project.clone() });
        }
        let Some(assessment) = due else { return Ok(()) };
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
        // The line in the log is written before it is remembered that people were told.
        if let Some(told) = report(&memory, &assessment.findings, config, now).told {
            self.world.put_up(&supervisor::posting(project, &memory, &told, now))?;
        }
        send(&self.inbox, Told::Looked { project: project.clone(), looked: Looked { assessment, done } });
        Ok(())
    }
}
