use std::collections::BTreeMap;

use clap::Args;
use pointsman_core::decision::Unconfirmed;
use pointsman_core::part::question::{Kind, Owner, Question};
use pointsman_core::session::budget::{self, Limit, Spent};
use pointsman_core::session::quota::Window;
use pointsman_core::task::{State, Task};
use pointsman_core::text::clean_line;
use pointsman_core::vault::Entry;
use pointsman_core::words;
use pointsman_store::{EntryScope, ProjectRow, SessionScope, Stopped, StoppedBy, Store, VaultScope};
use pointsman_view::status as view;
use pointsman_view::task::Task as TaskView;
use pointsman_view::vault::Action;

use super::context::Context;
use super::failure::Failure;
use super::{checkout, inbox, notify, service, style, task, time};
use crate::daemon;
use crate::identity;
use crate::project::Project;

/// Show the daemon, the projects, and what needs a person
#[derive(Debug, Args)]
pub(crate) struct Arguments {}

/// One project at a glance.
struct ProjectSummary {
    row: ProjectRow,
    tasks: Vec<Task>,
    sessions: usize,
    queued: usize,
    /// Why nothing lands, if the merge queue is paused.
    stopped: Option<Stopped>,
    /// What needs a person, with what it has cost.
    attention: Vec<(Task, Spent)>,
    spent_today: Spent,
    /// The rate limits of its account, as far as they were told.
    quota: Vec<Window>,
    /// Vault actions that wait for a person.
    vault: Vec<Entry>,
    /// Open questions, in the order of the inbox.
    questions: Vec<(Question, usize)>,
    /// Notifiers that do not work.
    ill: Vec<notify::BrokenNotifier>,
    /// Decisions that were made while no daemon ran.
    unconfirmed: Vec<Unconfirmed>,
    /// What people should know about its settings and its checkout.
    warnings: Vec<String>,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        // A configuration that is found here registers its project; a wrong one is told.
        let here = context.project_if_any()?;
        let daemon = context.running_daemon()?;
        let mut glances = Vec::new();
        if let Some(store) = context.store()? {
            for row in store.projects()? {
                if context.wanted.is_none()
                    || here.as_ref().is_some_and(|project| project.config.name == row.name)
                {
                    glances.push(glance(context, &store, row)?);
                }
            }
        }
        if context.out.is_json() {
            print_json(context, daemon, &glances)
        } else {
            print(context, daemon.as_ref(), &glances)
        }
    }
}

fn glance(context: &Context, store: &Store, row: ProjectRow) -> Result<ProjectSummary, Failure> {
    let tasks = store.tasks(Some(&row.name))?;
    let live = store.sessions(Some(&row.name), SessionScope::Live)?;
    let outside = live.iter().filter(|session| identity::sandboxed(session) == Some(false));
    let outside: Vec<String> = outside.map(|session| session.session.clone()).collect();
    let sessions = live.len();
    let queued = store.queue_entries(&row.name, EntryScope::Unfinished)?.len();
    let stopped = store.queue_state(&row.name)?.stopped;
    let waiting = tasks.iter().filter(|task| needs_a_person(task));
    let attention = waiting
        .map(|task| Ok((task.clone(), task::spent(Some(store), task)?)))
        .collect::<Result<_, Failure>>()?;
    let now = time::now();
    let spent_today = store.spent_on_day(Some(&row.name), &time::day(now), now)?;
    let mut vault = store.vault_entries(&row.name, VaultScope::Open)?;
    vault.retain(|entry| entry.question().is_some());
    let mut questions = inbox::open(store)?;
    questions.retain(|(asked, _)| asked.source.project == row.name);
    let ill = notify::ill(store, &row.name)?;
    let mut quota = daemon::quota(store, &row.name)?;
    quota.retain(|window| window.resets_at > now);
    let unconfirmed = daemon::unconfirmed(store, &row.name)?;
    let mut warnings = warnings(context, &row);
    if !outside.is_empty() {
        warnings.push(words::sandbox::sessions_outside(&outside));
    }
    Ok(ProjectSummary {
        warnings,
        row,
        tasks,
        sessions,
        queued,
        stopped,
        attention,
        spent_today,
        quota,
        vault,
        questions,
        ill,
        unconfirmed,
    })
}

/// CI that is off, and commits that no agent can see yet. A configuration that cannot be read is told elsewhere.
fn warnings(context: &Context, row: &ProjectRow) -> Vec<String> {
    let Ok(project) = Project::load(&row.config_path) else { return Vec::new() };
    let mut warnings = Vec::new();
    if !project.config.ci.kind.tests_commits() {
        warnings.push(words::ci::off(&project.config));
    }
    // Without an answer from git there is nothing to say.
    warnings.extend(checkout::ahead(context, &project).ok().flatten());
    warnings
}

/// Whether nothing goes on without a person.
fn needs_a_person(task: &Task) -> bool {
    match task.state {
        State::Escalated | State::Blocked | State::Refused => true,
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Paused
        | State::Merged
        | State::Closed => false,
    }
}

fn counts(tasks: &[Task]) -> BTreeMap<State, usize> {
    let mut counts = BTreeMap::new();
    for task in tasks {
        *counts.entry(task.state).or_insert(0) += 1;
    }
    counts
}

fn print_json(
    context: &Context,
    daemon: Option<view::Daemon>,
    glances: &[ProjectSummary],
) -> Result<(), Failure> {
    let project = |glance: &ProjectSummary| view::Project {
        name: glance.row.name.clone(),
        config_path: glance.row.config_path.clone(),
        checkout: glance.row.checkout.clone(),
        tasks: counts(&glance.tasks),
        sessions: glance.sessions,
        merge_queue: glance.queued,
        line_stopped: glance.stopped.as_ref().map(|stopped| stopped.reason.clone()),
        spent_today: glance.spent_today.into(),
        rate_limits: glance.quota.iter().map(view::RateLimit::from).collect(),
        warnings: glance.warnings.clone(),
    };
    let attention = glances.iter().flat_map(|glance| &glance.attention);
    let unconfirmed = glances.iter().flat_map(|glance| {
        glance.unconfirmed.iter().map(|kept| view::Unconfirmed::new(&glance.row.name, kept))
    });
    let ill = glances.iter().flat_map(|glance| glance.ill.iter().map(|ill| ill.view(&glance.row.name)));
    context.out.value(&view::Status {
        daemon,
        state_dir: context.paths.state().to_owned(),
        projects: glances.iter().map(project).collect(),
        needs_a_person: attention.map(|(task, spent)| TaskView::new(task, *spent)).collect(),
        vault: glances.iter().flat_map(|glance| &glance.vault).map(Action::from).collect(),
        questions: glances.iter().flat_map(|glance| &glance.questions).map(inbox::shown).collect(),
        notifiers: ill.collect(),
        unconfirmed: unconfirmed.collect(),
        halted: daemon::halt::in_force(&context.paths),
    })
}

fn print(
    context: &Context,
    daemon: Option<&view::Daemon>,
    glances: &[ProjectSummary],
) -> Result<(), Failure> {
    let (out, strong, good, bad, quiet) = (context.out, style::STRONG, style::GOOD, style::BAD, style::QUIET);
    match daemon {
        Some(status) => out.line(format!(
            "{good}daemon running{good:#}  {quiet}process {}, version {}, since {}{quiet:#}",
            status.pid,
            status.version,
            time::local(status.started_at.0)
        ))?,
        None => {
            out.line(format!("{bad}daemon not running{bad:#}  {quiet}start it: pointsman up{quiet:#}"))?
        }
    }
    if let Some(halted) = daemon::halt::in_force(&context.paths) {
        let since = time::relative(halted.at.0, time::now());
        out.line(format!("{bad}halted{bad:#}  all work was halted {since}; to go on: pointsman resume"))?;
    }
    if let Some(notice) = daemon.and_then(|_| service::older_daemon(context)) {
        out.line(format!("{bad}notice{bad:#}  {notice}"))?;
    }
    for problem in daemon.iter().flat_map(|status| &status.problems) {
        out.line(format!("{bad}problem{bad:#}  {}", clean_line(problem, 400)))?;
    }
    if glances.is_empty() {
        out.line("no project is registered; pointsman init, in a git repository, makes one")?;
    }
    for glance in glances {
        let counts = counts(&glance.tasks).into_iter().map(|(state, n)| {
            let colour = style::of(state);
            format!("{colour}{n} {state}{colour:#}")
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        out.line(format!(
            "\n{strong}{}{strong:#}  {quiet}{}{quiet:#}\n  tasks: {}\n  sessions: {}, in the merge queue: {}",
            glance.row.name,
            glance.row.checkout.display(),
            if counts.is_empty() { "none" } else { &counts },
            glance.sessions,
            glance.queued
        ))?;
        for warning in &glance.warnings {
            out.line(format!("  {bad}warning{bad:#}  {warning}"))?;
        }
        if let Some(Stopped { at, by, reason }) = &glance.stopped {
            let since = time::relative(*at, time::now());
            let next = match by {
                // What was found says itself what to do.
                StoppedBy::Audit | StoppedBy::Refusal => String::new(),
                StoppedBy::Person => "; pointsman merge-queue resume lets it go on".to_owned(),
            };
            out.line(format!("  {bad}nothing lands{bad:#}: {}", clean_line(reason, 300)))?;
            out.line(format!("    {quiet}{since}{next}{quiet:#}"))?;
        }
        if let Some(spent) = budget::describe(glance.spent_today, Limit::default()) {
            out.line(format!("  spent today: {spent}"))?;
        }
        for window in &glance.quota {
            let until = time::local(window.resets_at);
            out.line(format!("  {}, until {until}", words::reason::rate_limit(window)))?;
        }
        for (task, _) in &glance.attention {
            let colour = style::of(task.state);
            out.line(format!(
                "  {colour}{}{colour:#} #{} {}: {}\n    {quiet}{}, waits for {}{quiet:#}",
                task.state,
                task.key.issue,
                clean_line(&task.title, 80),
                clean_line(task.reason.as_deref().unwrap_or("no reason given"), 200),
                time::relative(task.since, time::now()),
                words::task::waiting_for(task).unwrap_or_default()
            ))?;
        }
        // Tasks and vault actions are told by themselves.
        let told_elsewhere = |asked: &Question| match asked.source.owner {
            Owner::Task(_) | Owner::Vault(_) => true,
            Owner::Concern(_) => matches!(asked.kind, Kind::Blocked | Kind::Refused),
            Owner::Run(_) => false,
        };
        for (asked, _) in glance.questions.iter().filter(|(asked, _)| !told_elsewhere(asked)) {
            let colour = style::BUSY;
            let settle = words::question::settle(asked).join(", or: ");
            out.line(format!(
                "  {colour}{}{colour:#} {}{}: {}\n    {quiet}{}, {settle}{quiet:#}",
                asked.kind,
                words::question::number(asked.id),
                Some(inbox::about(asked))
                    .filter(|about| !about.is_empty())
                    .map(|about| format!(" {about}"))
                    .unwrap_or_default(),
                clean_line(&asked.subject, 200),
                time::relative(asked.asked_at, time::now()),
            ))?;
        }
        for ill in &glance.ill {
            let colour = style::BAD;
            out.line(format!("  {colour}not told{colour:#} {}", ill.line()))?;
        }
        for unconfirmed in &glance.unconfirmed {
            let name = &glance.row.name;
            out.line(format!(
                "  {bad}unconfirmed{bad:#} {}\n    {quiet}{}{quiet:#}",
                words::decision::shown(name, unconfirmed),
                words::decision::command(name, &unconfirmed.decision)
            ))?;
        }
        for entry in &glance.vault {
            let colour = style::BAD;
            out.line(format!(
                "  {colour}vault{colour:#} {} is {}: {}\n    {quiet}pointsman vault show {}{quiet:#}",
                entry.id(),
                entry.status.as_str(),
                words::vault::danger(entry.estimate),
                entry.id()
            ))?;
        }
    }
    Ok(())
}
