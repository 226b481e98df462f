//! Drives the runs of formulas. The core decides what may happen to a run; this module records the decision and
//! carries it out.
//!
//! `watch` finds due work, `session` starts and ends sessions, `files` prepares their files, `replies` passes on
//! people's answers, and `containers` removes containers that a session started. They only send; this file writes, in
//! the loop.

mod containers;
mod files;
mod replies;
mod session;
mod watch;

use pointsman_core::formula;
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::run::{Event, Policy, Refused, Run, RunId, Subject, parse_session, step};
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, Memory, RunScope, SessionRow};
use pointsman_view::run as view;

pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::budget;
use super::clock;
use super::effects::chain;
use super::engine::Engine;
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
    match happened(engine, project, id, &event, &[], now) {
        Ok(Ok(run)) => done(view::Run::from(&run)),
        Ok(Err(NotTaken::Missing)) => failed(FailureKind::NotFound, words::daemon::run::no_run(project, id)),
        Ok(Err(NotTaken::Refused(why))) => {
            failed(FailureKind::Refused, words::daemon::run::refused(id, &why))
        }
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}

/// Writes down what happened to a run, if it may happen, with the sessions it is about.
pub(super) fn happened(
    engine: &mut Engine,
    project: &ProjectName,
    id: RunId,
    event: &Event,
    sessions: &[SessionRow],
    now: Timestamp,
) -> Result<Result<Run, NotTaken>, pointsman_store::Error> {
    let (Some(run), Some(config)) = (engine.store().run(project, id)?, engine.config(project)) else {
        return Ok(Err(NotTaken::Missing));
    };
    match step(&run, event, &Policy::new(&config, run.formula.role()), now) {
        Ok(next) => {
            let mut change = change(&next, Some(event), now);
            change.sessions = sessions.to_vec();
            engine.write(&[change])?;
            Ok(Ok(next))
        }
        Err(Refused(why)) => Ok(Err(NotTaken::Refused(why))),
    }
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
            let mut change = begun(&run, now);
            change.memories.extend(wish.memory.clone());
            engine.write(&[change])?;
            Ok(done(view::Run::from(&run)))
        }
        Err(reply) => Ok(reply),
    }
}

/// A run begins.
pub(super) fn begun(run: &Run, now: Timestamp) -> Change {
    change(run, None, now)
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
    let Some((identity, generation)) = parse_session(session) else { return Ok(None) };
    let runs = engine.store().runs(project, RunScope::Open)?;
    Ok(runs.iter().find(|run| run.identity() == identity).map(|run| (run.id, generation)))
}

/// A run as it is after an event, or at its beginning.
fn change(run: &Run, event: Option<&Event>, now: Timestamp) -> Change {
    let logged = log::Run {
        run: run.id,
        formula: run.formula.name.clone(),
        step: run.next_step().map(|step| step.id.clone()),
        to: run.status,
        reason: run.reason.clone(),
        event: event.cloned(),
    };
    let mut change = Change::logged(now, &run.project, &entry(event, logged));
    change.session = Some(run.session(run.generation));
    change.run = Some(run.clone());
    change
}

/// What the log says of it.
fn entry(event: Option<&Event>, run: log::Run) -> log::Entry {
    match event {
        None => log::Entry::RunBegun(run),
        Some(Event::SessionPrepared { .. }) => log::Entry::RunSessionPrepared(run),
        Some(Event::SessionStarted { .. }) => log::Entry::RunSessionStarted(run),
        Some(Event::NotStarted { .. }) => log::Entry::RunNotStarted(run),
        Some(Event::StepDone { .. }) => log::Entry::RunStepDone(run),
        Some(Event::Finished { .. }) => log::Entry::RunFinished(run),
        Some(Event::GaveUp { .. }) => log::Entry::RunGaveUp(run),
        Some(Event::SessionDied { .. }) => log::Entry::RunSessionDied(run),
        Some(Event::TimePassed) => log::Entry::RunTimedOut(run),
        Some(Event::Stopped { .. }) => log::Entry::RunStopped(run),
        Some(Event::SessionEnded) => log::Entry::RunSessionEnded(run),
    }
}
