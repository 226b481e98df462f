//! The supervisor in the loop: what was found is remembered with what people are told of it, and what people say is
//! taken once, with its answer.

use pointsman_core::chat::Reply;
use pointsman_core::config::NotifierKind;
use pointsman_core::health::{Assessment, Finding, Machine, Memory, Tail, Verdict, hear as decide, report};
use pointsman_core::ids::{Number, ProjectName, RoleKey, TaskKey};
use pointsman_core::notifier::{Lane, Posting, Topic};
use pointsman_core::role::Role;
use pointsman_core::role_memory::{Event, Heard};
use pointsman_core::run::{Run, Status};
use pointsman_core::task::{Event as TaskEvent, Notice, Order, Refused, Stage};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, NewNotice, ReplyRow, Store, Write};

use crate::daemon::engine::{Engine, Input};
use crate::daemon::runs;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Supervisor;
/// Its formula, for what needs judgement.
pub(super) const FORMULA: &str = ROLE.formula();
/// Its thread, and the name under which it is remembered.
const NAME: &str = ROLE.as_str();

/// The findings of one look, and what was done about them.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub assessment: Assessment,
    /// What was done about it, one line each.
    pub done: Vec<String>,
    pub machine: Machine,
    /// The ends of logs, for whoever has to judge.
    pub tails: Vec<Tail>,
}

/// Whom people talk to.
pub(super) fn topic() -> Topic {
    Topic::of_role(ROLE)
}

/// Reads what the supervisor remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Tells the supervisor's memory of a look, together with the run that is asked about it.
pub fn look(
    engine: &mut Engine,
    project: &ProjectName,
    looked: &Inspection,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(()) };
    let before = memory(engine.store(), project)?;
    let asks = report(&before, &looked.assessment.findings, &config, now).ask;
    let run = ask(engine, project, &asks, looked, now)?;
    let Inspection { assessment, done, .. } = looked.clone();
    let event = Event::Inspected { assessment, done, run: run.as_ref().map(|run| run.id) };
    let inspected = Input::of_role(key(project), event);
    let inputs: Vec<Input> = [inspected].into_iter().chain(run.map(Input::begin)).collect();
    engine.take(&inputs, now).map(drop)
}

fn key(project: &ProjectName) -> RoleKey {
    RoleKey { project: project.clone(), role: ROLE }
}

/// A run that is asked about what no recipe covers, once for each thing, if nothing is in the way.
fn ask(
    engine: &mut Engine,
    project: &ProjectName,
    asks: &[Finding],
    looked: &Inspection,
    now: Timestamp,
) -> Result<Option<Run>, pointsman_store::Error> {
    let free = looked.machine.free_memory_mb;
    if asks.is_empty() || super::hindrance(engine, project, ROLE, free, now)?.is_some() {
        return Ok(None);
    }
    let wish = runs::RunRequest::new(FORMULA, NAME);
    let run = match runs::draft(engine, project, &wish, now) {
        Ok(Ok(run)) => run,
        // A run that cannot be read keeps this one from being asked, and no look from being written down.
        Ok(Err(_)) | Err(pointsman_store::Error::Unreadable(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let figures = words::health::machine(&looked.machine);
    Ok(Some(Run { briefing: Some(words::health::briefing(asks, &figures, &looked.tails, now)), ..run }))
}

/// The run that was asked, if it is over.
pub(super) fn answered(store: &Store, project: &ProjectName) -> Result<Option<Run>, pointsman_store::Error> {
    let Some(id) = memory(store, project)?.run else { return Ok(None) };
    Ok(store.run(project, id)?.filter(|run| run.status.is_over()))
}

/// The event by which the supervisor hears of the run that it asked.
pub fn judged(run: &Run) -> Input {
    let heard = match run.status {
        Status::Done => {
            Heard::Answer { result: run.result.clone(), issues: Vec::new(), formulas: Vec::new() }
        }
        Status::Failed | Status::Stopped | Status::Starting | Status::Running => {
            Heard::Nothing { why: run.reason.clone().unwrap_or_default(), unheard: run.is_unheard() }
        }
    };
    Input::of_role(key(&run.project), Event::Heard { run: run.id, heard })
}

/// Takes what people said to the supervisor: each once, with its answer.
pub fn hear(
    engine: &mut Engine,
    project: &ProjectName,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    // A session that asked reads prose itself.
    let asked = engine.store().last_run(project, FORMULA)?.is_some_and(|run| !run.status.is_over());
    for row in engine.store().replies(project, &topic())? {
        if row.said.reply == Reply::Text && asked {
            continue;
        }
        answer(engine, project, &row, now)?;
    }
    Ok(())
}

fn answer(
    engine: &mut Engine,
    project: &ProjectName,
    row: &ReplyRow,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(()) };
    let name = format!("supervisor:{project}:{}", row.id);
    let taken = Write::ReplyTaken(row.id);
    if engine.store().knows_input(&name)? {
        return engine.write(&[Change::quiet(now, vec![taken])]).map(drop);
    }
    let memory = memory(engine.store(), project)?;
    let task_key = |issue: Number| TaskKey { project: project.clone(), issue };
    let has_session = |issue| {
        engine.tasks().get(&task_key(issue)).is_some_and(|task| {
            task.state.has_session() && matches!(task.session.stage, Stage::Alive | Stage::Starting)
        })
    };
    let verdict = decide(&row.said.reply, &memory, has_session, &config, now);
    let mut notice = words::health::heard(&verdict, &memory, now);
    if let Verdict::Stop { issue } = verdict {
        let mut input = Input::new(task_key(issue), TaskEvent::Ordered { order: Order::Stop });
        input.dedup = Some(name.clone());
        input.notices = vec![reply(project, &name, notice.clone(), now)];
        input.writes.push(taken.clone());
        match engine.take(&[input], now)?.pop() {
            Some(Err(Refused::NotNow(why) | Refused::Stale(why))) => notice = words::chat::not_taken(&why),
            Some(Ok(())) | None => return Ok(()),
        }
    }
    let ignore = match verdict {
        Verdict::Ignore { kind, until } => Some((kind, until)),
        Verdict::Stop { .. }
        | Verdict::WhichAgent { .. }
        | Verdict::WhichWarning
        | Verdict::Tell
        | Verdict::NoCommand => None,
    };
    let (by, words, answer) = (row.said.by.clone(), row.said.words.clone(), notice.title.clone());
    let mut input = Input::of_role(key(project), Event::Spoken { by, words, ignore, answer });
    input.notices = vec![reply(project, &name, notice, now)];
    input.dedup = Some(name);
    input.writes.push(taken);
    engine.take(&[input], now).map(drop)
}

/// An answer in the supervisor's own thread.
fn reply(project: &ProjectName, name: &str, notice: Notice, now: Timestamp) -> NewNotice {
    let posting = Posting {
        key: format!("reply:{name}"),
        project: project.clone(),
        topic: topic(),
        link: None,
        question: None,
        notice,
    };
    NewNotice { posting, lane: Lane::Prompt, to: vec![(NotifierKind::Matrix, now)] }
}
