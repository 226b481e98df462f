//! Requests of commands, answered by the loop, or by the command itself if there is none.

use std::path::Path;

use pointsman_core::ids::{Number, ProjectName, Sha, TaskKey};
use pointsman_core::log;
use pointsman_core::part::session;
use pointsman_core::session::work::Observation;
use pointsman_core::task::{Effect, Event, Headline, Order, Refused, Stage, Task};
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Change, EffectId, MessageStatus, Write};
use pointsman_view::project::Named;
use pointsman_view::session::{Acknowledged, Saved, Sent};
use pointsman_view::task::Ordered;
use serde::Serialize;

use super::engine::{Engine, Input};
use super::sources::hooks;
use super::{budget, clock, factory, notifier, projects, questions, queue_orders, runs, vault};
use crate::control::protocol::{FailureKind, HandoverCommand, InboxCommand, QueueCommand, Reply, Request};
use crate::paths::Paths;

/// The work that an answered request leaves for the loop.
#[derive(Default)]
pub(crate) struct Follow {
    /// Projects were added, removed or changed.
    pub reload: bool,
    pub stop: bool,
    /// The merge queue of this project has something to look at.
    pub land: Option<ProjectName>,
    /// Trees that it tests again.
    pub retest: Vec<Sha>,
    pub run: bool,
    /// People are to be told something.
    pub notices: bool,
    /// A role has something to look at.
    pub factory: bool,
}

/// Carries out a request that is about tasks, messages or projects.
pub(crate) fn answer(paths: &Paths, engine: &mut Engine, request: &Request) -> (Reply, Follow) {
    let mut follow = Follow::default();
    let reply = match request {
        Request::Order { project, issue, order } => match no_budget(engine, project, *issue, *order) {
            Some(reply) => reply,
            None => give(engine, project, *issue, Event::Ordered { order: *order }),
        },
        Request::Answer { project, issue, by, text } => {
            let reply = give(engine, project, *issue, Event::Answered { by: by.clone(), text: text.clone() });
            questions::second(engine, project, *issue, reply)
        }
        Request::Handover { project, command: HandoverCommand::Take { issue, by } } => {
            give(engine, project, *issue, Event::Taken { by: by.clone() })
        }
        Request::Handover { project, command: HandoverCommand::Given { issue, head, by } } => {
            match no_budget(engine, project, *issue, Order::Resume) {
                Some(reply) => reply,
                None => give(engine, project, *issue, Event::Given { by: by.clone(), head: head.clone() }),
            }
        }
        Request::Acknowledge { message, session } => acknowledge(engine, *message, session.as_deref()),
        Request::Checkpoint { session, phase, summary } => {
            let said = Observation::Said { phase: *phase, summary: summary.clone() };
            checkpoint(engine, session, said)
        }
        Request::Measure { session, gauge, spent, quota } => {
            budget::measure(engine, session, *gauge, *spent, quota)
        }
        Request::Hook { report } => hooks::take(engine, report),
        Request::Send { project, issue, text } => send(engine, project, *issue, text),
        Request::AddProject { config_path, shown, hosts } => {
            follow.reload = true;
            match projects::add(paths, engine, Path::new(config_path), shown.as_ref(), hosts) {
                Ok(config) => done(Named { name: config.name }),
                Err(error) => failed(FailureKind::Configuration, format!("{error:#}")),
            }
        }
        Request::RemoveProject { project } => {
            follow.reload = true;
            remove(engine, project)
        }
        Request::ReloadProjects => {
            follow.reload = true;
            done(())
        }
        Request::Down => {
            follow.stop = true;
            done(())
        }
        Request::Resume => {
            follow.reload = true;
            done(())
        }
        Request::Queue { project, command } => {
            follow.land = Some(project.clone());
            let reply = queue_orders::answer(engine, project, command);
            if let (QueueCommand::Forget { trees, .. }, Reply::Done { .. }) = (command, &reply) {
                follow.retest.clone_from(trees);
            }
            reply
        }
        Request::Run { project, command } => {
            follow.run = true;
            runs::answer(engine, project, command)
        }
        Request::Vault { project, command } => vault::answer(engine, project, command),
        Request::Inbox { project, question, command } => {
            follow.run = true;
            // An answer may let a paused merge queue go on.
            follow.land = Some(project.clone());
            // Another may have let changed settings take effect.
            follow.reload = matches!(command, InboxCommand::Approve { .. });
            questions::settle(engine, project, *question, command)
        }
        Request::ResumeRole { project, role } => factory::resume(engine, project, *role),
        Request::LookNow { project, role } => {
            follow.factory = true;
            factory::look_now(engine, project, *role)
        }
        Request::TryNotifiers { project, key } => {
            follow.notices = true;
            notifier::try_out(engine, project, key)
        }
        Request::Status
        | Request::Halt { .. }
        | Request::Health { .. }
        | Request::ForgeStats { .. }
        | Request::Mask { .. }
        | Request::Forge { .. }
        | Request::Web { .. }
        | Request::Read { .. }
        | Request::Handover {
            command: HandoverCommand::Fetch { .. } | HandoverCommand::Give { .. }, ..
        }
        | Request::Claim { .. } => {
            failed(FailureKind::Failed, words::daemon::request::answered_elsewhere().to_owned())
        }
    };
    (reply, follow)
}

/// Done, with this view to print.
pub(crate) fn done(view: impl Serialize) -> Reply {
    Reply::done(view)
}

/// A refusal or a failure, as the caller sees it.
pub(crate) fn failed(kind: FailureKind, message: String) -> Reply {
    Reply::Failed { kind, message }
}

fn give(engine: &mut Engine, project: &ProjectName, issue: Number, event: Event) -> Reply {
    let key = TaskKey { project: project.clone(), issue };
    if let Err(reply) = find(engine, &key) {
        return reply;
    }
    match engine.take(&[Input::new(key.clone(), event)], clock::now()).map(|mut answers| answers.pop()) {
        Ok(Some(Ok(()))) => match find(engine, &key) {
            Ok(task) => done(Ordered { issue, state: task.state }),
            Err(reply) => reply,
        },
        Ok(Some(Err(Refused::NotNow(why) | Refused::Stale(why)))) => {
            failed(FailureKind::Refused, words::daemon::request::task_refused(issue, &why))
        }
        Ok(None) => failed(FailureKind::Failed, words::daemon::request::nothing_was_done().to_owned()),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

fn find(engine: &mut Engine, key: &TaskKey) -> Result<Task, Reply> {
    match engine.store().task(key) {
        Ok(Some(task)) => Ok(task),
        Ok(None) => Err(failed(FailureKind::NotFound, words::daemon::request::no_task(key))),
        Err(error) => Err(failed(FailureKind::Failed, super::effects::chain(&error))),
    }
}

fn acknowledge(engine: &mut Engine, message: i64, session: Option<&str>) -> Reply {
    if message == 0 {
        return done(Acknowledged { message, acknowledged: true });
    }
    match write_acknowledged(engine, EffectId(message), session) {
        Ok(true) => done(Acknowledged { message, acknowledged: true }),
        Ok(false) => failed(FailureKind::NotFound, words::daemon::request::no_message(message)),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

/// Answers whether there is such a message.
fn write_acknowledged(
    engine: &mut Engine,
    id: EffectId,
    session: Option<&str>,
) -> Result<bool, pointsman_store::Error> {
    let Some(message) = engine.store().message(id)? else { return Ok(false) };
    let open = match message.status {
        MessageStatus::Queued | MessageStatus::Sent | MessageStatus::Unacknowledged => true,
        MessageStatus::Acknowledged | MessageStatus::Superseded => false,
    };
    if open {
        let mut writes = vec![Write::MessageAcknowledged(id)];
        let row = session.map(|session| engine.store().session(session)).transpose()?.flatten();
        if let Some(mut row) = row.filter(|row| !row.acknowledges) {
            row.acknowledges = true;
            writes.push(Write::Session(Box::new(row)));
        }
        engine.write(&[Change::quiet(clock::now(), writes)])?;
    }
    Ok(true)
}

/// Nothing starts on a budget that is used up, whoever wants it.
pub(super) fn no_budget(
    engine: &mut Engine,
    project: &ProjectName,
    issue: Number,
    order: Order,
) -> Option<Reply> {
    match order {
        Order::Start | Order::Resume | Order::Restart | Order::RestartFresh => {}
        Order::Begin | Order::Pause | Order::Stop => return None,
    }
    let key = TaskKey { project: project.clone(), issue };
    let (config, task) = (engine.config(project)?, find(engine, &key).ok()?);
    match budget::used_up(engine.store(), &config, &task, clock::now()) {
        Ok(what) => what.map(|what| failed(FailureKind::Refused, words::reason::budget_of_order(&what))),
        Err(error) => Some(failed(FailureKind::Failed, super::effects::chain(&error))),
    }
}

/// An agent says where it is: its work state follows, and its tree is saved.
fn checkpoint(engine: &mut Engine, session: &str, said: Observation) -> Reply {
    let Some((id, generation)) = WorkflowId::parse_session(session) else {
        return failed(FailureKind::NotFound, words::daemon::request::no_session(session));
    };
    let Some(owner) = engine.workflow(&id) else {
        return failed(FailureKind::NotFound, words::daemon::request::unknown_workflow(&id));
    };
    if owner.session().generation != generation || owner.session().stage == Stage::None {
        return failed(FailureKind::Refused, words::daemon::request::session_over(session));
    }
    let now = clock::now();
    let written = engine
        .observe(&id, &[said], None, now)
        .and_then(|()| engine.take(&[Input::of_session(id, generation, session::Event::TurnEnded)], now));
    match written {
        Ok(_) => done(Saved { session: session.to_owned(), saved: true }),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

fn send(engine: &mut Engine, project: &ProjectName, issue: Number, text: &str) -> Reply {
    let key = TaskKey { project: project.clone(), issue };
    let task = match find(engine, &key) {
        Ok(task) => task,
        Err(reply) => return reply,
    };
    if task.session.stage != Stage::Alive {
        return failed(FailureKind::Refused, words::daemon::request::no_live_session(issue));
    }
    let (subject, details) = words::message::from_operator(text);
    let mut change = Change::logged(clock::now(), project, &log::Entry::OperatorSpoke);
    change.effects = vec![Effect::Deliver {
        generation: task.session.generation,
        headline: Headline::Answer,
        subject,
        details,
    }];
    change.session = task.session_id();
    change.task = Some(task);
    match engine.write(&[change]) {
        Ok(_) => done(Sent { issue, sent: true }),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

fn remove(engine: &mut Engine, project: &ProjectName) -> Reply {
    let busy: Vec<String> = engine
        .tasks()
        .values()
        .filter(|t| t.key.project == *project && t.session.stage != Stage::None)
        .map(|t| format!("#{}", t.key.issue))
        .collect();
    if !busy.is_empty() {
        return failed(FailureKind::Refused, words::daemon::request::live_sessions(project, &busy));
    }
    let removed = engine.store().project(project).and_then(|known| {
        let Some(_) = known else { return Ok(false) };
        let mut change = Change::logged(clock::now(), project, &log::Entry::ProjectRemoved);
        change.writes.push(Write::ProjectRemoved(project.clone()));
        engine.write(&[change]).map(|_| true)
    });
    match removed {
        Ok(true) => done(Named { name: project.clone() }),
        Ok(false) => failed(FailureKind::NotFound, words::daemon::request::no_project(project)),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}
