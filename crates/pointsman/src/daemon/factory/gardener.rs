//! The gardener: rules look through the issues that the forge told anyway; if something is new, a session is asked. What rules
//! allow of its answer is ordered by the gardener's memory.

use std::sync::Arc;

use pointsman_adapters::process::free_memory_mb;
use pointsman_core::config::Config;
use pointsman_core::gardener::{Memory, RepositoryFacts, findings, questions};
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::Topic;
use pointsman_core::role::Role;
use pointsman_core::role_memory::{Look, Obstacle};
use pointsman_core::run::RunId;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::Store;

use super::asking::{InspectingRole, Question, RoleInspection};
use super::watch::Watch;
use super::{ForgeIssues, RoleReport, ground, send};
use crate::daemon::served::Served;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Gardener;
/// Its thread, and the name under which it is remembered.
const NAME: &str = ROLE.as_str();

/// Reads what the gardener remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Looks through the issues, with what is known beside them and whether people have said something. Nobody is asked here.
pub fn look(
    seen: &ForgeIssues,
    (ground, reconsider): (RepositoryFacts, bool),
    memory: &Memory,
    config: &Config,
    now: Timestamp,
) -> RoleInspection {
    let mut memory = memory.clone();
    if reconsider {
        memory.reconsider();
    }
    memory.ground = ground.clone();
    memory.see(&seen.issues, now);
    let found = findings(&seen.issues, &memory, config, now);
    let questions = questions(&found, &seen.issues, &memory);
    let question = (!questions.is_empty()).then(|| Question {
        found: words::daemon::factory::found_things(questions.len()),
        briefing: words::gardener::briefing(&questions, &seen.issues),
    });
    let look = Look::Gardener { issues: seen.issues.clone(), ground, reconsider };
    RoleInspection { role: ROLE, look, question, free_memory_mb: None }
}

impl Watch {
    /// Does what is due.
    pub(super) fn garden(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        let config = &served.config;
        let Some(seen) = served.seen() else { return Ok(()) };
        let Some(mut memory) = self.to_look::<Memory>(served, now)? else { return Ok(()) };
        let topic = Topic::of_role(ROLE);
        let reconsider = !self.world.read(|store| store.replies(&config.name, &topic))?.is_empty();
        if reconsider {
            memory.reconsider();
        }
        let ground = ground::survey(&self.world, served, &memory)?;
        let looked = look(&seen, (ground, reconsider), &memory, config, now);
        let asking = Box::new(RoleInspection { free_memory_mb: free_memory_mb(), ..looked });
        send(&self.inbox, RoleReport::Inspected { project: config.name.clone(), asking });
        Ok(())
    }
}

impl InspectingRole for Memory {
    const ROLE: Role = ROLE;

    fn looked_at(&self) -> Timestamp {
        self.looked_at
    }

    fn asked(&self) -> Option<RunId> {
        self.asked.as_ref().map(|(run, _)| *run)
    }

    fn hindered(&self) -> Option<&Obstacle> {
        self.hindered.as_ref()
    }

    fn acts(&self) -> bool {
        self.deeds.are_under_way()
    }
}
