//! The spending of sessions, counted in the store, and the marks they pass.

use std::sync::Arc;

use pointsman_core::config::{Budget, Config};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::session::budget::{self, Level, Limit, Spent, level};
use pointsman_core::session::context::Gauge;
use pointsman_core::session::quota::{self, Window};
use pointsman_core::task::{Event, Stage, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::words::daemon::budget::SpendingScope;
use pointsman_store::{Change, EntryScope, SessionRow, SpendingReport, Store, Write};
use pointsman_view::session::Measured;
use pointsman_view::task::{CiStatus, StatusLine};

use super::answer::{done, failed};
use super::clock;
use super::engine::{Engine, Input};
use crate::control::protocol::{FailureKind, Reply};

/// The kind under which the end of a turn is in the log.
const TURN_ENDED: &str = "turn_ended";
/// The role that works on tasks.
const ROLE: Role = Task::ROLE;

/// Under which name the rate limits of a project's account are remembered.
const QUOTA: &str = "rate-limits";

/// The rate limits of a project's account, as they were told last.
pub(crate) fn quota(store: &Store, project: &ProjectName) -> Result<Vec<Window>, pointsman_store::Error> {
    let told = store.cursor(Some(project), QUOTA)?;
    Ok(told.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
}

/// The rate limit that is used up to this mark.
pub(crate) fn used_up_quota(
    store: &Store,
    project: &ProjectName,
    percent: u32,
    now: Timestamp,
) -> Result<Option<Window>, pointsman_store::Error> {
    Ok(quota::used_up(&quota(store, project)?, percent, now).cloned())
}

/// Takes a measurement in and acts on the marks it passes.
pub(crate) fn measure(
    engine: &mut Engine,
    session: &str,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
    quota: &[Window],
) -> Reply {
    let Some((key, generation)) = TaskKey::parse_session(session) else {
        return failed(FailureKind::NotFound, words::daemon::request::no_session(session));
    };
    let measured = engine.store().session(session).and_then(|known| match known {
        Some(row) => {
            if !quota.is_empty() {
                let told = serde_json::to_string(quota).unwrap_or_default();
                let told = Write::cursor(&key.project, QUOTA, told);
                engine.write(&[Change::quiet(clock::now(), vec![told])])?;
            }
            take(engine, &key, generation, &row, gauge, spent).map(|()| true)
        }
        None => Ok(false),
    });
    match measured {
        Ok(false) => failed(FailureKind::NotFound, words::daemon::request::no_session(session)),
        Ok(true) => {
            let task = task_line(engine, &key);
            done(Measured { session: session.to_owned(), measured: true, task })
        }
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

/// What a status line shows of a task.
fn task_line(engine: &mut Engine, key: &TaskKey) -> Option<StatusLine> {
    let task = engine.tasks().get(key).cloned()?;
    let entries = engine.store().queue_entries(&key.project, EntryScope::Unfinished).unwrap_or_default();
    let position = entries.iter().position(|entry| entry.issue == Some(key.issue)).map(|at| at + 1);
    Some(StatusLine {
        state: task.state,
        phase: task.phase,
        ci: CiStatus::of(&task.ci),
        pr: task.pr,
        queue_position: position,
    })
}

fn take(
    engine: &mut Engine,
    key: &TaskKey,
    generation: u32,
    session: &SessionRow,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<(), pointsman_store::Error> {
    count(engine, key, generation, session, gauge, spent)?;
    // Who counts turns tells their end by that.
    if spent.is_some_and(|spent| spent.turns > session.spent.turns) {
        let ended = Input::new(key.clone(), Event::TurnEnded { generation });
        engine.take(&[ended], clock::now())?;
    }
    Ok(())
}

/// Counts, and acts on the marks that are passed; the end of a turn is told by somebody else.
pub(crate) fn count(
    engine: &mut Engine,
    key: &TaskKey,
    generation: u32,
    session: &SessionRow,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<(), pointsman_store::Error> {
    let now = clock::now();
    let mut inputs = Vec::new();
    if let Some(gauge) = gauge {
        inputs.push(Input::new(key.clone(), Event::ContextMeasured { generation, gauge }));
    }
    if let Some(spent) = spent {
        spend(engine, key, &session.session, spent, now)?;
        inputs.extend(passed(engine, key, now)?);
    }
    engine.take(&inputs, now).map(drop)
}

/// A session's hook tells the end of a turn, under a name that comes once: counted before the end itself is taken in, so that
/// a session that has used up its turns ends there.
pub(crate) fn turn_ended(
    engine: &mut Engine,
    key: &TaskKey,
    session: &str,
    name: &str,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    if engine.store().knows_input(name)? {
        return Ok(());
    }
    let turns = engine.store().count_of_session(key, session, TURN_ENDED)?.saturating_add(1);
    let spent = Spent { turns, ..Spent::default() };
    spend(engine, key, session, spent, now)?;
    let inputs = passed(engine, key, now)?;
    engine.take(&inputs, now).map(drop)
}

fn spend(
    engine: &mut Engine,
    key: &TaskKey,
    session: &str,
    total: Spent,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let (project, issue) = (key.project.clone(), Some(key.issue));
    let report = SpendingReport { project, issue, session: session.to_owned(), day: clock::day(now), total };
    engine.write(&[Change::quiet(now, vec![Write::Spent(report)])]).map(drop)
}

/// The name of the mark of a role's day. Names are stored.
const ROLE_ON_DAY: &str = "role on day";

/// A limit, how much of it is used, and by whom.
struct Mark {
    /// Tells it from other marks of the same task.
    name: String,
    whose: SpendingScope,
    spent: Spent,
    limit: Limit,
}

impl Mark {
    fn level(&self) -> Level {
        level(self.spent, self.limit)
    }

    fn describe(&self) -> String {
        let amount = budget::describe(self.spent, self.limit);
        words::daemon::budget::spent(amount.as_deref(), self.whose)
    }
}

/// The limits of one task and its present session.
fn of_task(
    store: &Store,
    config: &Config,
    task: &Task,
    now: Timestamp,
) -> Result<Vec<Mark>, pointsman_store::Error> {
    let (key, role) = (&task.key, config.roles.get(ROLE).budget.as_ref());
    let mut marks = Vec::new();
    let mut add = |name: &str, whose, spent, limit| {
        marks.push(Mark { name: name.to_owned(), whose, spent, limit });
    };
    let limit = Limit::per_task(&config.budget);
    if limit.is_any() {
        add("task", SpendingScope::Task, store.spent_on_task(key, now)?, limit);
    }
    let limit = role.map(Limit::per_task).unwrap_or_default();
    if limit.is_any() {
        let spent = store.spent_by_role_on_task(key, now)?.remove(&ROLE).unwrap_or_default();
        add("role on task", SpendingScope::RoleOnTask, spent, limit);
    }
    let limits = [("session", Some(&config.budget)), ("session of role", role)];
    for (name, budget) in limits {
        let limit = budget.map(Limit::per_session).unwrap_or_default();
        if limit.is_any()
            && let Some(session) = task.session_id()
            && let Some(row) = store.session(&session)?
        {
            add(name, SpendingScope::Session, row.spent, limit);
        }
    }
    Ok(marks)
}

/// The limits of a project's day, which count for everything that runs.
fn of_day(store: &Store, config: &Config, now: Timestamp) -> Result<Vec<Mark>, pointsman_store::Error> {
    let day = clock::day(now);
    let mut marks = Vec::new();
    let limit = Limit::per_day(&config.budget);
    if limit.is_any() {
        let spent = store.spent_on_day(Some(&config.name), &day, now)?;
        marks.push(Mark { name: format!("day {day}"), whose: SpendingScope::Day, spent, limit });
    }
    let limit = config.roles.get(ROLE).budget.as_ref().map(Limit::per_day).unwrap_or_default();
    if limit.is_any() {
        let mut roles = store.spent_by_role_on_day(Some(&config.name), &day, now)?;
        let spent = roles.remove(&ROLE).unwrap_or_default();
        marks.push(Mark {
            name: format!("{ROLE_ON_DAY} {day}"),
            whose: SpendingScope::RoleOnDay,
            spent,
            limit,
        });
    }
    Ok(marks)
}

/// The marks that are passed: of this task, and of the day for every task that runs.
fn passed(engine: &mut Engine, key: &TaskKey, now: Timestamp) -> Result<Vec<Input>, pointsman_store::Error> {
    let Some(config) = engine.config(&key.project) else { return Ok(Vec::new()) };
    let mut inputs = Vec::new();
    let Some(task) = engine.tasks().get(key).cloned() else { return Ok(inputs) };
    for mark in of_task(engine.store(), &config, &task, now)? {
        inputs.extend(once(engine, &task, &mark)?);
    }
    inputs.extend(day_passed(engine, &config, now)?);
    Ok(inputs)
}

fn day_passed(
    engine: &mut Engine,
    config: &Config,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    for mark in of_day(engine.store(), config, now)? {
        if mark.level() > Level::Within {
            for task in running(engine, &config.name) {
                inputs.extend(once(engine, &task, &mark)?);
            }
        }
    }
    Ok(inputs)
}

fn running(engine: &Engine, project: &ProjectName) -> Vec<Arc<Task>> {
    let tasks =
        engine.tasks().values().filter(|t| t.key.project == *project && t.session.stage != Stage::None);
    tasks.cloned().collect()
}

/// The marks that nobody reports: time passes, and sessions die.
pub(crate) fn passed_by_themselves(
    engine: &mut Engine,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    let projects: Vec<ProjectName> = engine.served().cloned().collect();
    for config in projects.iter().filter_map(|project| engine.config(project)).collect::<Vec<_>>() {
        let budgets = [Some(&config.budget), config.roles.get(ROLE).budget.as_ref()];
        let any = |limit: fn(&Budget) -> Limit| {
            budgets.iter().flatten().any(|budget| limit(budget).passes_by_itself())
        };
        if any(Limit::per_task) {
            for task in running(engine, &config.name) {
                for mark in of_task(engine.store(), &config, &task, now)? {
                    inputs.extend(once(engine, &task, &mark)?);
                }
            }
        }
        if any(Limit::per_day) {
            inputs.extend(day_passed(engine, &config, now)?);
        }
    }
    Ok(inputs)
}

/// Each mark is told once per session: remembered in the store, so that a restart does not repeat it.
fn once(engine: &mut Engine, task: &Task, mark: &Mark) -> Result<Option<Input>, pointsman_store::Error> {
    let (key, reached) = (&task.key, mark.level());
    // What spends nothing at the moment is told when it does again.
    if reached == Level::Within || !task.state.spends() {
        return Ok(None);
    }
    // A task that a person starts again after the hard mark is told again.
    let name = format!("budget-{}-{}-{}", key.issue, mark.name, task.session.generation);
    let told = engine.store().cursor(Some(&key.project), &name)?;
    let value = if reached == Level::Hard { "hard" } else { "soft" };
    if told.as_deref() == Some(value) || told.as_deref() == Some("hard") {
        return Ok(None);
    }
    let event = Event::BudgetReached { level: reached, what: mark.describe() };
    let mut input = Input::new(key.clone(), event);
    input.cursor = Some((name, value.to_owned()));
    Ok(Some(input))
}

/// Whether a task may begin: something is left of its own budget, and enough of the day's and of the rate limits.
pub(crate) fn may_begin(
    store: &Store,
    config: &Config,
    task: &Task,
    now: Timestamp,
) -> Result<bool, pointsman_store::Error> {
    if used_up_quota(store, &config.name, config.limits.rate_limit_percent, now)?.is_some() {
        return Ok(false);
    }
    let day = of_day(store, config, now)?;
    Ok(day.iter().all(|mark| mark.level() == Level::Within)
        && of_task(store, config, task, now)?.iter().all(|mark| mark.level() < Level::Hard))
}

/// Names the budget of the day or the rate limit that is used up, in words.
pub(crate) fn used_up_today(
    store: &Store,
    config: &Config,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    if let Some(full) = used_up_quota(store, &config.name, config.limits.rate_limit_percent, now)? {
        return Ok(Some(words::reason::rate_limit(&full)));
    }
    let marks = of_day(store, config, now)?;
    Ok(marks.iter().find(|mark| mark.level() == Level::Hard).map(Mark::describe))
}

/// Names the budget that is used up, so that not even a person's order starts this task, in words.
pub(crate) fn used_up(
    store: &Store,
    config: &Config,
    task: &Task,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    let mut marks = of_task(store, config, task, now)?;
    marks.extend(of_day(store, config, now)?);
    Ok(marks.iter().find(|mark| mark.level() == Level::Hard).map(Mark::describe))
}
