//! The planner: what a plan is made from is collected by code; if something of it is new, a session is asked. What rules allow
//! of its answer is ordered by the planner's memory.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use pointsman_adapters::git::{self, mirror::Mirror};
use pointsman_adapters::process::free_memory_mb;
use pointsman_core::config::Config;
use pointsman_core::formula;
use pointsman_core::ids::{ProjectName, Sha};
use pointsman_core::planner::{DOCUMENTS, Document, Memory, OWN, PlanInputs, question};
use pointsman_core::role::Role;
use pointsman_core::role_memory::{Look, Obstacle};
use pointsman_core::run::RunId;
use pointsman_core::text::clean_block;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::Store;

use super::asking::{InspectingRole, Question, RoleInspection, due};
use super::watch::Watch;
use super::{ForgeIssues, RoleReport, send};
use crate::daemon::effects::EffectPerformer;
use crate::daemon::served::Served;
use crate::formulas;
use crate::trust;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Planner;
/// Its thread, and the name under which it is remembered.
const NAME: &str = ROLE.as_str();
/// A larger file is not read.
const LARGEST: usize = 1 << 20;
/// How much of a file counts as read, in bytes: a plan depends on no more.
const READ: usize = 64 << 10;

/// Reads what the planner remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Looks at what a plan would be made from. Nobody is asked here.
pub fn look(facts: &PlanInputs, memory: &Memory, config: &Config, now: Timestamp) -> RoleInspection {
    let mut memory = memory.clone();
    memory.see(&facts.issues, now);
    let question = question(facts, &memory, now).map(|question| Question {
        found: words::planner::found(question.predictions.len()),
        briefing: words::planner::briefing(facts, &question, config.limits.planner_issues, now),
    });
    RoleInspection { role: ROLE, look: Look::Planner(facts.clone()), question, free_memory_mb: None }
}

impl Watch {
    /// Does what is due.
    pub(super) fn plan(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        // A plan is made of issues.
        if !served.config.forge.kind.capabilities().issues {
            return Ok(());
        }
        let Some(seen) = served.seen() else { return Ok(()) };
        if self.to_look::<Memory>(served, now)?.is_none() {
            return Ok(());
        }
        let (world, inbox) = (Arc::clone(&self.world), self.inbox.clone());
        self.beside(format!("{ROLE} {}", served.config.name), served, now, move |served| {
            if let Some(asking) = look_at(&world, served, &seen, now)? {
                let project = served.config.name.clone();
                send(&inbox, RoleReport::Inspected { project, asking: Box::new(asking) });
            }
            Ok(())
        });
        Ok(())
    }
}

fn look_at(
    world: &EffectPerformer,
    served: &Served,
    seen: &ForgeIssues,
    now: Timestamp,
) -> anyhow::Result<Option<RoleInspection>> {
    let config = &served.config;
    // As it is now: another job may have looked since.
    let Some(memory) = world.read(|store| due::<Memory>(store, &config.name, now))? else {
        return Ok(None);
    };
    let facts =
        PlanInputs { issues: seen.issues.clone(), ..collect(world, served, memory.known.main.as_ref())? };
    let asking = look(&facts, &memory, config, now);
    Ok(Some(RoleInspection { free_memory_mb: free_memory_mb(), ..asking }))
}

/// All but the issues, from the main branch as it is now; `planned` is where it stood when the last plan was made.
fn collect(world: &EffectPerformer, served: &Served, planned: Option<&Sha>) -> anyhow::Result<PlanInputs> {
    let mirror = &served.mirror;
    mirror.fetch_remote()?;
    let main = mirror.remote_head(&served.primary)?;
    let mut facts = PlanInputs { formulas: formulas(world, &served.config)?, ..PlanInputs::default() };
    if let Some(main) = &main {
        for path in DOCUMENTS {
            facts.documents.extend(document(mirror, main, path)?);
        }
        facts.landed = landed(mirror, planned, main)?;
    }
    Ok(PlanInputs { main, ..facts })
}

fn document(mirror: &Mirror, main: &Sha, path: &'static str) -> anyhow::Result<Option<Document>> {
    let text = match mirror.read_file_at(main, path, LARGEST) {
        Ok(None) => return Ok(None),
        Ok(Some(bytes)) => clean_block(&String::from_utf8_lossy(&bytes), READ),
        // It does not become smaller by itself, and the session has it in its checkout.
        Err(git::Error::Unexpected { .. }) => words::planner::unread(path),
        Err(error) => return Err(error.into()),
    };
    Ok(Some(Document { path, text }))
}

/// What landed since. What the planner itself landed is no news to it.
fn landed(mirror: &Mirror, planned: Option<&Sha>, main: &Sha) -> anyhow::Result<Vec<String>> {
    let Some(planned) = planned else { return Ok(Vec::new()) };
    // A main branch that was rewritten tells nothing.
    if !mirror.commit_exists(planned)? || !mirror.is_ancestor(planned, main)? {
        return Ok(Vec::new());
    }
    let changed = mirror.changed_paths(planned, main)?;
    match changed.iter().all(|path| path.starts_with(OWN)) {
        true => Ok(Vec::new()),
        false => Ok(mirror.log_oneline(planned, main)?.lines().map(str::to_owned).collect()),
    }
}

/// The formulas that the project can use, each with what it is for.
pub(super) fn formulas(world: &EffectPerformer, config: &Config) -> anyhow::Result<Vec<(String, String)>> {
    let row = world
        .read(|store| store.project(&config.name))?
        .context(words::daemon::project::not_served_any_more())?;
    let checkout: &Path = &row.checkout;
    let variables = formula::variables(config);
    let usable = |(name, found): (String, Result<formulas::Found, formulas::Error>)| {
        let formula = found.ok()?.render(checkout, &variables).ok()?;
        Some((name, formula.description))
    };
    let own = world.read(|store| trust::own_formulas(store, &row))?;
    Ok(formulas::all_accepted(&own, checkout).into_iter().filter_map(usable).collect())
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
