//! Runs of formulas as people and rules order them. The engine steps them, and their effects are performed with all
//! others.
//!
//! `watch` looks at the clock for formulas that run by themselves, `files` prepares what a session finds, and `containers`
//! removes containers that a session started.

pub(super) mod containers;
pub(super) mod files;
mod watch;

use pointsman_core::chat;
use pointsman_core::formula;
use pointsman_core::ids::ProjectName;
use pointsman_core::notifier::Topic;
use pointsman_core::run::{Event, Run, RunId, Subject};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Memory, Write};
use pointsman_view::run as view;

pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::budget;
use super::clock;
use super::effects::chain;
use super::engine::{Engine, Input};
use super::outcome::NotTaken;
use crate::control::protocol::{FailureKind, Reply, RunCommand};
use crate::formulas;

/// Carries out an order.
pub(super) fn answer(engine: &mut Engine, project: &ProjectName, command: &RunCommand) -> Reply {
    let now = clock::now();
    let (id, event) = match command {
        RunCommand::Start { formula, by } => {
            return begin(engine, project, &RunRequest::new(formula, by), now)
                .unwrap_or_else(|error| failed(FailureKind::Failed, chain(&error)));
        }
        RunCommand::StepDone { session, step } => match of_session(engine, project, session) {
            Ok(Some((id, generation))) => (id, Event::StepDone { generation, step: step.clone() }),
            Ok(None) => {
                let shown = clean_line(session, 100);
                return match engine.store().session(session) {
                    Ok(Some(_)) => {
                        failed(FailureKind::Refused, words::daemon::run::run_of_session_over(&shown))
                    }
                    Ok(None) => failed(FailureKind::NotFound, words::daemon::request::no_session(&shown)),
                    Err(error) => failed(FailureKind::Failed, chain(&error)),
                };
            }
            Err(error) => return failed(FailureKind::Failed, chain(&error)),
        },
        RunCommand::Stop { id, by } => (*id, Event::Stopped { by: by.clone() }),
    };
    match happened(engine, project, id, event, now) {
        Ok(Ok(run)) => done(view::Run::from(&run)),
        Ok(Err(NotTaken::Missing)) => failed(FailureKind::NotFound, words::daemon::run::no_run(project, id)),
        Ok(Err(NotTaken::Refused(why))) => {
            failed(FailureKind::Refused, words::daemon::run::refused(id, &why))
        }
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}

/// Takes in what happened to a run, if it may happen; answers the run as it is then.
pub(super) fn happened(
    engine: &mut Engine,
    project: &ProjectName,
    id: RunId,
    event: Event,
    now: Timestamp,
) -> Result<Result<Run, NotTaken>, pointsman_store::Error> {
    let Some(run) = engine.store().run(project, id)? else { return Ok(Err(NotTaken::Missing)) };
    let taken = engine.take(&[Input::of_run(run.key(), event)], now)?;
    if let Some(Err(refused)) = taken.first() {
        return Ok(Err(NotTaken::Refused(refused.to_string())));
    }
    Ok(engine.store().run(project, id)?.ok_or(NotTaken::Missing))
}

/// Gives people's words to the run that has asked for them. Where several runs of one thread have asked, nobody can tell
/// which of them is meant.
pub(super) fn hear(engine: &mut Engine, now: Timestamp) -> Result<(), pointsman_store::Error> {
    let asking: Vec<_> = engine.runs().values().filter(|run| run.question.is_some()).cloned().collect();
    for run in &asking {
        let topic = Topic::of_formula(&run.formula.name);
        let is_of_thread = |other: &&std::sync::Arc<Run>| {
            other.project == run.project && Topic::of_formula(&other.formula.name) == topic
        };
        if asking.iter().filter(is_of_thread).count() > 1 {
            continue;
        }
        for row in engine.store().replies(&run.project, &topic)? {
            if row.said.reply != chat::Reply::Text {
                continue;
            }
            let event = Event::Answered { by: row.said.by.clone(), text: row.said.words.clone() };
            let mut input = Input::of_run(run.key(), event);
            input.writes.push(Write::ReplyTaken(row.id));
            engine.take(&[input], now)?;
        }
    }
    Ok(())
}

/// A run that somebody wants.
pub(super) struct RunRequest<'w> {
    pub(super) formula: &'w str,
    pub(super) by: &'w str,
    /// About what; nothing for the whole project.
    pub(super) subject: Option<&'w Subject>,
    /// What is to be remembered with it.
    pub(super) memory: Option<Memory>,
}

impl<'w> RunRequest<'w> {
    /// About the whole project.
    pub(super) fn new(formula: &'w str, by: &'w str) -> Self {
        Self { formula, by, subject: None, memory: None }
    }
}

/// Begins a run about something.
pub(super) fn begin_about(
    engine: &mut Engine,
    project: &ProjectName,
    formula: &str,
    subject: &Subject,
    by: &str,
    now: Timestamp,
) -> Result<Reply, pointsman_store::Error> {
    let wish = RunRequest { subject: Some(subject), ..RunRequest::new(formula, by) };
    begin(engine, project, &wish, now)
}

/// Begins a run, if one may begin and no budget is in the way.
pub(super) fn begin(
    engine: &mut Engine,
    project: &ProjectName,
    wish: &RunRequest<'_>,
    now: Timestamp,
) -> Result<Reply, pointsman_store::Error> {
    match draft(engine, project, wish, now)? {
        Ok(run) => {
            if let Some(full) = budget::used_up_for(engine, &run, now)? {
                return Ok(failed(FailureKind::Refused, full));
            }
            let (project, id) = (run.project.clone(), run.id);
            let mut input = Input::begin(run);
            input.memories.extend(wish.memory.clone());
            engine.take(&[input], now)?;
            Ok(match engine.store().run(&project, id)? {
                Some(run) => done(view::Run::from(&run)),
                None => failed(FailureKind::Failed, words::daemon::run::no_run(&project, id)),
            })
        }
        Err(reply) => Ok(reply),
    }
}

/// A run that may begin, or why none may. Nothing is written.
pub(super) fn draft(
    engine: &mut Engine,
    project: &ProjectName,
    wish: &RunRequest<'_>,
    now: Timestamp,
) -> Result<Result<Run, Reply>, pointsman_store::Error> {
    let (Some(config), Some(row)) = (engine.config(project), engine.store().project(project)?) else {
        return Ok(Err(failed(FailureKind::NotFound, words::daemon::request::not_served(project))));
    };
    let rendered = formulas::find(&row.checkout, wish.formula)
        .and_then(|found| found.render(&row.checkout, &formula::variables(&config)));
    let formula = match rendered {
        Ok(formula) => formula,
        Err(error @ formulas::Error::Missing(_)) => {
            return Ok(Err(failed(FailureKind::NotFound, error.to_string())));
        }
        Err(error) => return Ok(Err(failed(FailureKind::Configuration, chain(&error)))),
    };
    let (occasion, about) = (formula.role().occasion(), wish.subject.is_some());
    let by_itself = words::daemon::run::starts_by_itself(occasion, about);
    if let Some(why) = by_itself {
        return Ok(Err(failed(FailureKind::Refused, why.to_owned())));
    }
    let before = match wish.subject {
        Some(subject) => engine.store().runs_about(project, &subject.key())?,
        None => engine.store().last_run(project, &formula.name)?.into_iter().collect(),
    };
    if let Some(last) = before.iter().find(|run| !run.status.is_over()) {
        let message = words::daemon::run::under_way(last.id, &formula.name);
        return Ok(Err(failed(FailureKind::Refused, message)));
    }
    let id = engine.store().next_run(project)?;
    Ok(Ok(Run::new(id, formula, &config, wish.by, now).about(wish.subject.cloned())))
}

/// The run that a session belongs to, and which of its sessions it is.
fn of_session(
    engine: &mut Engine,
    project: &ProjectName,
    session: &str,
) -> Result<Option<(RunId, u32)>, pointsman_store::Error> {
    let Some((WorkflowId::Run(key), generation)) = WorkflowId::parse_session(session) else {
        return Ok(None);
    };
    let known = key.project == *project && engine.runs().contains_key(&key);
    Ok(known.then_some((key.id, generation)))
}
