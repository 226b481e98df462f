use std::collections::BTreeMap;
use std::io::IsTerminal;

use clap::Args;
use pointsman_adapters::projection;
use pointsman_core::decision::Unconfirmed;
use pointsman_core::page::Look;
use pointsman_core::part::question::Ranked;
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

use super::context::{Context, Reached};
use super::failure::Failure;
use super::out::terminal_width;
use super::table::cut;
use super::{checkout, inbox, notify, service, style, task, time};
use crate::daemon;
use crate::identity;
use crate::page::Page;
use crate::project::Project;

/// More lines of one part are not shown.
const LINES: usize = 12;
/// The file that remembers when a person last looked.
const LOOK: &str = "last-look.json";

/// Show what needs you, what landed, what runs, what waits and why, and what it costs
///
/// The page covers all projects unless --project names one. It shows what landed since you last looked at the page in
/// a terminal.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman status\n  pointsman status --json | jq '.waiting[] | .waiting_for'"
)]
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
    page: Page,
    /// The rate limits of its account, as far as they were told.
    quota: Vec<Window>,
    /// Vault actions that wait for a person.
    vault: Vec<Entry>,
    /// Notifiers that do not work.
    ill: Vec<notify::BrokenNotifier>,
    /// Decisions that were made while no daemon ran.
    unconfirmed: Vec<Unconfirmed>,
    /// What people should know about its settings and its checkout.
    warnings: Vec<String>,
}

/// Everything that is shown.
struct Glance {
    daemon: Option<view::Daemon>,
    /// It runs, and does not answer.
    is_daemon_silent: bool,
    halted: Option<view::Halted>,
    projects: Vec<ProjectSummary>,
    /// Open questions, in the order of the inbox.
    questions: Vec<Ranked>,
    look: Look,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        // A configuration that is found here registers its project; a wrong one is told.
        let here = context.project_if_any()?;
        let glance = glance(context, here.as_ref())?;
        if context.out.is_json() {
            return context.out.value(&view_of(context, glance));
        }
        print(context, &glance)?;
        if std::io::stdout().is_terminal() {
            remember(context, glance.look);
        }
        Ok(())
    }
}

/// Everything at a glance, as a view.
pub(super) fn read(context: &Context) -> Result<view::Status, Failure> {
    Ok(view_of(context, glance(context, None)?))
}

/// All projects, or the one that is meant.
fn glance(context: &Context, here: Option<&Project>) -> Result<Glance, Failure> {
    let (daemon, is_daemon_silent) = match context.reach_daemon()? {
        Reached::Running(daemon) => (Some(daemon), false),
        Reached::Silent => (None, true),
        Reached::NotRunning => (None, false),
    };
    let mut glance = Glance {
        is_daemon_silent,
        daemon,
        halted: daemon::halt::in_force(&context.paths),
        projects: Vec::new(),
        questions: Vec::new(),
        look: Look::after(last_look(context), time::now()),
    };
    if let Some(store) = context.store()? {
        let meant = |row: &ProjectRow| {
            context.wanted.is_none() || here.is_some_and(|project| project.config.name == row.name)
        };
        let rows: Vec<ProjectRow> = store.projects()?.into_iter().filter(meant).collect();
        glance.questions = inbox::open(context, &store)?;
        glance.questions.retain(|ranked| rows.iter().any(|row| row.name == ranked.asked.source.project));
        for row in rows {
            let summary = summary(context, &store, row, &glance)?;
            glance.projects.push(summary);
        }
    }
    Ok(glance)
}

/// The last look of a person. A file that cannot be read is no look.
fn last_look(context: &Context) -> Option<Look> {
    let text = std::fs::read_to_string(context.paths.state().join(LOOK)).ok()?;
    serde_json::from_str(&text).ok()
}

/// Without it, the next look shows more than it must.
fn remember(context: &Context, look: Look) {
    if let Ok(text) = serde_json::to_vec(&look) {
        let _ = projection::write(context.paths.state(), &[], LOOK, &text);
    }
}

fn summary(
    context: &Context,
    store: &Store,
    row: ProjectRow,
    glance: &Glance,
) -> Result<ProjectSummary, Failure> {
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
    let mut vault = store.vault_entries(&row.name, VaultScope::Open)?;
    vault.retain(|entry| entry.question().is_some());
    let ill = notify::ill(store, &row.name)?;
    let mut quota = daemon::quota(store, &row.name)?;
    quota.retain(|window| window.resets_at > now);
    let unconfirmed = daemon::unconfirmed(store, &row.name)?;
    // A configuration that cannot be read is told elsewhere.
    let project = Project::load(&row.config_path).ok();
    let mut warnings = project.as_ref().map(|project| warnings(context, project)).unwrap_or_default();
    if !outside.is_empty() {
        warnings.push(words::sandbox::sessions_outside(&outside));
    }
    let config = project.as_ref().map(|project| &project.config);
    let asked: Vec<_> = glance.questions.iter().map(|ranked| ranked.asked.clone()).collect();
    let page = Page::read(store, &row.name, config, &asked, glance.halted.is_some(), glance.look.since, now)?;
    Ok(ProjectSummary {
        warnings,
        row,
        tasks,
        sessions,
        queued,
        stopped,
        attention,
        page,
        quota,
        vault,
        ill,
        unconfirmed,
    })
}

/// CI that is off, commits that no agent can see yet, and people that nobody tells.
fn warnings(context: &Context, project: &Project) -> Vec<String> {
    let mut warnings = Vec::new();
    if !project.config.ci.kind.tests_commits() {
        warnings.push(words::ci::off(&project.config));
    }
    // Without an answer from git there is nothing to say. The daemon runs no git in a person's checkout.
    if !context.route.is_inside() {
        warnings.extend(checkout::ahead(context, project).ok().flatten());
    }
    if !project.config.tells_anybody() {
        warnings.push(words::page::NOBODY_IS_TOLD.to_owned());
    }
    warnings
}

/// Whether nothing goes on without a person.
fn needs_a_person(task: &Task) -> bool {
    match task.state {
        State::Refused => !task.waits_for_issues(),
        State::Escalated | State::Blocked => true,
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

fn view_of(context: &Context, glance: Glance) -> view::Status {
    let project = |summary: &ProjectSummary| view::Project {
        name: summary.row.name.clone(),
        config_path: summary.row.config_path.clone(),
        checkout: summary.row.checkout.clone(),
        tasks: counts(&summary.tasks),
        sessions: summary.sessions,
        merge_queue: summary.queued,
        line_stopped: summary.stopped.as_ref().map(|stopped| stopped.reason.clone()),
        spent_today: summary.page.spent_today.into(),
        rate_limits: summary.quota.iter().map(view::RateLimit::from).collect(),
        warnings: summary.warnings.clone(),
    };
    let projects = &glance.projects;
    let attention = projects.iter().flat_map(|summary| &summary.attention);
    let unconfirmed = projects.iter().flat_map(|summary| {
        summary.unconfirmed.iter().map(|kept| view::Unconfirmed::new(&summary.row.name, kept))
    });
    let ill = projects.iter().flat_map(|summary| summary.ill.iter().map(|ill| ill.view(&summary.row.name)));
    view::Status {
        state_dir: context.paths.state().to_owned(),
        projects: projects.iter().map(project).collect(),
        needs_a_person: attention.map(|(task, spent)| TaskView::new(task, *spent)).collect(),
        vault: projects.iter().flat_map(|summary| &summary.vault).map(Action::from).collect(),
        questions: glance.questions.iter().map(inbox::shown).collect(),
        notifiers: ill.collect(),
        unconfirmed: unconfirmed.collect(),
        landed: projects.iter().flat_map(landed).collect(),
        landed_since: Some(glance.look.since.into()),
        running: projects.iter().flat_map(running).collect(),
        waiting: projects.iter().flat_map(waiting).collect(),
        daemon: glance.daemon,
        daemon_silent: glance.is_daemon_silent,
        halted: glance.halted,
    }
}

fn landed(summary: &ProjectSummary) -> Vec<view::Landed> {
    let view = |landing: &crate::page::Landing| view::Landed {
        project: summary.row.name.clone(),
        issue: landing.issue,
        pr: landing.pr,
        title: landing.title.clone(),
        at: landing.at.into(),
    };
    summary.page.landed.iter().map(view).collect()
}

fn pending(task: &Task, waiting_for: Option<String>) -> view::Pending {
    view::Pending {
        project: task.key.project.clone(),
        issue: task.key.issue,
        title: task.title.clone(),
        state: task.state,
        since: task.since.into(),
        waiting_for,
    }
}

fn running(summary: &ProjectSummary) -> Vec<view::Pending> {
    let waits = |task: &Task| words::task::waiting_for(task).map(|wait| words::page::waits_for(&wait));
    summary.page.running.iter().map(|task| pending(task, waits(task))).collect()
}

fn waiting(summary: &ProjectSummary) -> Vec<view::Pending> {
    let told = |task: &Task, wait| pending(task, Some(words::page::wait(task.key.issue, wait)));
    summary.page.waiting.iter().map(|(task, wait)| told(task, wait)).collect()
}

fn print(context: &Context, glance: &Glance) -> Result<(), Failure> {
    daemon_lines(context, glance)?;
    if glance.projects.is_empty() {
        return context
            .out
            .line("no project is registered; to create one, run `pointsman init` in a git repository");
    }
    let lines = Lines::new(context, glance);
    lines.needs_you(glance)?;
    lines.landed(glance)?;
    lines.running(glance)?;
    lines.waiting(glance)?;
    lines.cost(glance)?;
    for summary in &glance.projects {
        lines.project(summary)?;
    }
    Ok(())
}

fn daemon_lines(context: &Context, glance: &Glance) -> Result<(), Failure> {
    let (out, good, bad, quiet) = (context.out, style::GOOD, style::BAD, style::QUIET);
    match &glance.daemon {
        Some(status) => out.line(format!(
            "{good}daemon running{good:#}  {quiet}process {}, version {}, since {}{quiet:#}",
            status.pid,
            status.version,
            time::local(status.started_at.0)
        ))?,
        None if glance.is_daemon_silent => {
            let hint = words::daemon::process::wake_silent();
            out.line(format!("{bad}daemon does not answer{bad:#}  {quiet}{hint}{quiet:#}"))?
        }
        None => {
            out.line(format!("{bad}daemon not running{bad:#}  {quiet}start it: pointsman up{quiet:#}"))?
        }
    }
    if let Some(halted) = &glance.halted {
        let since = time::relative(halted.at.0, time::now());
        out.line(format!("{bad}halted{bad:#}  all work was halted {since}; to continue: pointsman resume"))?;
    }
    if let Some(notice) = glance.daemon.as_ref().and_then(|_| service::older_daemon(context)) {
        out.line(format!("{bad}notice{bad:#}  {notice}"))?;
    }
    for problem in glance.daemon.iter().flat_map(|status| &status.problems) {
        out.line(format!("{bad}problem{bad:#}  {}", clean_line(problem, 400)))?;
    }
    Ok(())
}

/// The lines of the page, cut to the terminal.
struct Lines<'c> {
    context: &'c Context,
    width: usize,
    /// Whether lines name their project.
    named: bool,
}

impl<'c> Lines<'c> {
    fn new(context: &'c Context, glance: &Glance) -> Self {
        let width = terminal_width().unwrap_or(usize::MAX);
        Self { context, width, named: glance.projects.len() > 1 }
    }

    fn heading(&self, title: &str, count: Option<usize>) -> Result<(), Failure> {
        let (strong, quiet) = (style::STRONG, style::QUIET);
        let count = count.map(|count| format!("  {quiet}{count}{quiet:#}")).unwrap_or_default();
        self.context.out.line(format!("\n{strong}{title}{strong:#}{count}"))
    }

    /// A line that begins with a coloured word.
    fn line(&self, word: &str, colour: anstyle::Style, rest: &str) -> Result<(), Failure> {
        let text = format!("  {word} {rest}");
        let text = cut(text.trim_end(), self.width);
        let coloured = match text.strip_prefix(&format!("  {word}")) {
            Some(rest) => format!("  {colour}{word}{colour:#}{rest}"),
            None => text.into_owned(),
        };
        self.context.out.line(coloured)
    }

    fn quiet(&self, text: &str) -> Result<(), Failure> {
        let quiet = style::QUIET;
        let indented = format!("    {text}");
        self.context.out.line(format!("{quiet}{}{quiet:#}", cut(&indented, self.width)))
    }

    /// Only so many, and how to see the rest.
    fn more(&self, count: usize, command: &str) -> Result<(), Failure> {
        match count.checked_sub(LINES) {
            None | Some(0) => Ok(()),
            Some(more) => self.quiet(&words::page::more(more, command)),
        }
    }

    fn of(&self, project: &str) -> String {
        if self.named { format!("{project} ") } else { String::new() }
    }

    fn needs_you(&self, glance: &Glance) -> Result<(), Failure> {
        let unconfirmed: Vec<_> = glance
            .projects
            .iter()
            .flat_map(|summary| summary.unconfirmed.iter().map(move |kept| (&summary.row.name, kept)))
            .collect();
        let count = glance.questions.len() + unconfirmed.len();
        if count == 0 {
            self.heading(words::page::NEEDS_YOU, None)?;
            return self.context.out.line(format!("  {}", words::page::NOTHING_NEEDS_YOU));
        }
        self.heading(words::page::NEEDS_YOU, Some(count))?;
        for Ranked { asked, held_up, lines } in glance.questions.iter().take(LINES) {
            let about = inbox::about(asked);
            let about = if about.is_empty() { about } else { format!(" {about}") };
            self.line(
                asked.kind.as_str(),
                inbox::colour(asked),
                &format!(
                    "{}{}{about}: {}",
                    self.of(asked.source.project.as_str()),
                    words::question::number(asked.id),
                    clean_line(&asked.subject, 200)
                ),
            )?;
            let mut facts = vec![time::relative(asked.asked_at, time::now())];
            facts.extend(lines.map(words::page::lines));
            facts.extend((*held_up > 0).then(|| format!("holds up {}", words::page::other_tasks(*held_up))));
            facts.extend(words::question::settle(asked).into_iter().next());
            self.quiet(&facts.join(", "))?;
        }
        self.more(glance.questions.len(), "pointsman inbox")?;
        for (project, unconfirmed) in unconfirmed {
            self.line("unconfirmed", style::BAD, &words::decision::shown(project, unconfirmed))?;
            // It is run as it stands, so nothing is cut off.
            let quiet = style::QUIET;
            let command = words::decision::command(project, &unconfirmed.decision);
            self.context.out.line(format!("    {quiet}{command}{quiet:#}"))?;
        }
        Ok(())
    }

    fn landed(&self, glance: &Glance) -> Result<(), Failure> {
        let mut landed: Vec<view::Landed> = glance.projects.iter().flat_map(landed).collect();
        if landed.is_empty() {
            return Ok(());
        }
        landed.sort_by_key(|landing| std::cmp::Reverse(landing.at));
        self.heading(words::page::LANDED, Some(landed.len()))?;
        for landing in landed.iter().take(LINES) {
            let issue = landing.issue.map(|issue| format!("#{issue} ")).unwrap_or_default();
            let pr = landing.pr.map(|pr| format!(", pull request {pr}")).unwrap_or_default();
            let since = time::relative(landing.at.0, time::now());
            let title = clean_line(&landing.title, 100);
            let rest = format!("{}{issue}{title}{pr}, {since}", self.of(landing.project.as_str()));
            self.line("landed", style::GOOD, &rest)?;
        }
        self.more(landed.len(), "pointsman merge-queue history")
    }

    fn running(&self, glance: &Glance) -> Result<(), Failure> {
        let running: Vec<view::Pending> = glance.projects.iter().flat_map(running).collect();
        self.tasks(words::page::RUNNING, &running)
    }

    fn waiting(&self, glance: &Glance) -> Result<(), Failure> {
        let waiting: Vec<view::Pending> = glance.projects.iter().flat_map(waiting).collect();
        self.tasks(words::page::WAITING, &waiting)
    }

    fn tasks(&self, heading: &str, tasks: &[view::Pending]) -> Result<(), Failure> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.heading(heading, Some(tasks.len()))?;
        for task in tasks.iter().take(LINES) {
            let rest = format!(
                "{}#{} {}, {}",
                self.of(task.project.as_str()),
                task.issue,
                clean_line(&task.title, 80),
                time::relative(task.since.0, time::now())
            );
            self.line(task.state.name(), style::of(task.state), &rest)?;
            if let Some(wait) = &task.waiting_for {
                self.quiet(&clean_line(wait, 200))?;
            }
        }
        self.more(tasks.len(), "pointsman task list")
    }

    fn cost(&self, glance: &Glance) -> Result<(), Failure> {
        let spent: Vec<(&str, String)> = glance
            .projects
            .iter()
            .filter_map(|summary| {
                let spent = budget::describe(summary.page.spent_today, Limit::default())?;
                Some((summary.row.name.as_str(), spent))
            })
            .collect();
        if spent.is_empty() {
            return Ok(());
        }
        self.heading(words::page::COST_TODAY, None)?;
        for (project, spent) in &spent {
            self.line(project, style::PLAIN, spent)?;
        }
        if spent.len() > 1 {
            let all = glance
                .projects
                .iter()
                .fold(Spent::default(), |sum, summary| sum.plus(summary.page.spent_today));
            let all = budget::describe(all, Limit::default()).unwrap_or_default();
            self.line("all", style::STRONG, &all)?;
        }
        Ok(())
    }

    fn project(&self, summary: &ProjectSummary) -> Result<(), Failure> {
        let (out, strong, bad, quiet) = (self.context.out, style::STRONG, style::BAD, style::QUIET);
        let counts = counts(&summary.tasks).into_iter().map(|(state, n)| {
            let colour = style::of(state);
            format!("{colour}{n} {state}{colour:#}")
        });
        let counts = counts.collect::<Vec<_>>().join(", ");
        out.line(format!(
            "\n{strong}{}{strong:#}  {quiet}{}{quiet:#}\n  tasks: {}\n  sessions: {}, in the merge queue: {}",
            summary.row.name,
            summary.row.checkout.display(),
            if counts.is_empty() { "none" } else { &counts },
            summary.sessions,
            summary.queued
        ))?;
        for warning in &summary.warnings {
            out.line(format!("  {bad}warning{bad:#}  {warning}"))?;
        }
        if let Some(Stopped { at, by, reason }) = &summary.stopped {
            let since = time::relative(*at, time::now());
            let next = match by {
                // What was found says itself what to do.
                StoppedBy::Audit | StoppedBy::Refusal => String::new(),
                StoppedBy::Person => "; to continue: pointsman merge-queue resume".to_owned(),
            };
            out.line(format!("  {bad}nothing lands{bad:#}: {}", clean_line(reason, 300)))?;
            self.quiet(&format!("{since}{next}"))?;
        }
        for window in &summary.quota {
            let until = time::local(window.resets_at);
            out.line(format!("  {}, until {until}", words::reason::rate_limit(window)))?;
        }
        for ill in &summary.ill {
            out.line(format!("  {bad}not told{bad:#} {}", ill.line()))?;
        }
        Ok(())
    }
}
