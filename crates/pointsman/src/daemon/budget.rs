//! What sessions spend, counted in the store, and the marks they pass.

use pointsman_core::config::Config;
use pointsman_core::ids::TaskKey;
use pointsman_core::session::budget::{self, Level, Limit, Spent, level};
use pointsman_core::session::context::Gauge;
use pointsman_core::task::{Event, Session};
use pointsman_core::time::Timestamp;
use pointsman_store::{EntryScope, Store};
use serde_json::json;

use super::answer::{done, failed};
use super::clock;
use super::engine::{Engine, Input};
use crate::control::protocol::{FailureKind, Reply};

/// Takes a measurement in and acts on the marks it passes.
pub(crate) fn measure(
    engine: &mut Engine,
    session: &str,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Reply {
    let Some((key, generation)) = TaskKey::parse_session(session) else {
        return failed(FailureKind::NotFound, format!("there is no session {session}"));
    };
    let measured = engine.store().session(session).and_then(|known| match known {
        Some(_) => take(engine, &key, generation, session, gauge, spent).map(|()| true),
        None => Ok(false),
    });
    match measured {
        Ok(false) => failed(FailureKind::NotFound, format!("there is no session {session}")),
        Ok(true) => {
            let task = task_line(engine, &key);
            done(json!({ "session": session, "measured": true, "task": task }))
        }
        Err(error) => failed(FailureKind::Failed, super::world::chain(&error)),
    }
}

/// What a status line shows of a task.
fn task_line(engine: &mut Engine, key: &TaskKey) -> serde_json::Value {
    let Some(task) = engine.tasks().get(key).cloned() else { return serde_json::Value::Null };
    let entries = engine.store().queue_entries(&key.project, EntryScope::Unfinished).unwrap_or_default();
    let position = entries.iter().position(|entry| entry.issue == Some(key.issue)).map(|at| at + 1);
    json!({
        "state": task.state, "phase": task.phase.map(|phase| phase.name()), "ci": serde_json::to_value(&task.ci).unwrap_or_default()["status"], "pr": task.pr,
        "queue_position": position,
    })
}

fn take(
    engine: &mut Engine,
    key: &TaskKey,
    generation: u32,
    session: &str,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<(), pointsman_store::Error> {
    let now = clock::now();
    let mut inputs = Vec::new();
    if let Some(gauge) = gauge {
        engine.store().session_measured(session, Some(gauge), None)?;
        inputs.push(Input::new(key.clone(), Event::ContextMeasured { generation, gauge }));
    }
    if let Some(spent) = spent {
        engine.store().spend(&key.project, Some(key.issue), session, &clock::day(now), spent)?;
        inputs.extend(passed(engine, key, now)?);
    }
    engine.take(&inputs, now).map(drop)
}

/// The marks that are passed: of this task, and of the day for every task that runs.
fn passed(engine: &mut Engine, key: &TaskKey, now: Timestamp) -> Result<Vec<Input>, pointsman_store::Error> {
    let Some(config) = engine.config(&key.project) else { return Ok(Vec::new()) };
    let mut inputs = Vec::new();
    let task = engine.store().spent_on_task(key)?;
    let limit = Limit::per_task(&config.budget);
    if let Some(input) = once(engine, key, "task", level(task, limit), &describe(task, limit, "this task"))? {
        inputs.push(input);
    }
    let (day, limit) =
        (engine.store().spent_on_day(Some(&key.project), &clock::day(now))?, Limit::per_day(&config.budget));
    let reached = level(day, limit);
    if reached > Level::Within {
        let running: Vec<TaskKey> = engine
            .tasks()
            .values()
            .filter(|t| t.key.project == key.project && t.session != Session::None)
            .map(|t| t.key.clone())
            .collect();
        let what = describe(day, limit, "today");
        for running in running {
            let mark = format!("day {}", clock::day(now));
            inputs.extend(once(engine, &running, &mark, reached, &what)?);
        }
    }
    Ok(inputs)
}

/// Each mark is told once per task: remembered in the store, so that a restart does not repeat it.
fn once(
    engine: &mut Engine,
    key: &TaskKey,
    mark: &str,
    reached: Level,
    what: &str,
) -> Result<Option<Input>, pointsman_store::Error> {
    if reached == Level::Within {
        return Ok(None);
    }
    let generation = engine.tasks().get(key).map_or(0, |t| t.generation);
    // A task that a person starts again after the hard mark is told again.
    let name = format!("budget-{}-{mark}-{generation}", key.issue);
    let told = engine.store().cursor(Some(&key.project), &name)?;
    let value = if reached == Level::Hard { "hard" } else { "soft" };
    if told.as_deref() == Some(value) || told.as_deref() == Some("hard") {
        return Ok(None);
    }
    let mut input = Input::new(key.clone(), Event::BudgetReached { level: reached, what: what.to_owned() });
    input.cursor = Some((name, value.to_owned()));
    Ok(Some(input))
}

/// Whether a project may start anything new today.
pub(crate) fn may_start(
    store: &Store,
    config: &Config,
    now: Timestamp,
) -> Result<bool, pointsman_store::Error> {
    let limit = Limit::per_day(&config.budget);
    if limit == Limit::default() {
        return Ok(true);
    }
    let spent = store.spent_on_day(Some(&config.name), &clock::day(now))?;
    Ok(level(spent, limit) == Level::Within)
}

fn describe(spent: Spent, limit: Limit, whose: &str) -> String {
    format!("{} spent for {whose}", budget::describe(spent, limit).unwrap_or_else(|| "nothing".to_owned()))
}
