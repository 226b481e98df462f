//! The spending of sessions, counted in the store, and the marks they pass.

use pointsman_core::concern::{self, About, ConcernKey};
use pointsman_core::config::{Budget, Config};
use pointsman_core::ids::{ProjectName, TaskKey};
use pointsman_core::log;
use pointsman_core::part::question::{Kind, Owner, Question};
use pointsman_core::part::session::{self, Demand, Stage};
use pointsman_core::relay::CredentialName;
use pointsman_core::role::Role;
use pointsman_core::run::{Run, Subject};
use pointsman_core::session::budget::{self, Grants, Level, Limit, Spent, level};
use pointsman_core::session::context::Gauge;
use pointsman_core::session::quota::{self, Window};
use pointsman_core::task::{self, Order, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_core::words::daemon::budget::SpendingScope;
use pointsman_core::workflow::{Workflow, WorkflowId};
use pointsman_store::{Change, EntryScope, Memory, SessionRow, SpendingReport, Store, Write};
use pointsman_view::session::Measured;
use pointsman_view::task::{CiStatus, StatusLine};

use super::answer::{done, failed};
use super::clock;
use super::engine::{Engine, Input};
use super::relay::NamedBudget;
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
            let mut quota = quota::believed(quota, clock::now());
            if !quota.is_empty() {
                // What the service itself told the relay is not in a status line.
                let known = self::quota(engine.store(), &row.project)?;
                quota.extend(
                    known.into_iter().filter(|window| is_wait(window) && window.resets_at > clock::now()),
                );
                let told = serde_json::to_string(&quota).unwrap_or_default();
                let told = Write::cursor(&row.project, QUOTA, told);
                engine.write(&[Change::quiet(clock::now(), vec![told])])?;
            }
            let Some((id, generation)) = WorkflowId::parse_session(session) else { return Ok(None) };
            let spent = match spent {
                Some(spent) => Some(beside_relay(engine, &row, spent)?),
                None => None,
            };
            take(engine, &id, generation, &row, gauge, spent)?;
            Ok(Some(id.task().and_then(|key| task_line(engine, key))))
        }
        None => Ok(None),
    });
    match measured {
        Ok(None) => failed(FailureKind::NotFound, words::daemon::request::no_session(session)),
        Ok(Some(task)) => done(Measured { session: session.to_owned(), measured: true, task }),
        Err(error) => failed(FailureKind::Failed, super::effects::chain(&error)),
    }
}

/// The issue that a workflow's sessions work on: a task's own, or the one that a run is about.
fn issue_worked_on(engine: &Engine, id: &WorkflowId) -> Option<u64> {
    match id {
        WorkflowId::Task(key) => Some(key.issue),
        WorkflowId::Run(key) => engine.runs().get(key).and_then(|run| issue_of(engine, run)),
        WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => None,
    }
}

/// The issue that a run is about, by itself or through its pull request.
fn issue_of(engine: &Engine, run: &Run) -> Option<u64> {
    match run.subject.as_ref()? {
        Subject::Action { issue } => Some(*issue),
        Subject::Review { pr, .. } => {
            let tasks = engine.tasks().values().filter(|task| task.key.project == run.project);
            tasks.into_iter().find(|task| task.contribution.pr() == Some(*pr)).map(|task| task.key.issue)
        }
        Subject::Vault { .. } => None,
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
        ci: CiStatus::of(task.contribution.ci()),
        pr: task.contribution.pr(),
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

/// The part of a session's own report that counts beside the relay: of tokens, the relay knows all.
pub(crate) fn beside_relay(
    engine: &Engine,
    session: &SessionRow,
    reported: Spent,
) -> Result<Spent, pointsman_store::Error> {
    let is_relayed =
        engine.store().cursor(Some(&session.project), &relayed_name(&session.session))?.is_some();
    let Spent { micro_usd, turns, .. } = reported;
    Ok(if is_relayed { Spent { micro_usd, turns, ..Spent::default() } } else { reported })
}

/// Under which name it is remembered that the relay counts a session's calls.
fn relayed_name(session: &str) -> String {
    format!("relayed-{session}")
}

/// Counts what the relay has counted, as the session's sums, and acts on the marks that are passed.
pub(crate) fn relayed(
    engine: &mut Engine,
    id: &WorkflowId,
    generation: u32,
    session: &SessionRow,
    spent: Spent,
) -> Result<(), pointsman_store::Error> {
    let name = relayed_name(&session.session);
    if engine.store().cursor(Some(&session.project), &name)?.is_none() {
        let noted = Write::cursor(&session.project, name, "yes");
        engine.write(&[Change::quiet(clock::now(), vec![noted])])?;
    }
    if spent.classes == session.spent.classes {
        return Ok(());
    }
    count(engine, id, generation, session, None, Some(spent))
}

/// The budgets that the next call of a workflow's session must fit into.
pub(crate) fn of_relayed(
    engine: &Engine,
    id: &WorkflowId,
    now: Timestamp,
) -> Result<Vec<NamedBudget>, pointsman_store::Error> {
    let (Some(config), Some(owner)) = (engine.config(id.project()), engine.workflow(id)) else {
        return Ok(Vec::new());
    };
    let mut marks = of_session(engine.store(), &config, &Spender::of(engine, &owner), now)?;
    marks.extend(of_day_for(engine.store(), &config, owner.role(), now)?);
    let named = |mark: Mark| {
        let whose = mark.whose.of(mark.role.unwrap_or(ROLE), mark.issue, &clock::day(now));
        NamedBudget {
            name: format!("{}/{}", config.name, mark.key),
            what: words::relay::budget(&whose, &budget::describe_limit(mark.limit)),
            limit: mark.limit,
            spent: mark.spent,
        }
    };
    Ok(marks.into_iter().map(named).collect())
}

/// The name of the window in which a credential has to wait.
const WAIT: &str = "relay ";

fn is_wait(window: &Window) -> bool {
    window.name.starts_with(WAIT)
}

/// Remembers that the credential of a project's sessions has to wait: nothing new begins until then.
pub(crate) fn note_wait(
    engine: &mut Engine,
    project: &ProjectName,
    credential: CredentialName,
    until: Timestamp,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let name = format!("{WAIT}{}", credential.as_str());
    let mut windows = quota(engine.store(), project)?;
    windows.retain(|window| window.name != name);
    windows.push(Window { name, used_permille: 1000, resets_at: until });
    let told = serde_json::to_string(&windows).unwrap_or_default();
    engine.write(&[Change::quiet(now, vec![Write::cursor(project, QUOTA, told)])]).map(drop)
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
    let turns = match id {
        WorkflowId::Task(key) => engine.store().count_of_session(key, session, TURN_ENDED)?,
        WorkflowId::Run(_)
        | WorkflowId::Vault(_)
        | WorkflowId::Concern(_)
        | WorkflowId::Role(_)
        | WorkflowId::Notifier(_) => engine.store().session(session)?.map_or(0, |row| row.spent.turns),
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
    let issue = issue_worked_on(engine, id);
    let (project, session) = (id.project().clone(), session.to_owned());
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

    fn of(engine: &Engine, owner: &Workflow) -> Self {
        match owner {
            Workflow::Task(task) => Self::of_task(task),
            Workflow::Run(run) => Self::of_run(run, issue_of(engine, run)),
            Workflow::Vault(_) | Workflow::Concern(_) | Workflow::Role(_) | Workflow::Notifier(_) => {
                let project = owner.id().project().clone();
                Self { project, role: owner.role(), issue: None, session: None }
            }
        }
    }

    fn of_run(run: &Run, issue: Option<u64>) -> Self {
        let session = Some(run.session_name());
        Self { project: run.project.clone(), role: run.formula.role(), issue, session }
    }
}

/// A limit, how much of it is used, and by whom.
struct Mark {
    /// Tells it from other marks of the same task.
    name: String,
    /// Tells it from all other budgets of the project.
    key: String,
    /// The issue that it is for; none if it is for all of them.
    issue: Option<u64>,
    /// When it begins anew by itself.
    until: Option<Timestamp>,
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

    /// The concern that asks people for more.
    fn concern(&self, config: &Config, now: Timestamp) -> Input {
        let whose = self.whose.of(self.role.unwrap_or(ROLE), self.issue, &clock::day(now));
        let limit = budget::describe_limit(self.limit);
        let text = words::question::budget(&whose, &limit, self.until);
        let about = About::one_of(Kind::Budget, &self.key);
        let key = ConcernKey { project: config.name.clone(), about };
        let raised =
            concern::Event::Raised { kind: Kind::Budget, text, issue: self.issue, pr: None, told: false };
        Input::of_concern(key, raised)
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
    let grants = grants(store, &config.name)?;
    let mut marks = Vec::new();
    let issue = spender.issue;
    let mut add = |name: &str, whose, role: Option<Role>, spent, limit: Limit| {
        let which = match name {
            "session" | "session of role" => spender.session.clone().unwrap_or_default(),
            _ => issue.map(|issue| issue.to_string()).unwrap_or_default(),
        };
        let of = role.map(|role| format!("{role}-")).unwrap_or_default();
        let key = format!("{}-{of}{which}", name.replace(' ', "-"));
        let limit = grants.raise(&key, limit);
        marks.push(Mark { name: name.to_owned(), key, issue, until: None, whose, role, spent, limit });
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
    let (grants, until) = (grants(store, &config.name)?, Some(clock::next_day(now)));
    let mut marks = Vec::new();
    let mut add = |name: String, key: String, whose, role, spent, limit| {
        let limit = grants.raise(&key, limit);
        marks.push(Mark { name, key, issue: None, until, whose, role, spent, limit });
    };
    let limit = Limit::per_day(&config.budget);
    if limit.is_any() {
        let spent = store.spent_on_day(Some(&config.name), &day, now)?;
        add(format!("day {day}"), format!("day-{day}"), SpendingScope::Day, None, spent, limit);
    }
    let own = config.roles.iter().filter_map(|(role, settings)| Some((role, settings.budget.as_ref()?)));
    let own: Vec<_> = own.map(|(role, budget)| (role, Limit::per_day(budget))).collect();
    if own.iter().any(|(_, limit)| limit.is_any()) {
        let mut roles = store.spent_by_role_on_day(Some(&config.name), &day, now)?;
        for (role, limit) in own.into_iter().filter(|(_, limit)| limit.is_any()) {
            let spent = roles.remove(&role).unwrap_or_default();
            let (name, key) = (format!("{ROLE_ON_DAY} {day}"), format!("day-{day}-{role}"));
            add(name, key, SpendingScope::RoleOnDay, Some(role), spent, limit);
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

/// The marks that are passed: of this workflow, of the task on the same issue, and of the day for everything that runs.
fn passed(
    engine: &mut Engine,
    id: &WorkflowId,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let Some(config) = engine.config(id.project()) else { return Ok(Vec::new()) };
    let mut inputs = passed_by(engine, &config, id, now)?;
    if let (WorkflowId::Run(key), Some(issue)) = (id, issue_worked_on(engine, id)) {
        // The issue's own budget is that of its task as well.
        let task = TaskKey { project: key.project.clone(), issue };
        inputs.extend(passed_by(engine, &config, &task.into(), now)?);
    }
    inputs.extend(day_passed(engine, &config, now)?);
    Ok(inputs)
}

fn passed_by(
    engine: &mut Engine,
    config: &Config,
    id: &WorkflowId,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    let Some(owner) = engine.workflow(id) else { return Ok(inputs) };
    for mark in of_session(engine.store(), config, &Spender::of(engine, &owner), now)? {
        let told = once(engine, &owner, &mark)?;
        if told.is_some() && mark.level() == Level::Hard {
            inputs.push(mark.concern(config, now));
        }
        inputs.extend(told);
    }
    Ok(inputs)
}

/// The marks of the day, for everything that runs.
fn day_passed(
    engine: &mut Engine,
    config: &Config,
    now: Timestamp,
) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut inputs = Vec::new();
    for mark in of_day(engine.store(), config, now)? {
        if mark.level() == Level::Hard {
            inputs.push(mark.concern(config, now));
        }
        if mark.level() > Level::Within {
            for owner in running(engine, &config.name) {
                if mark.counts_for(owner.role()) {
                    inputs.extend(once(engine, &owner, &mark)?);
                }
            }
        }
    }
    Ok(inputs)
}

fn running(engine: &Engine, project: &ProjectName) -> Vec<Workflow> {
    let is_running = |owner: &Workflow| owner.session().stage != Stage::None;
    engine.workflows().filter(|owner| owner.id().project() == project && is_running(owner)).collect()
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
            for owner in running(engine, &config.name) {
                inputs.extend(passed_by(engine, &config, &owner.id(), now)?);
            }
        }
        // Of every kind: a session that begins to work after the mark was passed hears of it too.
        if budgets.iter().any(|budget| Limit::per_day(budget).is_any()) {
            inputs.extend(day_passed(engine, &config, now)?);
        }
        if thoroughly {
            inputs.extend(concerns(engine, &config, now)?);
        }
    }
    Ok(inputs)
}

/// Asks about budgets because of which waiting tasks cannot begin, and withdraws what is asked about budgets that are not
/// used up any more.
fn concerns(engine: &Engine, config: &Config, now: Timestamp) -> Result<Vec<Input>, pointsman_store::Error> {
    let mut raised = Vec::new();
    for mark in of_day(engine.store(), config, now)? {
        raised.extend((mark.level() == Level::Hard).then(|| mark.concern(config, now)));
    }
    let asked = |about: &About| {
        engine.workflow(&ConcernKey { project: config.name.clone(), about: about.clone() }.into()).is_some()
    };
    for task in engine.tasks().values().filter(|task| task.key.project == config.name) {
        let waits = task.state == State::Backlog && task.ready;
        let stopped = matches!(task.state, State::Backlog | State::Blocked);
        if !waits && !stopped {
            continue;
        }
        for mark in of_session(engine.store(), config, &Spender::of_task(task), now)? {
            let known = asked(&About::one_of(Kind::Budget, &mark.key));
            raised
                .extend((mark.level() == Level::Hard && (waits || known)).then(|| mark.concern(config, now)));
        }
    }
    let holds = |key: &ConcernKey| raised.iter().any(|input| input.workflow == key.clone().into());
    let over = engine.workflows().filter_map(|workflow| match workflow {
        Workflow::Concern(concern) => {
            let budget = concern.asked.as_ref().is_some_and(|asked| asked.kind == Kind::Budget);
            let of_task = |issue| engine.tasks().get(&TaskKey { project: config.name.clone(), issue });
            // While a task works, its marks are told as they are passed.
            let issue = concern.asked.as_ref().and_then(|asked| asked.source.issue);
            let working = issue.and_then(of_task).is_some_and(|task| task.session.stage != Stage::None);
            let own = concern.key.project == config.name;
            (own && budget && !working && !holds(&concern.key)).then(|| concern.key.clone())
        }
        Workflow::Task(_)
        | Workflow::Run(_)
        | Workflow::Vault(_)
        | Workflow::Role(_)
        | Workflow::Notifier(_) => None,
    });
    let lifted = || concern::Event::Lifted { why: words::question::BUDGET_IS_NOT_USED_UP.to_owned() };
    let over: Vec<Input> = over.map(|key| Input::of_concern(key, lifted())).collect();
    raised.extend(over);
    Ok(raised)
}

/// The consequences of a person's yes to more: the grant, and those who waited for it go on.
pub(super) fn granted(
    engine: &Engine,
    asked: &Question,
    now: Timestamp,
) -> Result<(Vec<Input>, Vec<Change>), pointsman_store::Error> {
    let project = &asked.source.project;
    let Owner::Concern(about) = &asked.source.owner else { return Ok((Vec::new(), Vec::new())) };
    let prefix = format!("{}/", Kind::Budget);
    let name = about.as_str().strip_prefix(&prefix).unwrap_or(about.as_str());
    let mut grants = grants(engine.store(), project)?;
    grants.grant(name);
    let mut change = Change::logged(now, project, &log::Entry::BudgetGranted { name: name.to_owned() });
    change.memories.push(Memory::new(Grants::MEMORY, &grants)?);
    let mut inputs = Vec::new();
    for task in engine.tasks().values().filter(|task| task.key.project == *project) {
        let generation = task.session.generation;
        if asked.source.issue == Some(task.key.issue) && task.state == State::Blocked {
            inputs.push(Input::new(task.key.clone(), task::Event::Ordered { order: Order::Start }));
        } else if task.session.waits_for_budget {
            inputs.push(Input::of_session(
                task.key.clone().into(),
                generation,
                session::Event::BudgetGranted,
            ));
        }
    }
    Ok((inputs, vec![change]))
}

fn grants(store: &Store, project: &ProjectName) -> Result<Grants, pointsman_store::Error> {
    Ok(store.memory(project, Grants::MEMORY)?.unwrap_or_default())
}

/// Each mark is told once per session: remembered in the store, so that a restart does not repeat it.
fn once(engine: &mut Engine, owner: &Workflow, mark: &Mark) -> Result<Option<Input>, pointsman_store::Error> {
    let (id, reached) = (owner.id(), mark.level());
    // What spends nothing at the moment is told when it does again.
    if reached == Level::Within || !owner.demand().spends() {
        return Ok(None);
    }
    // A new budget comes by itself: only a session at work has to stop for that long.
    let at_work = owner.demand() == Demand::Work && owner.session().parked_until.is_none();
    if mark.until.is_some() && reached == Level::Hard && !at_work {
        return Ok(None);
    }
    // A task that a person starts again after the hard mark is told again.
    let of = match &id {
        WorkflowId::Task(key) => key.issue.to_string(),
        WorkflowId::Run(key) => key.identity(),
        WorkflowId::Vault(_) | WorkflowId::Concern(_) | WorkflowId::Role(_) | WorkflowId::Notifier(_) => {
            id.to_string()
        }
    };
    let generation = owner.session().generation;
    let name = format!("budget-{of}-{}-{generation}", mark.name);
    let told = engine.store().cursor(Some(id.project()), &name)?;
    let value = if reached == Level::Hard { "hard" } else { "soft" };
    if told.as_deref() == Some(value) || told.as_deref() == Some("hard") {
        return Ok(None);
    }
    let reached = session::Event::BudgetReached { level: reached, what: mark.describe(), until: mark.until };
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
