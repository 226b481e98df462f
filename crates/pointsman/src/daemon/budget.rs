//! The spending of sessions, counted in the store, and the marks they pass.

use std::sync::Arc;

use pointsman_core::config::{Budget, Config};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::role::Role;
use pointsman_core::run::{self, Run, Subject};
use pointsman_core::session::budget::{self, Level, Limit, Spent, level};
use pointsman_core::session::context::Gauge;
use pointsman_core::session::quota::{self, Window};
use pointsman_core::task::{Event, Stage, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::words::daemon::budget::SpendingScope;
use pointsman_store::{Change, EntryScope, RunScope, SessionRow, SpendingReport, Store, Write};
use pointsman_view::session::Measured;
use pointsman_view::task::{CiStatus, StatusLine};

use super::answer::{done, failed};
use super::clock;
use super::engine::{Engine, Input};
use super::runs;
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

/// Takes a measurement in and acts on the marks it passes. Sessions of tasks and of runs tell it in the same way.
pub(crate) fn measure(
    engine: &mut Engine,
    session: &str,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
    quota: &[Window],
) -> Reply {
    let measured = engine.store().session(session).and_then(|known| match known {
        Some(row) => {
            if !quota.is_empty() {
                let told = serde_json::to_string(quota).unwrap_or_default();
                let told = Write::cursor(&row.project, QUOTA, told);
                engine.write(&[Change::quiet(clock::now(), vec![told])])?;
            }
            match TaskKey::parse_session(session) {
                Some((key, generation)) => {
                    take(engine, &key, generation, &row, gauge, spent)?;
                    Ok(Some(task_line(engine, &key)))
                }
                None => of_run(engine, &row, gauge, spent).map(|()| Some(None)),
            }
        }
        None => Ok(None),
    });
    match measured {
        Ok(None) => failed(FailureKind::NotFound, words::daemon::request::no_session(session)),
        Ok(Some(task)) => done(Measured { session: session.to_owned(), measured: true, task }),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

/// The measurement of a run's session.
fn of_run(
    engine: &mut Engine,
    session: &SessionRow,
    gauge: Option<Gauge>,
    spent: Option<Spent>,
) -> Result<(), pointsman_store::Error> {
    let now = clock::now();
    if let Some(gauge) = gauge {
        let measured = Write::ContextMeasured { session: session.session.clone(), gauge };
        engine.write(&[Change::quiet(now, vec![measured])])?;
    }
    let Some(spent) = spent else { return Ok(()) };
    let run = engine.store().runs(&session.project, RunScope::Open)?;
    let run = run.into_iter().find(|run| run.session(run.generation) == session.session);
    let issue = run.as_ref().and_then(|run| issue_of(engine, run));
    spend(engine, (&session.project, issue), &session.session, spent, now)?;
    let (Some(config), Some(run)) = (engine.config(&session.project), run) else { return Ok(()) };
    let marks = of_session(engine.store(), &config, &Spender::of_run(&run, issue), now)?;
    if let Some(full) = marks.iter().find(|mark| mark.level() == Level::Hard) {
        stop(engine, &run, full, now)?;
    }
    let mut inputs = Vec::new();
    if let Some(issue) = issue {
        // The issue's own budget is that of its task as well.
        let key = TaskKey { project: run.project.clone(), issue };
        inputs.extend(passed_by_task(engine, &config, &key, now)?);
    }
    inputs.extend(day_passed(engine, &config, now)?);
    engine.take(&inputs, now).map(drop)
}

/// The issue that a run is about, by itself or through its pull request.
fn issue_of(engine: &Engine, run: &Run) -> Option<u64> {
    match run.subject.as_ref()? {
        Subject::Action { issue } => Some(*issue),
        Subject::Review { pr, .. } => {
            let tasks = engine.tasks().values().filter(|task| task.key.project == run.project);
            tasks.into_iter().find(|task| task.pr == Some(*pr)).map(|task| task.key.issue)
        }
        Subject::Vault { .. } => None,
    }
}

/// Ends a run whose budget is used up. One that is over already stays as it is.
fn stop(engine: &mut Engine, run: &Run, full: &Mark, now: Timestamp) -> Result<(), pointsman_store::Error> {
    let by = words::daemon::budget::stops(&full.describe());
    let stopped = runs::happened(engine, &run.project, run.id, &run::Event::Stopped { by }, &[], now)?;
    if let Err(refused) = stopped {
        tracing::debug!(run = %run.id, ?refused, "a run was not stopped for its budget");
    }
    Ok(())
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
        spend(engine, (&key.project, Some(key.issue)), &session.session, spent, now)?;
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
    spend(engine, (&key.project, Some(key.issue)), session, spent, now)?;
    let inputs = passed(engine, key, now)?;
    engine.take(&inputs, now).map(drop)
}

fn spend(
    engine: &mut Engine,
    (project, issue): (&ProjectName, Option<u64>),
    session: &str,
    total: Spent,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let (project, session) = (project.clone(), session.to_owned());
    let report = SpendingReport { project, issue, session, day: clock::day(now), total };
    engine.write(&[Change::quiet(now, vec![Write::Spent(report)])]).map(drop)
}

/// The name of the mark of a role's day. Names are stored.
const ROLE_ON_DAY: &str = "role on day";

/// Whoever spends: a role, at one thing, in one session.
struct Spender {
    project: ProjectName,
    role: Role,
    /// The issue that it is about.
    issue: Option<u64>,
    session: Option<String>,
}

impl Spender {
    fn of_task(task: &Task) -> Self {
        let TaskKey { project, issue } = task.key.clone();
        Self { project, role: ROLE, issue: Some(issue), session: task.session_id() }
    }

    fn of_run(run: &Run, issue: Option<u64>) -> Self {
        let session = Some(run.session(run.generation));
        Self { project: run.project.clone(), role: run.formula.role(), issue, session }
    }
}

/// A limit, how much of it is used, and by whom.
struct Mark {
    /// Tells it from other marks of the same task.
    name: String,
    whose: SpendingScope,
    /// The role whose sessions it is for; none if it is for all of them.
    role: Option<Role>,
    spent: Spent,
    limit: Limit,
}

impl Mark {
    fn counts_for(&self, role: Role) -> bool {
        self.role.is_none_or(|own| own == role)
    }

    fn level(&self) -> Level {
        level(self.spent, self.limit)
    }

    fn describe(&self) -> String {
        let amount = budget::describe(self.spent, self.limit);
        words::daemon::budget::spent(amount.as_deref(), self.whose)
    }
}

/// The limits of one session, its task and its issue.
fn of_session(
    store: &Store,
    config: &Config,
    spender: &Spender,
    now: Timestamp,
) -> Result<Vec<Mark>, pointsman_store::Error> {
    let budget = config.roles.get(spender.role).budget.as_ref();
    let mut marks = Vec::new();
    let mut add = |name: &str, whose, role, spent, limit| {
        marks.push(Mark { name: name.to_owned(), whose, role, spent, limit });
    };
    let of_role = |limit: fn(&Budget) -> Limit| budget.map(limit).unwrap_or_default();
    if let Some(issue) = spender.issue {
        let key = TaskKey { project: spender.project.clone(), issue };
        let by_role = || -> Result<Spent, pointsman_store::Error> {
            Ok(store.spent_by_role_on_issue(&key, now)?.remove(&spender.role).unwrap_or_default())
        };
        let limit = Limit::per_task(&config.budget);
        if limit.is_any() && spender.role == ROLE {
            add("task", SpendingScope::Task, None, store.spent_on_task(&key, now)?, limit);
        }
        let limit = of_role(Limit::per_task);
        if limit.is_any() {
            add("role on task", SpendingScope::RoleOnTask, Some(spender.role), by_role()?, limit);
        }
        let limit = Limit::per_issue(&config.budget);
        if limit.is_any() {
            add("issue", SpendingScope::Issue, None, store.spent_on_issue(&key, now)?, limit);
        }
        let limit = of_role(Limit::per_issue);
        if limit.is_any() {
            add("role on issue", SpendingScope::RoleOnIssue, Some(spender.role), by_role()?, limit);
        }
    }
    let limits =
        [("session", Limit::per_session(&config.budget)), ("session of role", of_role(Limit::per_session))];
    for (name, limit) in limits {
        if limit.is_any()
            && let Some(session) = &spender.session
            && let Some(row) = store.session(session)?
        {
            add(name, SpendingScope::Session, Some(spender.role), row.spent, limit);
        }
    }
    Ok(marks)
}

/// The limits of a project's day: of all roles together, and of each that has its own.
fn of_day(store: &Store, config: &Config, now: Timestamp) -> Result<Vec<Mark>, pointsman_store::Error> {
    let day = clock::day(now);
    let mut marks = Vec::new();
    let limit = Limit::per_day(&config.budget);
    if limit.is_any() {
        let spent = store.spent_on_day(Some(&config.name), &day, now)?;
        marks.push(Mark { name: format!("day {day}"), whose: SpendingScope::Day, role: None, spent, limit });
    }
    let own = config.roles.iter().filter_map(|(role, settings)| Some((role, settings.budget.as_ref()?)));
    let own: Vec<_> = own.map(|(role, budget)| (role, Limit::per_day(budget))).collect();
    if own.iter().any(|(_, limit)| limit.is_any()) {
        let mut roles = store.spent_by_role_on_day(Some(&config.name), &day, now)?;
        for (role, limit) in own.into_iter().filter(|(_, limit)| limit.is_any()) {
            let spent = roles.remove(&role).unwrap_or_default();
            let name = format!("{ROLE_ON_DAY} {day}");
            marks.push(Mark { name, whose: SpendingScope::RoleOnDay, role: Some(role), spent, limit });
        }
    }
    Ok(marks)
}

/// The marks of the day that count for a role.
fn of_day_for(
    store: &Store,
    config: &Config,
    role: Role,
    now: Timestamp,
) -> Result<Vec<Mark>, pointsman_store::Error> {
    let mut marks = of_day(store, config, now)?;
    marks.retain(|mark| mark.counts_for(role));
    Ok(marks)
}

/// The marks that are passed: of this task, and of the day for everything that runs.
fn passed(engine: &mut Engine, key: &TaskKey, now: Timestamp) -> Result<Vec<Input>, pointsman_store::Error> {
    let Some(config) = engine.config(&key.project) else { return Ok(Vec::new()) };
    let mut inputs = passed_by_task(engine, &config, key, now)?;
    inputs.extend(day_passed(engine, &config, now)?);
    Ok(inputs)
}

fn passed_by_task(
    engine: &mut Engine,
    config: &Config,
    key: &TaskKey,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    let Some(task) = engine.tasks().get(key).cloned() else { return Ok(inputs) };
    for mark in of_session(engine.store(), config, &Spender::of_task(&task), now)? {
        inputs.extend(once(engine, &task, &mark)?);
    }
    Ok(inputs)
}

/// The marks of the day, for every task that runs. Runs whose day is over are stopped.
fn day_passed(
    engine: &mut Engine,
    config: &Config,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    for mark in of_day(engine.store(), config, now)? {
        if mark.level() > Level::Within && mark.counts_for(ROLE) {
            for task in running(engine, &config.name) {
                inputs.extend(once(engine, &task, &mark)?);
            }
        }
        if mark.level() == Level::Hard {
            let mut runs = engine.store().runs(&config.name, RunScope::Open)?;
            runs.retain(|run| !run.status.is_over() && mark.counts_for(run.formula.role()));
            for run in runs {
                stop(engine, &run, &mark, now)?;
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

/// The marks that nobody reports: time passes, and sessions die. Those of issues are long, and looked at `thoroughly` only.
pub(crate) fn passed_by_themselves(
    engine: &mut Engine,
    thoroughly: bool,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    let projects: Vec<ProjectName> = engine.served().cloned().collect();
    for config in projects.iter().filter_map(|project| engine.config(project)).collect::<Vec<_>>() {
        let own = config.roles.iter().filter_map(|(_, settings)| settings.budget.as_ref());
        let budgets: Vec<&Budget> = own.chain([&config.budget]).collect();
        let any = |limit: fn(&Budget) -> Limit| budgets.iter().any(|budget| limit(budget).passes_by_itself());
        if any(Limit::per_task) || thoroughly && any(Limit::per_issue) {
            for task in running(engine, &config.name) {
                inputs.extend(passed_by_task(engine, &config, &task.key, now)?);
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
    let day = of_day_for(store, config, ROLE, now)?;
    Ok(day.iter().all(|mark| mark.level() == Level::Within)
        && of_session(store, config, &Spender::of_task(task), now)?
            .iter()
            .all(|mark| mark.level() < Level::Hard))
}

/// Names the budget of the day or the rate limit that is used up for a role, in words.
pub(crate) fn used_up_today(
    store: &Store,
    config: &Config,
    role: Role,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    if let Some(full) = used_up_quota(store, &config.name, config.limits.rate_limit_percent, now)? {
        return Ok(Some(words::reason::rate_limit(&full)));
    }
    let marks = of_day_for(store, config, role, now)?;
    Ok(marks.iter().find(|mark| mark.level() == Level::Hard).map(Mark::describe))
}

/// Names the budget or the rate limit because of which a run may not begin, in words.
pub(crate) fn used_up_for(
    engine: &Engine,
    run: &Run,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    let Some(config) = engine.config(&run.project) else { return Ok(None) };
    if let Some(full) = used_up_today(engine.store(), &config, run.formula.role(), now)? {
        return Ok(Some(full));
    }
    let spender = Spender::of_run(run, issue_of(engine, run));
    let marks = of_session(engine.store(), &config, &spender, now)?;
    Ok(marks.iter().find(|mark| mark.level() == Level::Hard).map(Mark::describe))
}

/// Names the budget that is used up, so that not even a person's order starts this task, in words.
pub(crate) fn used_up(
    store: &Store,
    config: &Config,
    task: &Task,
    now: Timestamp,
) -> Result<Option<String>, pointsman_store::Error> {
    let mut marks = of_session(store, config, &Spender::of_task(task), now)?;
    marks.extend(of_day_for(store, config, ROLE, now)?);
    Ok(marks.iter().find(|mark| mark.level() == Level::Hard).map(Mark::describe))
}
