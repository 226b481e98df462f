//! Concerns of a project in the daemon: the conditions that can be read off the store at any time, and the consequences of a
//! person's decision about one.
//!
//! Whoever learns of a condition in another way (a job, a source) raises it with [`Input::of_concern`]. What a concern is, and
//! when it asks again, is decided in [`pointsman_core::concern`].

use std::sync::Arc;

use pointsman_core::concern::{About, Concern, ConcernKey, Event};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::part::question::{Kind, Question};
use pointsman_core::schedule;
use pointsman_core::task::{self, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::workflow::WorkflowId;
use pointsman_store::{Change, Stopped, StoppedBy};

use super::budget;
use super::engine::{Engine, Input};
use super::leaks;
use super::notifier;
use super::projects;
use super::queue_orders;
use crate::control::protocol::InboxCommand;

/// A notifier that failed fewer times may only have been restarted.
const NOTIFIER_FAILURES: u32 = 3;

/// Everything that is written together with a decision.
#[derive(Default)]
pub(super) struct Consequences {
    pub(super) inputs: Vec<Input>,
    pub(super) changes: Vec<Change>,
}

/// The one concern of a kind that a project has.
pub(super) fn key(project: &ProjectName, kind: Kind) -> ConcernKey {
    ConcernKey { project: project.clone(), about: About::kind(kind) }
}

/// The event that a person's command is for a concern.
pub(super) fn event(command: &InboxCommand) -> Event {
    match command {
        InboxCommand::Approve { by } => Event::Approved { by: by.clone() },
        InboxCommand::Reject { reason, by } => Event::Rejected { by: by.clone(), reason: reason.clone() },
        InboxCommand::Answer { text, by } => Event::Answered { by: by.clone(), text: text.clone() },
        InboxCommand::Dismiss { by } => Event::Dismissed { by: by.clone() },
    }
}

/// The consequences of a person's decision, or the reason why it cannot be carried out.
pub(super) fn follow(
    engine: &Engine,
    asked: &Question,
    command: &InboxCommand,
    now: Timestamp,
) -> Result<Result<Consequences, String>, pointsman_store::Error> {
    let project = &asked.source.project;
    let mut follows = Consequences::default();
    match (asked.kind, command) {
        (Kind::QueuePaused, InboxCommand::Approve { .. }) => {
            follows.changes.extend(queue_orders::resumed(engine.store(), project, now)?);
        }
        (Kind::Budget, InboxCommand::Approve { .. }) => {
            let (inputs, changes) = budget::granted(engine, asked, now)?;
            follows.inputs.extend(inputs);
            follows.changes.extend(changes);
        }
        (Kind::Trust, InboxCommand::Approve { .. }) => {
            match projects::accept_shown(engine, project, asked, now) {
                Ok(change) => follows.changes.push(change),
                Err(error) => return Ok(Err(format!("{error:#}"))),
            }
        }
        (Kind::Secret, InboxCommand::Approve { .. }) => {
            follows.changes.extend(leaks::decided(engine, asked, true, now)?);
        }
        (Kind::Secret, InboxCommand::Reject { .. }) => {
            follows.changes.extend(leaks::decided(engine, asked, false, now)?);
        }
        // Nothing follows but that the question is settled.
        (_, InboxCommand::Approve { .. } | InboxCommand::Reject { .. }) => {}
        (_, InboxCommand::Answer { .. } | InboxCommand::Dismiss { .. }) => {}
    }
    Ok(Ok(follows))
}

/// Raises the conditions that hold, and lifts those that are gone.
pub(super) fn look(engine: &Engine, now: Timestamp) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    for project in engine.served() {
        let stopped = engine.store().queue_state(project)?.stopped;
        inputs.extend(queue_paused(engine, project, stopped.as_ref()));
        inputs.extend(tasks(engine, project));
        inputs.extend(notifiers_down(engine, project)?);
        inputs.extend(starved(engine, project, now));
        inputs.extend(secrets(engine, project));
    }
    Ok(inputs)
}

/// Ready work that cannot begin.
fn starved(engine: &Engine, project: &ProjectName, now: Timestamp) -> Option<Input> {
    let config = engine.config(project)?;
    let tasks = engine.tasks().values().map(Arc::as_ref).filter(|task| task.key.project == *project);
    let concurrency = usize::try_from(config.dev.concurrency).unwrap_or(usize::MAX);
    let key = key(project, Kind::Starved);
    let event = match schedule::starved(tasks, concurrency, now).filter(|_| config.roles.dev.enabled) {
        Some(holders) => Event::raised(Kind::Starved, words::question::starved(&holders)),
        None if engine.concerns().contains_key(&key) => {
            Event::Lifted { why: words::question::WORK_BEGINS.to_owned() }
        }
        None => return None,
    };
    Some(Input::of_concern(key, event))
}

/// Notifiers that failed several times in a row. They cannot tell it themselves.
fn notifiers_down(engine: &Engine, project: &ProjectName) -> Result<Vec<Input>, pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(Vec::new()) };
    let mut inputs = Vec::new();
    for notifier in &config.notify.to {
        let name = notifier::health_name(*notifier);
        let about = About::one_of(Kind::NotifierDown, &name);
        let key = ConcernKey { project: project.clone(), about };
        let health = notifier::health(engine.store(), project, &name)?;
        let event = match health.filter(|health| health.failed >= NOTIFIER_FAILURES) {
            Some(health) => Event::Raised {
                kind: Kind::NotifierDown,
                text: words::question::notifier_down(*notifier, health.since),
                issue: None,
                pr: None,
                told: true,
            },
            None if engine.concerns().contains_key(&key) => {
                Event::Lifted { why: words::question::NOTIFIER_WORKS.to_owned() }
            }
            None => continue,
        };
        inputs.push(Input::of_concern(key, event));
    }
    Ok(inputs)
}

/// Questions about secrets in the branches of tasks that are over.
fn secrets(engine: &Engine, project: &ProjectName) -> Vec<Input> {
    let is_over = |concern: &&Arc<Concern>| {
        let asked = concern.asked.as_ref().filter(|asked| asked.kind == Kind::Secret);
        asked.and_then(|asked| asked.source.issue).is_some_and(|issue| {
            concern.key.project == *project
                && !engine.tasks().contains_key(&TaskKey { project: project.clone(), issue })
        })
    };
    let lifted = || Event::Lifted { why: words::question::NOT_WAITED_FOR.to_owned() };
    let over = engine.concerns().values().filter(is_over);
    over.map(|concern| Input::of_concern(concern.key.clone(), lifted())).collect()
}

/// Tasks that are stuck, or that wait for a person's review.
fn tasks(engine: &Engine, project: &ProjectName) -> Vec<Input> {
    let Some(config) = engine.config(project) else { return Vec::new() };
    let open: Vec<Arc<Concern>> =
        engine.concerns().values().filter(|c| c.key.project == *project).cloned().collect();
    // A task that was stopped by its budget has a question that starts it again.
    let for_budget = |task: &Task| {
        open.iter()
            .filter_map(|concern| concern.asked.as_ref())
            .any(|asked| asked.kind == Kind::Budget && asked.source.issue == Some(task.key.issue))
    };
    let policy = task::Policy::new(&config);
    let raised: Vec<Input> = engine
        .tasks()
        .values()
        .filter(|task| task.key.project == *project && !for_budget(task))
        .filter_map(|task| task::standing(task, &policy))
        .map(|(about, event)| Input::of_concern(ConcernKey { project: project.clone(), about }, event))
        .collect();
    let holds =
        |key: &ConcernKey| raised.iter().any(|input| input.workflow == WorkflowId::Concern(key.clone()));
    let is_standing =
        |concern: &Concern| concern.asked.as_ref().is_some_and(|asked| task::STANDING.contains(&asked.kind));
    let over = open.iter().filter(|concern| is_standing(concern) && !holds(&concern.key));
    let lifted = || Event::Lifted { why: words::question::NOT_WAITED_FOR.to_owned() };
    let over: Vec<Input> = over.map(|concern| Input::of_concern(concern.key.clone(), lifted())).collect();
    raised.into_iter().chain(over).collect()
}

/// A merge queue that paused itself needs a person. Whoever paused it knows.
fn queue_paused(engine: &Engine, project: &ProjectName, stopped: Option<&Stopped>) -> Option<Input> {
    let key = key(project, Kind::QueuePaused);
    let asks = stopped.filter(|stopped| match stopped.by {
        StoppedBy::Audit | StoppedBy::Refusal => true,
        StoppedBy::Person => false,
    });
    let event = match asks {
        Some(stopped) => {
            Event::raised(Kind::QueuePaused, words::question::queue_paused(&stopped.reason, stopped.at))
        }
        None => {
            engine.workflow(&key.clone().into())?;
            Event::Lifted { why: words::question::QUEUE_GOES_ON.to_owned() }
        }
    };
    Some(Input::of_concern(key, event))
}
