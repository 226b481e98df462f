//! Runs of formulas as people and rules order them. The engine steps them, and their effects are performed with all
//! others.
//!
//! `watch` looks at the clock for formulas that run by themselves, `files` prepares what a session finds, and `containers`
//! removes containers that a session started.

pub(super) mod containers;
pub(super) mod files;
mod watch;

use pointsman_core::formula;
use pointsman_core::ids::ProjectName;
use pointsman_core::part::question::{Owner, Question};
use pointsman_core::run::{Event, Run, RunId, Subject};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Memory, NewNotice};
use pointsman_view::run as view;

pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::budget;
use super::clock;
use super::effects::chain;
use super::engine::{Engine, Input};
use super::outcome::NotTaken;
use super::questions;
use crate::control::protocol::{FailureKind, Reply, RunCommand};
use crate::formulas;
use crate::trust;

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
    taken(engine, project, id, Input::of_run(run.key(), event), now)
}

fn taken(
    engine: &mut Engine,
    project: &ProjectName,
    id: RunId,
    input: Input,
    now: Timestamp,
) -> Result<Result<Run, NotTaken>, pointsman_store::Error> {
    let taken = engine.take(&[input], now)?;
    if let Some(Err(refused)) = taken.first() {
        return Ok(Err(NotTaken::Refused(refused.to_string())));
    }
    Ok(engine.store().run(project, id)?.ok_or(NotTaken::Missing))
}

/// What is written together with a person's answer.
#[derive(Default)]
pub(super) struct WithAnswer {
    /// Names the message that it came with, so that it counts once.
    pub(super) dedup: Option<String>,
    /// What people are told of it; it may name the run.
    pub(super) notices: Vec<NewNotice>,
}

/// The answer of a person to the question of a run, which its session hears. It counts for this question only.
pub(super) fn answered(
    engine: &mut Engine,
    asked: &Question,
    by: &str,
    text: &str,
    now: Timestamp,
    with: impl FnOnce(&Run) -> WithAnswer,
) -> Result<Result<Run, NotTaken>, pointsman_store::Error> {
    let (Owner::Run(id), Some(question)) = (&asked.source.owner, asked.id) else {
        return Ok(Err(NotTaken::Missing));
    };
    let project = &asked.source.project;
    let Some(run) = engine.store().run(project, *id)? else { return Ok(Err(NotTaken::Missing)) };
    if run.question.as_ref().and_then(|asked| asked.id) != Some(question) {
        return Ok(Err(NotTaken::Refused(questions::why_over(engine.store(), question, now)?)));
    }
    let event = Event::Answered { by: by.to_owned(), text: text.to_owned() };
    let WithAnswer { dedup, notices } = with(&run);
    let input = Input { answers: Some(question), dedup, notices, ..Input::of_run(run.key(), event) };
    taken(engine, project, *id, input, now)
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
    let own = trust::own_formulas(engine.store(), &row)?;
    let rendered = formulas::find_accepted(&own, &row.checkout, wish.formula)
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
