//! What sessions spend, counted in the store, and the marks they pass.

use std::sync::Arc;

use pointsman_core::config::{Budget, Config};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::part::session::{self, Stage};
use pointsman_core::role::Role;
use pointsman_core::session::budget::{self, Level, Limit, Spent, level};
use pointsman_core::session::context::Gauge;
use pointsman_core::session::quota::{self, Window};
use pointsman_core::task::Task;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::words::daemon::budget::Whose;
use pointsman_core::workflow::{Workflow, WorkflowId};
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
    let Some((id, generation)) = WorkflowId::parse_session(session) else {
        return failed(FailureKind::NotFound, words::daemon::request::no_session(session));
    };
    let measured = engine.store().session(session).and_then(|known| match known {
        Some(row) => {
            if !quota.is_empty() {
                let told = serde_json::to_string(quota).unwrap_or_default();
                let told = Write::cursor(id.project(), QUOTA, told);
                engine.write(&[Change::quiet(clock::now(), vec![told])])?;
            }
            take(engine, &id, generation, &row, gauge, spent).map(|()| true)
        }
        None => Ok(false),
    });
    match measured {
        Ok(false) => failed(FailureKind::NotFound, words::daemon::request::no_session(session)),
        Ok(true) => {
            let task = id.task().and_then(|key| task_line(engine, key));
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
    id: &WorkflowId,
    generation: u32,
    session: &SessionRow,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<(), pointsman_store::Error> {
    count(engine, id, generation, session, gauge, spent)?;
    // Who counts turns tells their end by that.
    if spent.is_some_and(|spent| spent.turns > session.spent.turns) {
        let ended = Input::of_session(id.clone(), generation, session::Event::TurnEnded);
        engine.take(&[ended], clock::now())?;
    }
    Ok(())
}

/// Counts, and acts on the marks that are passed; the end of a turn is told by somebody else.
pub(crate) fn count(
    engine: &mut Engine,
    id: &WorkflowId,
    generation: u32,
    session: &SessionRow,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<(), pointsman_store::Error> {
    let now = clock::now();
    let mut inputs = Vec::new();
    if let Some(gauge) = gauge {
        let measured = session::Event::ContextMeasured { gauge };
        inputs.push(Input::of_session(id.clone(), generation, measured));
    }
    if let Some(spent) = spent {
        spend(engine, id, &session.session, spent, now)?;
        inputs.extend(passed(engine, id, now)?);
    }
    engine.take(&inputs, now).map(drop)
}

/// A session's hook tells the end of a turn, under a name that comes once: counted before the end itself is taken in, so that
/// a session that has used up its turns ends there.
pub(crate) fn turn_ended(
    engine: &mut Engine,
    id: &WorkflowId,
    session: &str,
    name: &str,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    if engine.store().knows_input(name)? {
        return Ok(());
    }
    let turns = match id.task() {
        Some(key) => engine.store().count_of_session(key, session, TURN_ENDED)?,
        None => engine.store().session(session)?.map_or(0, |row| row.spent.turns),
    };
    let spent = Spent { turns: turns.saturating_add(1), ..Spent::default() };
    spend(engine, id, session, spent, now)?;
    let inputs = passed(engine, id, now)?;
    engine.take(&inputs, now).map(drop)
}

fn spend(
    engine: &mut Engine,
    id: &WorkflowId,
    session: &str,
    total: Spent,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let (project, issue) = (id.project().clone(), id.issue());
    let report = SpendingReport { project, issue, session: session.to_owned(), day: clock::day(now), total };
    engine.write(&[Change::quiet(now, vec![Write::Spent(report)])]).map(drop)
}

/// The name of the mark of a role's day. Names are stored.
const ROLE_ON_DAY: &str = "role on day";

/// A limit, how much of it is used, and by whom.
struct Mark {
    /// Tells it from other marks of the same task.
    name: String,
    whose: Whose,
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

/// The limits of a workflow and its present session.
fn of_workflow(
    store: &Store,
    config: &Config,
    owner: &Workflow,
    now: Timestamp,
) -> Result<Vec<Mark>, pointsman_store::Error> {
    let mut marks = match owner {
        Workflow::Task(task) => of_task(store, config, task, now)?,
        Workflow::Run(_) => Vec::new(),
    };
    let role = config.roles.get(owner.role()).budget.as_ref();
    for (name, budget) in [("session", Some(&config.budget)), ("session of role", role)] {
        let limit = budget.map(Limit::per_session).unwrap_or_default();
        if limit.is_any()
            && let Some(session) = owner.session_name()
            && let Some(row) = store.session(&session)?
        {
            marks.push(Mark { name: name.to_owned(), whose: Whose::Session, spent: row.spent, limit });
        }
    }
    Ok(marks)
}

/// The limits of one task over all its sessions.
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
        add("task", Whose::Task, store.spent_on_task(key, now)?, limit);
    }
    let limit = role.map(Limit::per_task).unwrap_or_default();
    if limit.is_any() {
        let spent = store.spent_by_role_on_task(key, now)?.remove(&ROLE).unwrap_or_default();
        add("role on task", Whose::RoleOnTask, spent, limit);
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
        marks.push(Mark { name: format!("day {day}"), whose: Whose::Day, spent, limit });
    }
    let limit = config.roles.get(ROLE).budget.as_ref().map(Limit::per_day).unwrap_or_default();
    if limit.is_any() {
        let mut roles = store.spent_by_role_on_day(Some(&config.name), &day, now)?;
        let spent = roles.remove(&ROLE).unwrap_or_default();
        marks.push(Mark { name: format!("{ROLE_ON_DAY} {day}"), whose: Whose::RoleOnDay, spent, limit });
    }
    Ok(marks)
}

/// The marks that are passed: of this workflow, and of the day for everything that runs.
fn passed(
    engine: &mut Engine,
    id: &WorkflowId,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let Some(config) = engine.config(id.project()) else { return Ok(Vec::new()) };
    let mut inputs = Vec::new();
    let Some(owner) = engine.workflow(id) else { return Ok(inputs) };
    for mark in of_workflow(engine.store(), &config, &owner, now)? {
        inputs.extend(once(engine, &owner, &mark)?);
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
            for owner in running(engine, &config.name) {
                inputs.extend(once(engine, &owner, &mark)?);
            }
        }
    }
    Ok(inputs)
}

fn running(engine: &Engine, project: &ProjectName) -> Vec<Workflow> {
    let is_running = |owner: &Workflow| owner.session().stage != Stage::None;
    engine.workflows().filter(|owner| owner.id().project() == project && is_running(owner)).collect()
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
            for owner in running(engine, &config.name) {
                for mark in of_workflow(engine.store(), &config, &owner, now)? {
                    inputs.extend(once(engine, &owner, &mark)?);
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
fn once(engine: &mut Engine, owner: &Workflow, mark: &Mark) -> Result<Option<Input>, pointsman_store::Error> {
    let (id, reached) = (owner.id(), mark.level());
    // What spends nothing at the moment is told when it does again.
    if reached == Level::Within || !owner.demand().spends() {
        return Ok(None);
    }
    // A task that a person starts again after the hard mark is told again.
    let of = match &id {
        WorkflowId::Task(key) => key.issue.to_string(),
        WorkflowId::Run(key) => key.identity(),
    };
    let generation = owner.session().generation;
    let name = format!("budget-{of}-{}-{generation}", mark.name);
    let told = engine.store().cursor(Some(id.project()), &name)?;
    let value = if reached == Level::Hard { "hard" } else { "soft" };
    if told.as_deref() == Some(value) || told.as_deref() == Some("hard") {
        return Ok(None);
    }
    let reached = session::Event::BudgetReached { level: reached, what: mark.describe() };
    let mut input = Input::of_session(id, generation, reached);
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
        && of_workflow(store, config, &Workflow::Task(Arc::new(task.clone())), now)?
            .iter()
            .all(|mark| mark.level() < Level::Hard))
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
    let mut marks = of_workflow(store, config, &Workflow::Task(Arc::new(task.clone())), now)?;
    marks.extend(of_day(store, config, now)?);
    Ok(marks.iter().find(|mark| mark.level() == Level::Hard).map(Mark::describe))
}
