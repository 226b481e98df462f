//! The steps that all roles which ask a model share: one question at a time; of its answer only what rules allow is
//! done, deed by deed. The plan is written before its first deed is done and each deed before the next, so that
//! whoever dies in between goes on there; the one deed that may be done twice is the same as once.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::role::Role;
use pointsman_core::run::{Run, RunId, Status};
use pointsman_core::snapshot::Snapshot;
use pointsman_core::time::Timestamp;
use pointsman_core::value::{Done, Outcome};
use pointsman_core::words;
use pointsman_store::{Change, Memory, Store, Write};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::watch::Watch;
use super::{AskObstacle, RoleReport, is_due, send};
use crate::control::protocol::Reply;
use crate::daemon::crash::crash_point;
use crate::daemon::effects::EffectPerformer;
use crate::daemon::engine::{Engine, Input};
use crate::daemon::inbound::Inbox;
use crate::daemon::runs;
use crate::daemon::served::Served;

/// Who could not ask looks again after this long.
const HINDERED: Duration = Duration::from_secs(600);

/// What a role that asks a model remembers, and what it does of an answer. Under `asked` it has the run that was asked,
/// and what.
pub(super) trait InspectingRole: Snapshot + Default + Send + 'static {
    /// The role: its thread, and the name under which it is remembered.
    const ROLE: Role;
    /// Places where tests kill the daemon: a plan is written, a deed is done.
    const PLACES: [&'static str; 2];

    /// What the log says of a look that asked nobody.
    fn looked(lines: Vec<String>) -> log::Entry;

    /// What the log says when something came of an answer.
    fn settled(run: RunId, lines: Vec<String>) -> log::Entry;

    /// When it looked last.
    fn looked_at(&self) -> Timestamp;

    /// The run that was asked.
    fn asked(&self) -> Option<RunId>;

    /// Reads the answer of a run that is done, and plans what is done of it; a sentence if it is of no use.
    fn decide(
        &mut self,
        world: &EffectPerformer,
        served: &Served,
        run: &Run,
        now: Timestamp,
    ) -> anyhow::Result<Result<(), String>>;

    /// How many deeds are planned; nothing without a plan.
    fn planned(&self) -> Option<usize>;

    /// What of the plan is done.
    fn done(&mut self) -> &mut Vec<Done>;

    /// Does one deed of the plan. It can be done twice.
    fn carry_out(
        &self,
        place: usize,
        world: &EffectPerformer,
        served: &Served,
        run: &Run,
    ) -> anyhow::Result<Option<Done>>;

    /// All of the plan is done: what is remembered and told of it.
    fn close(&mut self, run: &Run, now: Timestamp) -> Closing;

    /// The answer was of no use.
    fn give_up(&mut self);

    /// Nobody has answered, which is nobody's fault: it is asked again.
    fn put_back(&mut self);
}

/// What is told of a plan that was carried out.
#[derive(Default)]
pub(super) struct Closing {
    /// What was not done, and why.
    pub(super) left: Vec<String>,
    /// Whether anything came of it.
    pub(super) useful: bool,
    /// Further entries of the log, and the issues they are about.
    pub(super) events: Vec<(u64, log::Entry)>,
    pub(super) posting: Option<Posting>,
}

/// A look of a role's.
#[derive(Clone, Debug)]
pub struct RoleInspection {
    pub role: Role,
    /// What the log says if nobody is asked.
    pub looked: fn(Vec<String>) -> log::Entry,
    /// What is to be remembered.
    pub memory: Value,
    pub version: u32,
    /// What is asked; nothing if nobody is.
    pub question: Option<Question>,
    /// Memory that is free; none if nobody knows.
    pub free_memory_mb: Option<u64>,
}

impl RoleInspection {
    /// A look of a role, and what it asks.
    pub(super) fn new<M: InspectingRole>(memory: &M, question: Option<Question>) -> Self {
        Self {
            role: M::ROLE,
            looked: M::looked,
            memory: json!(memory),
            version: M::VERSION,
            question,
            free_memory_mb: None,
        }
    }

    fn remembers(&self, snapshot: Value) -> Memory {
        Memory { name: self.role.to_string(), version: self.version, snapshot }
    }
}

/// A question to a session.
#[derive(Clone, Debug)]
pub struct Question {
    /// What was found, in a few words.
    pub found: String,
    /// What is remembered of it while it is asked.
    pub asked: Value,
    pub briefing: String,
}

/// The outcome of a run that was asked something.
#[derive(Clone, Debug)]
pub struct Settled {
    pub role: Role,
    pub run: RunId,
    pub memory: Memory,
    pub logged: log::Entry,
    /// Further entries of the log, and the issues they are about.
    pub events: Vec<(u64, log::Entry)>,
    /// Whether something came of it; nothing if nobody was heard.
    pub outcome: Option<Outcome>,
}

impl Watch {
    /// Sees to the answer that a role waits for, if there is one. Answers what the role remembers if it has to look.
    pub(super) fn to_look<M: InspectingRole>(
        &self,
        served: &Arc<Served>,
        now: Timestamp,
    ) -> anyhow::Result<Option<M>> {
        let project = &served.config.name;
        let (memory, asked) = self.world.read(|store| {
            let asked = store.memory::<M>(project, M::ROLE.as_str())?.and_then(|memory| memory.asked());
            let asked = asked.map(|run| store.run(project, run)).transpose()?.flatten();
            Ok::<_, pointsman_store::Error>((due::<M>(store, project, now)?, asked))
        })?;
        match asked {
            Some(run) if run.status.is_over() => {
                let (world, inbox) = (Arc::clone(&self.world), self.inbox.clone());
                let name = format!("{} {project}", M::ROLE);
                self.beside(name, served, now, move |served| apply::<M>(&world, &inbox, served, &run, now));
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
    let hindered = store.memory::<Waiting>(project, M::ROLE.as_str())?.and_then(|waiting| waiting.hindered);
    // The clock may have been set back.
    if hindered.is_some_and(|hindered| hindered.at <= now && now.since(hindered.at) < HINDERED) {
        return Ok(None);
    }
    let memory: M = store.memory(project, M::ROLE.as_str())?.unwrap_or_default();
    let waits = memory.asked().map(|run| store.run(project, run)).transpose()?.flatten().is_some();
    let due = !waits && is_due(store, project, M::ROLE.formula(), memory.looked_at())?;
    Ok(due.then_some(memory))
}

/// Does what rules allow of a run's answer, and has it written down.
fn apply<M: InspectingRole>(
    world: &EffectPerformer,
    inbox: &Inbox,
    served: &Served,
    run: &Run,
    now: Timestamp,
) -> anyhow::Result<()> {
    let project = &served.config.name;
    // As it is now: another job may have seen to it since somebody looked.
    let mut memory: M = world.read(|store| store.memory(project, M::ROLE.as_str()))?.unwrap_or_default();
    if memory.asked() != Some(run.id) {
        return Ok(());
    }
    let remember = |memory: &M| {
        let memory = Memory { name: M::ROLE.to_string(), version: M::VERSION, snapshot: json!(memory) };
        let project = project.clone();
        send(inbox, RoleReport::Remembered { project, role: M::ROLE, run: run.id, memory });
    };
    let useless = match (memory.planned(), run.status) {
        (Some(_), _) => None,
        (None, Status::Done) => memory.decide(world, served, run, now)?.err(),
        (None, Status::Failed | Status::Stopped | Status::Starting | Status::Running) => {
            Some(run.reason.clone().unwrap_or_else(|| words::daemon::factory::came_to_nothing().to_owned()))
        }
    };
    let (lines, closing) = match useless {
        None => {
            remember(&memory);
            crash_point(M::PLACES[0]);
            carry_out(&mut memory, world, served, run, &remember)?;
            let mut lines: Vec<String> = memory.done().iter().map(|done| done.line.clone()).collect();
            let closing = memory.close(run, now);
            lines.extend(closing.left.iter().cloned());
            (lines, closing)
        }
        Some(why) if run.is_unheard() => {
            memory.put_back();
            (vec![words::daemon::factory::not_heard(run.id, &why)], Closing::default())
        }
        Some(why) => {
            memory.give_up();
            (vec![words::daemon::factory::of_no_use(run.id, &why)], Closing::default())
        }
    };
    if let Some(posting) = &closing.posting {
        world.put_up(posting)?;
    }
    let outcome = match closing.useful {
        true => Some(Outcome::Used),
        false => (!run.is_unheard()).then_some(Outcome::Noise),
    };
    super::tell_pause(world, &served.config, M::ROLE, outcome, now)?;
    let settled = Settled {
        role: M::ROLE,
        run: run.id,
        memory: Memory::new(M::ROLE.as_str(), &memory)?,
        logged: M::settled(run.id, lines),
        events: closing.events,
        outcome,
    };
    send(inbox, RoleReport::Settled { project: project.clone(), settled: Box::new(settled) });
    Ok(())
}

/// Does what is left of the plan, and has each deed written down before the next.
fn carry_out<M: InspectingRole>(
    memory: &mut M,
    world: &EffectPerformer,
    served: &Served,
    run: &Run,
    remember: &impl Fn(&M),
) -> anyhow::Result<()> {
    while let Some(place) = memory.planned().map(|_| memory.done().len())
        && let Some(done) = memory.carry_out(place, world, served, run)?
    {
        crash_point(M::PLACES[1]);
        memory.done().push(done);
        remember(memory);
    }
    Ok(())
}

/// Writes a look down, with the run that is asked, if anybody is.
pub fn ask(
    engine: &mut Engine,
    project: &ProjectName,
    asking: &RoleInspection,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let RoleInspection { role, memory, question, free_memory_mb, .. } = asking;
    let Some(question) = question else {
        let memory = asking.remembers(memory.clone());
        return engine.write(&[super::remembered(project, memory, now)]).map(drop);
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
    match drafted {
        Ok(run) => {
            let said = engine.store().replies(project, &Topic::of_role(*role))?;
            let words = said.iter().map(|row| (row.said.by.as_str(), row.said.words.as_str()));
            let briefing = format!("{}{}", question.briefing, words::run::said(words));
            let run = Run { briefing: Some(briefing), ..run };
            let mut memory = memory.clone();
            memory["asked"] = json!([run.id, question.asked]);
            let mut input = Input::begin(run);
            input.memories.push(asking.remembers(memory));
            input.writes.extend(said.iter().map(|row| Write::ReplyTaken(row.id)));
            engine.take(&[input], now).map(drop)
        }
        Err(AskObstacle { why, passes: true }) => {
            hindered(engine, project, asking, &question.found, why, now)
        }
        Err(AskObstacle { why, passes: false }) => {
            let lines = vec![words::daemon::factory::asked_nobody(&question.found, &why)];
            let mut change = Change::logged(now, project, &(asking.looked)(lines));
            change.memories.push(asking.remembers(memory.clone()));
            engine.write(&[change]).map(drop)
        }
    }
}

/// Writes down how far the work on a run's answer is.
pub(super) fn remember(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    run: RunId,
    memory: &Memory,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    if waits_for(engine, project, role, run)? {
        engine.write(&[super::remembered(project, memory.clone(), now)])?;
    }
    Ok(())
}

/// Writes down what came of a run. Twice is the same as once.
pub fn settle(
    engine: &mut Engine,
    project: &ProjectName,
    settled: &Settled,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let Settled { role, run, memory, logged, events, outcome } = settled;
    if !waits_for(engine, project, *role, *run)? {
        return Ok(());
    }
    let mut change = Change::logged(now, project, logged);
    change.memories.push(memory.clone());
    if outcome.is_none()
        && let Some(run) = engine.store().run(project, *run)?
    {
        let (project, topic) = (project.clone(), Topic::of_role(*role));
        change.writes.push(Write::RepliesGivenBack { project, topic, taken_at: run.started_at });
    }
    let more = events.iter().map(|(issue, entry)| {
        let change = Change::logged(now, project, entry);
        Change { issue: Some(*issue), ..change }
    });
    let mut changes: Vec<Change> = [change].into_iter().chain(more).collect();
    changes.extend(super::count(engine, project, *role, *outcome, &mut super::Counted::new(), now)?);
    engine.write(&changes).map(drop)
}

/// Nobody can be asked just now. The role's time is not used up by that: it looks again in a while, and says so once.
fn hindered(
    engine: &mut Engine,
    project: &ProjectName,
    asking: &RoleInspection,
    found: &str,
    why: String,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let role = asking.role;
    let before: Waiting = engine.store().memory(project, role.as_str())?.unwrap_or_default();
    let said = before.hindered.is_some_and(|before| before.why == why);
    let Raw(mut memory) = engine.store().memory(project, role.as_str())?.unwrap_or_else(|| Raw(json!({})));
    memory["hindered"] = json!(LastObstacle { why: why.clone(), at: now });
    let memory = asking.remembers(memory);
    if said {
        return engine.write(&[super::remembered(project, memory, now)]).map(drop);
    }
    let lines = vec![words::daemon::factory::asks_later(found, &why)];
    let mut change = Change::logged(now, project, &(asking.looked)(lines));
    change.memories.push(memory);
    engine.write(&[change]).map(drop)
}

/// A memory as it is stored, whichever role's it is.
#[derive(Deserialize, Serialize)]
#[serde(transparent)]
struct Raw(Value);

impl Snapshot for Raw {}

/// What every role that asks remembers.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct Waiting {
    asked: Option<(RunId, Value)>,
    hindered: Option<LastObstacle>,
}

impl Snapshot for Waiting {}

/// What kept it from asking, and when it last did.
#[derive(Deserialize, Serialize)]
struct LastObstacle {
    why: String,
    at: Timestamp,
}

/// Whether this run is the one that the role has asked and not heard yet.
fn waits_for(
    engine: &Engine,
    project: &ProjectName,
    role: Role,
    run: RunId,
) -> Result<bool, pointsman_store::Error> {
    let waiting: Waiting = engine.store().memory(project, role.as_str())?.unwrap_or_default();
    Ok(waiting.asked.is_some_and(|(asked, _)| asked == run))
}
