//! Questions to people: how they reach the store, and who settled one.

use std::sync::Arc;

use pointsman_core::concern::ConcernKey;
use pointsman_core::ids::{ActionKey, Number, ProjectName, TaskKey};
use pointsman_core::part::question::{self, Act, Kind, Owner, Question, QuestionId};
use pointsman_core::run;
use pointsman_core::task::{Event, Order, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::vault::{self as core_vault, ActionId};
use pointsman_core::words;
use pointsman_store::{Change, Store};
use pointsman_view::inbox as view;

use super::answer::failed;
use super::clock;
use super::concerns;
use super::effects::chain;
use super::engine::{Engine, Input};
use super::outcome::NotTaken;
use super::{projects, runs, vault};
use crate::control::protocol::{FailureKind, InboxCommand, Reply, Request, VaultCommand};

/// The changes to write for questions that were asked, reminded of or settled.
pub(super) fn written(changes: &[question::Change], now: Timestamp) -> impl Iterator<Item = Change> + '_ {
    changes.iter().filter_map(move |change| Change::of_question(now, change))
}

/// The reason why a question cannot be answered any more.
pub(super) fn why_over(
    store: &Store,
    id: QuestionId,
    now: Timestamp,
) -> Result<String, pointsman_store::Error> {
    Ok(match store.question(id)? {
        Some(asked) => match &asked.settled {
            Some(settled) => words::question::already_settled(asked.id, settled, now),
            None => words::question::nobody_waits(id),
        },
        None => words::question::unknown(id),
    })
}

/// The end of the last question of a workflow, if a person settled it.
pub(super) fn settled_by_person(
    store: &Store,
    project: &ProjectName,
    owner: &Owner,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    let Some(last) = store.last_question(project, owner)? else { return Ok(None) };
    let settled = last.settled.filter(|settled| settled.by.is_some());
    Ok(settled.map(|settled| words::question::already_settled(last.id, &settled, now)))
}

/// The answer to whoever comes second: a refusal that names the first.
pub(super) fn second(engine: &Engine, project: &ProjectName, issue: Number, reply: Reply) -> Reply {
    let Reply::Failed { kind: FailureKind::Refused, message } = reply else { return reply };
    let settled = settled_by_person(engine.store(), project, &Owner::Task(issue), clock::now());
    let why = settled.ok().flatten().map(|why| words::daemon::request::task_refused(issue, &why));
    failed(FailureKind::Refused, why.unwrap_or(message))
}

/// A refusal, with who settled the last question of a workflow: whoever comes second learns who was first.
pub(super) fn with_first(
    engine: &Engine,
    project: &ProjectName,
    owner: &Owner,
    why: String,
    now: Timestamp,
) -> String {
    match settled_by_person(engine.store(), project, owner, now) {
        Ok(Some(first)) => format!("{why} ({first})"),
        Ok(None) | Err(_) => why,
    }
}

/// Settles a question in the way that a person wants.
pub(super) fn settle(
    engine: &mut Engine,
    project: &ProjectName,
    id: QuestionId,
    command: &InboxCommand,
) -> Reply {
    let now = clock::now();
    let settled = answer(engine, project, id, command, now);
    match settled.unwrap_or_else(|error| Err(failed(FailureKind::Failed, chain(&error)))) {
        Ok(asked) => Reply::done(view::Question::new(&asked, 0, None)),
        Err(reply) => reply,
    }
}

fn answer(
    engine: &mut Engine,
    project: &ProjectName,
    id: QuestionId,
    command: &InboxCommand,
    now: Timestamp,
) -> Result<Result<Question, Reply>, pointsman_store::Error> {
    let refused = |why: String| Ok(Err(failed(FailureKind::Refused, why)));
    let known = engine.store().question(id)?.filter(|asked| asked.source.project == *project);
    let Some(asked) = known else {
        return Ok(Err(failed(FailureKind::NotFound, words::question::unknown(id))));
    };
    if let Some(settled) = &asked.settled {
        return refused(words::question::already_settled(asked.id, settled, now));
    }
    if !asked.kind.takes(act(command)) {
        return refused(words::question::takes_no(&asked, act(command)));
    }
    let taken = match (&asked.source.owner, command) {
        (Owner::Run(_), InboxCommand::Answer { text, by }) => {
            let taken = runs::answered(engine, &asked, by, text, now, |_| runs::WithAnswer::default())?;
            taken.map(drop)
        }
        (Owner::Task(issue), InboxCommand::Answer { text, by }) => {
            task_answered(engine, project, *issue, id, (by, text.clone()), now)?
        }
        (Owner::Task(issue), InboxCommand::Reject { reason, by }) if asked.kind == Kind::HostAccess => {
            let text = words::question::hosts_denied(reason);
            task_answered(engine, project, *issue, id, (by, text), now)?
        }
        (Owner::Task(issue), InboxCommand::Approve { by }) if asked.kind == Kind::HostAccess => {
            let key = TaskKey { project: project.clone(), issue: *issue };
            hosts_allowed(engine, &key, id, by, now)?
        }
        (Owner::Task(_) | Owner::Run(_), InboxCommand::Approve { by }) if asked.kind == Kind::Setup => {
            setup_retried(engine, project, id, by, now)?
        }
        (Owner::Run(run), InboxCommand::Reject { by, .. }) if asked.kind == Kind::Setup => {
            let keys = engine.runs().keys();
            let Some(key) = keys.into_iter().find(|key| key.project == *project && key.id == *run).cloned()
            else {
                return refused(words::question::nobody_waits(id));
            };
            let stopped = run::Event::Stopped { by: by.clone() };
            let input = Input { answers: Some(id), ..Input::of_run(key, stopped) };
            let taken = engine.take(&[input], now)?.pop().unwrap_or(Ok(()));
            taken.map_err(|why| NotTaken::Refused(why.to_string()))
        }
        (Owner::Task(issue), InboxCommand::Approve { .. } | InboxCommand::Reject { .. })
            if asked.kind == Kind::Plan =>
        {
            let (by, accepted, reason) = match command {
                InboxCommand::Reject { by, reason } => (by.clone(), false, reason.clone()),
                InboxCommand::Approve { by }
                | InboxCommand::Answer { by, .. }
                | InboxCommand::Dismiss { by } => (by.clone(), true, String::new()),
            };
            let key = TaskKey { project: project.clone(), issue: *issue };
            let event = Event::PlanDecided { by, accepted, reason };
            let input = Input { answers: Some(id), ..Input::new(key, event) };
            let taken = engine.take(&[input], now)?.pop().unwrap_or(Ok(()));
            taken.map_err(|why| NotTaken::Refused(why.to_string()))
        }
        (Owner::Task(issue), InboxCommand::Reject { .. }) if asked.kind == Kind::Setup => {
            let key = TaskKey { project: project.clone(), issue: *issue };
            let input = Input { answers: Some(id), ..Input::new(key, Event::Ordered { order: Order::Stop }) };
            let taken = engine.take(&[input], now)?.pop().unwrap_or(Ok(()));
            taken.map_err(|why| NotTaken::Refused(why.to_string()))
        }
        (Owner::Vault(action), InboxCommand::Approve { .. } | InboxCommand::Reject { .. }) => {
            decide(engine, &asked, action, command, now)?
        }
        (Owner::Concern(about), _) => {
            let key = ConcernKey { project: project.clone(), about: about.clone() };
            let follows = match concerns::follow(engine, &asked, command, now)? {
                Ok(follows) => follows,
                Err(why) => return refused(words::question::refused(id, &why)),
            };
            let input = Input { answers: Some(id), ..Input::of_concern(key, concerns::event(command)) };
            let inputs: Vec<Input> = std::iter::once(input).chain(follows.inputs).collect();
            let taken = engine.take_with(&inputs, follows.changes, now)?;
            let taken = taken.into_iter().next().unwrap_or(Ok(()));
            taken.map_err(|why| NotTaken::Refused(why.to_string()))
        }
        (Owner::Run(_) | Owner::Task(_) | Owner::Vault(_), _) => {
            return refused(words::question::takes_no(&asked, act(command)));
        }
    };
    match taken {
        Ok(()) => Ok(engine
            .store()
            .question(id)?
            .ok_or_else(|| failed(FailureKind::Failed, words::question::unknown(id)))),
        Err(NotTaken::Missing) => refused(words::question::nobody_waits(id)),
        Err(NotTaken::Refused(why)) => refused(words::question::refused(id, &why)),
    }
}

/// A task's session gets these words.
fn task_answered(
    engine: &mut Engine,
    project: &ProjectName,
    issue: Number,
    id: QuestionId,
    (by, text): (&str, String),
    now: Timestamp,
) -> Result<Result<(), NotTaken>, pointsman_store::Error> {
    let key = TaskKey { project: project.clone(), issue };
    let event = Event::Answered { by: by.to_owned(), text };
    let input = Input { answers: Some(id), ..Input::new(key, event) };
    let taken = engine.take(&[input], now)?.pop().unwrap_or(Ok(()));
    Ok(taken.map_err(|why| NotTaken::Refused(why.to_string())))
}

/// The hosts that the tests of a task asked for are allowed. The same commit is tested again, and so are those of all other
/// tasks that wait for nothing else.
fn hosts_allowed(
    engine: &mut Engine,
    key: &TaskKey,
    id: QuestionId,
    by: &str,
    now: Timestamp,
) -> Result<Result<(), NotTaken>, pointsman_store::Error> {
    let waiting = |task: &Task| task.escalation.as_ref().is_some_and(|asked| asked.id == Some(id));
    let Some(task) = engine.tasks().get(key).filter(|task| waiting(task)) else {
        return Ok(Err(NotTaken::Missing));
    };
    let hosts = task.contribution.refused_hosts();
    let (trust, change) = projects::allow_hosts(engine, &key.project, hosts, now)?;
    let event = || Event::HostsAllowed { by: by.to_owned() };
    let waits = |task: &&Task| {
        let refused = task.contribution.refused_hosts();
        task.key.project == key.project && task.key != *key && !refused.is_empty() && trust.allows(refused)
    };
    let others = engine.tasks().values().map(Arc::as_ref).filter(waits);
    let first = Input { answers: Some(id), ..Input::new(key.clone(), event()) };
    let inputs = std::iter::once(first).chain(others.map(|task| Input::new(task.key.clone(), event())));
    let inputs: Vec<Input> = inputs.collect();
    let taken = engine.take_with(&inputs, vec![change], now)?.into_iter().next().unwrap_or(Ok(()));
    Ok(taken.map_err(|why| NotTaken::Refused(why.to_string())))
}

/// A set-up is tried again, and so are those of all other tasks and runs of the project: they fail for the same reason.
fn setup_retried(
    engine: &mut Engine,
    project: &ProjectName,
    id: QuestionId,
    by: &str,
    now: Timestamp,
) -> Result<Result<(), NotTaken>, pointsman_store::Error> {
    let asks = |asked: Option<&Question>| asked.filter(|asked| asked.kind == Kind::Setup)?.id;
    let tasks = engine.tasks().values().filter(|task| task.key.project == *project);
    let tasks = tasks.filter_map(|task| {
        let event = Event::SetupRetried { by: by.to_owned() };
        Some((asks(task.escalation.as_ref())?, Input::new(task.key.clone(), event)))
    });
    let runs = engine.runs().values().filter(|run| run.project == *project);
    let runs = runs.filter_map(|run| {
        let event = run::Event::SetupRetried { by: by.to_owned() };
        Some((asks(run.question.as_ref())?, Input::of_run(run.key(), event)))
    });
    let mut waiting: Vec<(QuestionId, Input)> = tasks.chain(runs).collect();
    // The one that was answered comes first: whether it is taken is the answer.
    waiting.sort_by_key(|(question, _)| *question != id);
    let inputs: Vec<Input> = waiting
        .into_iter()
        .map(|(question, input)| Input { answers: (question == id).then_some(id), ..input })
        .collect();
    if inputs.first().is_none_or(|first| first.answers.is_none()) {
        return Ok(Err(NotTaken::Missing));
    }
    let taken = engine.take(&inputs, now)?.into_iter().next().unwrap_or(Ok(()));
    Ok(taken.map_err(|why| NotTaken::Refused(why.to_string())))
}

/// A yes or no to a vault action. It counts for exactly what the question names.
fn decide(
    engine: &mut Engine,
    asked: &Question,
    action: &ActionId,
    command: &InboxCommand,
    now: Timestamp,
) -> Result<Result<(), NotTaken>, pointsman_store::Error> {
    let project = &asked.source.project;
    let Some(entry) = engine.store().vault_entry(project, action)? else { return Ok(Err(NotTaken::Missing)) };
    if entry.asked.as_ref().is_none_or(|now| now.id != asked.id) {
        return Ok(Err(NotTaken::Missing));
    }
    let event = match command {
        InboxCommand::Approve { by } => vault_event(&entry, by),
        InboxCommand::Reject { reason, by } => {
            core_vault::Event::Rejected { by: by.clone(), reason: reason.clone() }
        }
        InboxCommand::Answer { .. } | InboxCommand::Dismiss { .. } => return Ok(Err(NotTaken::Missing)),
    };
    let key = ActionKey { project: project.clone(), id: action.clone() };
    let input = Input { answers: asked.id, ..Input::of_action(key, event) };
    Ok(vault::happened(engine, input, now)?.map(drop))
}

/// The question says so if the action may have been fired, so a yes to it is given in that knowledge.
fn vault_event(entry: &core_vault::Entry, by: &str) -> core_vault::Event {
    let again = entry.status == core_vault::Status::Uncertain;
    core_vault::Event::Approved { by: by.to_owned(), hash: entry.hash.clone(), again }
}

fn act(command: &InboxCommand) -> Act {
    match command {
        InboxCommand::Approve { .. } => Act::Approve,
        InboxCommand::Reject { .. } => Act::Reject,
        InboxCommand::Answer { .. } => Act::Answer,
        InboxCommand::Dismiss { .. } => Act::Dismiss,
    }
}

/// The request that settles a question without its number; none if only a daemon can settle it.
pub(super) fn underlying(
    store: &Store,
    asked: &Question,
    command: &InboxCommand,
) -> Result<Option<Request>, pointsman_store::Error> {
    let project = asked.source.project.clone();
    Ok(match (&asked.source.owner, command) {
        (Owner::Task(issue), InboxCommand::Answer { text, by }) => {
            Some(Request::Answer { project, issue: *issue, by: by.clone(), text: text.clone() })
        }
        (Owner::Vault(id), InboxCommand::Approve { by }) => {
            let entry = store.vault_entry(&project, id)?;
            entry.map(|entry| {
                let again = entry.status == core_vault::Status::Uncertain;
                let command =
                    VaultCommand::Approve { id: id.clone(), hash: entry.hash, again, by: by.clone() };
                Request::Vault { project, command }
            })
        }
        (Owner::Vault(id), InboxCommand::Reject { reason, by }) => {
            let (reason, by) = (reason.clone(), by.clone());
            Some(Request::Vault { project, command: VaultCommand::Reject { id: id.clone(), reason, by } })
        }
        (Owner::Run(_) | Owner::Task(_) | Owner::Vault(_) | Owner::Concern(_), _) => None,
    })
}
