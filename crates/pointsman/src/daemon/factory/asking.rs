//! The steps that all roles which ask a model share: one question at a time, and one answer. What is done of an answer is
//! decided by the role's memory, a workflow of the engine; here it is found out that the role's time has come, and that the run
//! it asked is over.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ids::{ProjectName, RoleKey};
use pointsman_core::notifier::Topic;
use pointsman_core::role::Role;
use pointsman_core::role_memory::{Event, Heard, Look, Obstacle};
use pointsman_core::run::{Run, RunId, Status};
use pointsman_core::snapshot::Snapshot;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Store, Write};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::watch::Watch;
use super::{AskObstacle, is_due, planner};
use crate::control::protocol::Reply;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::engine::{Engine, Input};
use crate::daemon::inbound::Inbox;
use crate::daemon::runs;
use crate::daemon::served::Served;

/// Who could not ask looks again after this long.
const HINDERED: Duration = Duration::from_secs(600);

/// The memory of a role that asks a model.
pub(super) trait InspectingRole: Snapshot + Default + Send + 'static {
    /// The role: its thread, and the name under which it is remembered.
    const ROLE: Role;

    /// When it looked last.
    fn looked_at(&self) -> Timestamp;

    /// The run that was asked.
    fn asked(&self) -> Option<RunId>;

    fn hindered(&self) -> Option<&Obstacle>;

    /// Whether deeds of an answer are on their way.
    fn acts(&self) -> bool;
}

/// A look of a role's.
#[derive(Clone, Debug)]
pub struct RoleInspection {
    pub role: Role,
    /// What it saw.
    pub look: Look,
    /// What is asked; nothing if nobody is.
    pub question: Option<Question>,
    /// Memory that is free; none if nobody knows.
    pub free_memory_mb: Option<u64>,
}

/// A question to a session.
#[derive(Clone, Debug)]
pub struct Question {
    /// What was found, in a few words.
    pub found: String,
    pub briefing: String,
}

impl Watch {
    /// Sees to the answer that a role waits for, if there is one. Answers what the role remembers if it has to look.
    pub(super) fn to_look<M: InspectingRole>(
        &self,
        served: &Arc<Served>,
        now: Timestamp,
    ) -> anyhow::Result<Option<M>> {
        let project = &served.config.name;
        let (memory, asked, acts) = self.world.read(|store| {
            let memory = store.memory::<M>(project, M::ROLE.as_str())?.unwrap_or_default();
            let asked = memory.asked().map(|run| store.run(project, run)).transpose()?.flatten();
            Ok::<_, pointsman_store::Error>((due::<M>(store, project, now)?, asked, memory.acts()))
        })?;
        match asked {
            Some(run) if run.status.is_over() && !acts => {
                let (world, inbox) = (Arc::clone(&self.world), self.inbox.clone());
                let name = format!("{} {project}", M::ROLE);
                self.beside(name, served, now, move |served| hear(&world, &inbox, served, M::ROLE, &run));
                Ok(None)
            }
            Some(_) => Ok(None),
            None => Ok(memory),
        }
    }
}

/// What a role remembers, if its time has come and no answer is under way.
pub(super) fn due<M: InspectingRole>(
    store: &Store,
    project: &ProjectName,
    now: Timestamp,
) -> Result<Option<M>, pointsman_store::Error> {
    let memory: M = store.memory(project, M::ROLE.as_str())?.unwrap_or_default();
    // The clock may have been set back.
    if memory.hindered().is_some_and(|hindered| hindered.at <= now && now.since(hindered.at) < HINDERED) {
        return Ok(None);
    }
    let due = memory.asked().is_none() && is_due(store, project, M::ROLE.formula(), memory.looked_at())?;
    Ok(due.then_some(memory))
}

/// Tells a role what became of the run that it asked, with the issues as they are now.
fn hear(
    world: &EffectPerformer,
    inbox: &Inbox,
    served: &Served,
    role: Role,
    run: &Run,
) -> anyhow::Result<()> {
    let heard = match run.status {
        Status::Done => Heard::Answer {
            result: run.result.clone(),
            issues: served.forge.open_issues()?,
            formulas: planner::formulas(world, &served.config)?.into_iter().map(|(name, _)| name).collect(),
        },
        Status::Failed | Status::Stopped | Status::Starting | Status::Running => {
            let nothing = || words::daemon::factory::came_to_nothing().to_owned();
            Heard::Nothing { why: run.reason.clone().unwrap_or_else(nothing), unheard: run.is_unheard() }
        }
    };
    // Whoever ends early because the daemon does hears it once more from the next one.
    let _ = inbox.record(heard_by(role, run, heard));
    Ok(())
}

/// The event by which a role hears of the run that it asked. What people said to a run that nobody heard is for the next one.
pub fn heard_by(role: Role, run: &Run, heard: Heard) -> Input {
    let key = RoleKey { project: run.project.clone(), role };
    let unheard = matches!(heard, Heard::Nothing { unheard: true, .. });
    let mut input = Input::of_role(key, Event::Heard { run: run.id, heard });
    if unheard {
        let (project, topic) = (run.project.clone(), Topic::of_role(role));
        input.writes.push(Write::RepliesGivenBack { project, topic, taken_at: run.started_at });
    }
    input
}

/// Writes a look down, with the run that is asked, if anybody is.
pub fn ask(
    engine: &mut Engine,
    project: &ProjectName,
    asking: &RoleInspection,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let RoleInspection { role, look, question, free_memory_mb } = asking;
    if engine.store().memory::<Waiting>(project, role.as_str())?.is_some_and(|w| w.asked.is_some()) {
        // Another look was faster: no second run is begun.
        return Ok(());
    }
    let key = RoleKey { project: project.clone(), role: *role };
    let looked = |run: Option<RunId>, lines: Vec<String>| {
        Input::of_role(key.clone(), Event::Looked { look: Box::new(look.clone()), run, lines })
    };
    let Some(question) = question else {
        return engine.take(&[looked(None, Vec::new())], now).map(drop);
    };
    let drafted = match super::hindrance(engine, project, *role, *free_memory_mb, now)? {
        Some(hindrance) => Err(hindrance),
        None => runs::draft(engine, project, &runs::RunRequest::new(role.formula(), "schedule"), now)?
            .map_err(|reply| {
                let why = match reply {
                    Reply::Failed { message, .. } => message,
                    Reply::Done { .. } => String::new(),
                };
                AskObstacle { why, passes: false }
            }),
    };
    let inputs = match drafted {
        Ok(run) => {
            let said = engine.store().replies(project, &Topic::of_role(*role))?;
            let words = said.iter().map(|row| (row.said.by.as_str(), row.said.words.as_str()));
            let briefing = format!("{}{}", question.briefing, words::run::said(words));
            let mut asks = looked(Some(run.id), Vec::new());
            asks.writes.extend(said.iter().map(|row| Write::ReplyTaken(row.id)));
            vec![asks, Input::begin(Run { briefing: Some(briefing), ..run })]
        }
        Err(AskObstacle { why, passes: true }) => {
            let found = question.found.clone();
            vec![Input::of_role(key, Event::Hindered { found, why })]
        }
        Err(AskObstacle { why, passes: false }) => {
            vec![looked(None, vec![words::daemon::factory::asked_nobody(&question.found, &why)])]
        }
    };
    engine.take(&inputs, now).map(drop)
}

/// What every role that asks remembers.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Waiting {
    asked: Option<(RunId, Value)>,
}

impl Snapshot for Waiting {}
