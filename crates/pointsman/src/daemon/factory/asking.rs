//! What roles that ask a model do alike: one question at a time; of its answer only what rules allow is done, deed by
//! deed. The plan is written before its first deed is done and each deed before the next, so that whoever dies in
//! between goes on there; the one deed that may be done twice is the same as once.

use std::sync::Arc;
use std::time::Duration;

use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::{Posting, Topic};
use pointsman_core::role::Role;
use pointsman_core::run::{Run, RunId, Status};
use pointsman_core::time::Timestamp;
use pointsman_core::value::{Done, Outcome};
use pointsman_core::words;
use pointsman_store::{Change, Store};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::watch::Watch;
use super::{Hindrance, Told, is_due, recall, send};
use crate::control::protocol::Reply;
use crate::daemon::crash::crash_point;
use crate::daemon::engine::Engine;
use crate::daemon::inbound::Inbox;
use crate::daemon::runs;
use crate::daemon::served::Served;
use crate::daemon::world::RealWorld;

/// Who could not ask looks again after this long.
const HINDERED: Duration = Duration::from_secs(600);

/// What a role that asks a model remembers, and what it does of an answer. Under `asked` it has the run that was asked,
/// and what.
pub(super) trait Asker: Serialize + DeserializeOwned + Default + Send + 'static {
    /// The role: its thread, and the name under which it is remembered.
    const ROLE: Role;
    /// What is written in the log when something came of an answer.
    const SETTLED: &'static str;
    /// Places where tests kill the daemon: a plan is written, a deed is done.
    const PLACES: [&'static str; 2];

    /// When it looked last.
    fn looked_at(&self) -> Timestamp;

    /// The run that was asked.
    fn asked(&self) -> Option<RunId>;

    /// Reads the answer of a run that is done, and plans what is done of it; a sentence if it is of no use.
    fn decide(
        &mut self,
        world: &RealWorld,
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
        world: &RealWorld,
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
    /// Further events: their kinds, issues and data.
    pub(super) events: Vec<(&'static str, u64, Value)>,
    pub(super) posting: Option<Posting>,
}

/// A look of a role's.
#[derive(Clone, Debug)]
pub struct Asking {
    pub role: Role,
    /// What is to be remembered.
    pub memory: Value,
    /// What is asked; nothing if nobody is.
    pub question: Option<Question>,
    /// Memory that is free; none if nobody knows.
    pub free_memory_mb: Option<u64>,
}

/// What a session is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// What was found, in a few words.
    pub found: String,
    /// What is remembered of it while it is asked.
    pub asked: Value,
    pub briefing: String,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Settled {
    pub role: Role,
    /// The event's name in the log.
    pub kind: &'static str,
    pub run: RunId,
    pub memory: Value,
    /// What happened, one line each.
    pub lines: Vec<String>,
    /// Further events: their kinds, issues and data.
    pub events: Vec<(&'static str, u64, Value)>,
    /// Whether something came of it; nothing if nobody was heard.
    pub outcome: Option<Outcome>,
}

impl Watch {
    /// Sees to the answer that a role waits for, if there is one. Answers what the role remembers if it has to look.
    pub(super) fn to_look<M: Asker>(
        &self,
        served: &Arc<Served>,
        now: Timestamp,
    ) -> anyhow::Result<Option<M>> {
        let project = &served.config.name;
        let (memory, asked) = {
            let reader = self.world.reader();
            let asked = recall::<M>(&reader, project, M::ROLE.as_str())?.asked();
            let asked = asked.map(|run| reader.run(project, run)).transpose()?.flatten();
            (due::<M>(&reader, project, now)?, asked)
        };
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
pub(super) fn due<M: Asker>(
    store: &Store,
    project: &ProjectName,
    now: Timestamp,
) -> Result<Option<M>, pointsman_store::Error> {
    let Waiting { hindered, .. } = recall(store, project, M::ROLE.as_str())?;
    // The clock may have been set back.
    if hindered.is_some_and(|hindered| hindered.at <= now && now.since(hindered.at) < HINDERED) {
        return Ok(None);
    }
    let memory: M = recall(store, project, M::ROLE.as_str())?;
    let waits = memory.asked().map(|run| store.run(project, run)).transpose()?.flatten().is_some();
    let due = !waits && is_due(store, project, M::ROLE.formula(), memory.looked_at())?;
    Ok(due.then_some(memory))
}

/// Does what rules allow of a run's answer, and has it written down.
fn apply<M: Asker>(
    world: &RealWorld,
    inbox: &Inbox,
    served: &Served,
    run: &Run,
    now: Timestamp,
) -> anyhow::Result<()> {
    let project = &served.config.name;
    // As it is now: another job may have seen to it since somebody looked.
    let mut memory: M = recall(&world.reader(), project, M::ROLE.as_str())?;
    if memory.asked() != Some(run.id) {
        return Ok(());
    }
    let remember = |memory: &M| {
        let (project, memory) = (project.clone(), json!(memory));
        send(inbox, Told::Remembered { project, role: M::ROLE, run: run.id, memory });
    };
    let useless = match (memory.planned(), run.status) {
        (Some(_), _) => None,
        (None, Status::Done) => memory.decide(world, served, run, now)?.err(),
        (None, Status::Failed | Status::Stopped | Status::Starting | Status::Running) => {
            Some(run.reason.clone().unwrap_or_else(|| "the run came to nothing".to_owned()))
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
            (vec![format!("run {} was not heard: {why}", run.id)], Closing::default())
        }
        Some(why) => {
            memory.give_up();
            (vec![format!("run {} was of no use: {why}", run.id)], Closing::default())
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
        kind: M::SETTLED,
        run: run.id,
        memory: json!(memory),
        lines,
        events: closing.events,
        outcome,
    };
    send(inbox, Told::Settled { project: project.clone(), settled: Box::new(settled) });
    Ok(())
}

/// Does what is left of the plan, and has each deed written down before the next.
fn carry_out<M: Asker>(
    memory: &mut M,
    world: &RealWorld,
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
    asking: &Asking,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let Asking { role, memory, question, free_memory_mb } = asking;
    let Some(question) = question else {
        return engine.store().set_cursor(Some(project), role.as_str(), &memory.to_string());
    };
    let drafted = match super::hindrance(engine, project, *role, *free_memory_mb, now)? {
        Some(hindrance) => Err(hindrance),
        None => runs::draft(engine, project, &runs::Wish::new(role.formula(), "schedule"), now)?.map_err(
            |reply| {
                let why = match reply {
                    Reply::Failed { message, .. } => message,
                    Reply::Done { .. } => String::new(),
                };
                Hindrance { why, passes: false }
            },
        ),
    };
    match drafted {
        Ok(run) => {
            let said = engine.store().replies(project, &Topic::of_role(*role))?;
            let words = said.iter().map(|row| (row.said.by.as_str(), row.said.words.as_str()));
            let briefing = format!("{}{}", question.briefing, words::run::said(words));
            let run = Run { briefing: Some(briefing), ..run };
            let mut memory = memory.clone();
            memory["asked"] = json!([run.id, question.asked]);
            runs::write_begun(engine, &run, Some((role.to_string(), memory.to_string())), now)?;
            // Whoever dies before this has them read once more.
            for row in said {
                engine.store().take_reply(row.id, now)?;
            }
            Ok(())
        }
        Err(Hindrance { why, passes: true }) => hindered(engine, project, asking, &question.found, why, now),
        Err(Hindrance { why, passes: false }) => {
            let mut change = Change::new(now, format!("{role}_looked"));
            change.project = Some(project.clone());
            change.data = json!({ "lines": [format!("{}, and asked nobody: {why}", question.found)] });
            change.cursor = Some((role.to_string(), memory.to_string()));
            engine.store().commit(&[change]).map(drop)
        }
    }
}

/// Writes down how far the work on a run's answer is.
pub(super) fn remember(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    run: RunId,
    memory: &Value,
) -> Result<(), pointsman_store::Error> {
    if waits_for(engine, project, role, run)? {
        engine.store().set_cursor(Some(project), role.as_str(), &memory.to_string())?;
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
    let Settled { role, kind, run, memory, lines, events, outcome } = settled;
    if !waits_for(engine, project, *role, *run)? {
        return Ok(());
    }
    if outcome.is_none()
        && let Some(run) = engine.store().run(project, *run)?
    {
        let topic = Topic::of_role(*role);
        engine.store().give_back_replies(project, &topic, run.started_at)?;
    }
    let mut change = Change::new(now, *kind);
    change.project = Some(project.clone());
    change.data = json!({ "run": run, "lines": lines });
    change.cursor = Some((role.to_string(), memory.to_string()));
    let more = events.iter().map(|(kind, issue, data)| {
        let mut change = Change::new(now, *kind);
        change.project = Some(project.clone());
        change.issue = Some(*issue);
        change.data = data.clone();
        change
    });
    let changes: Vec<Change> = [change].into_iter().chain(more).collect();
    engine.store().commit(&changes)?;
    super::count(engine, project, *role, *outcome, now)
}

/// Nobody can be asked just now. The role's time is not used up by that: it looks again in a while, and says so once.
fn hindered(
    engine: &mut Engine,
    project: &ProjectName,
    asking: &Asking,
    found: &str,
    why: String,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let role = asking.role;
    let before: Waiting = recall(engine.store(), project, role.as_str())?;
    let said = before.hindered.is_some_and(|before| before.why == why);
    let mut memory: Value = recall(engine.store(), project, role.as_str())?;
    if memory.is_null() {
        memory = json!({});
    }
    memory["hindered"] = json!(Hindered { why: why.clone(), at: now });
    if said {
        return engine.store().set_cursor(Some(project), role.as_str(), &memory.to_string());
    }
    let mut change = Change::new(now, format!("{role}_looked"));
    change.project = Some(project.clone());
    change.data = json!({ "lines": [format!("{found}, and asks later: {why}")] });
    change.cursor = Some((role.to_string(), memory.to_string()));
    engine.store().commit(&[change]).map(drop)
}

/// What every role that asks remembers.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    asked: Option<(RunId, IgnoredAny)>,
    hindered: Option<Hindered>,
}

/// What kept it from asking, and when it last did.
#[derive(Deserialize, Serialize)]
struct Hindered {
    why: String,
    at: Timestamp,
}

/// Whether this run is the one that the role has asked and not heard yet.
fn waits_for(
    engine: &mut Engine,
    project: &ProjectName,
    role: Role,
    run: RunId,
) -> Result<bool, pointsman_store::Error> {
    let waiting: Waiting = recall(engine.store(), project, role.as_str())?;
    Ok(waiting.asked.is_some_and(|(asked, _)| asked == run))
}
