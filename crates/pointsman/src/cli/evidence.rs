//! Evidence for a decision about a pull request: `forge pr diff`, `forge pr checks`, and `ci logs` of a local CI.
//!
//! Everything is read from here: the forge is asked for the pull request, the repositories and logs of the state
//! directory have the rest. All of it is outside text.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::artifacts::Place;
use pointsman_adapters::forge::ServerForge;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::{BranchName, Git};
use pointsman_core::artifact::Origin;
use pointsman_core::config::{Config, ForgeHome};
use pointsman_core::forge;
use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::review::{self, GateRun, ReceiptLine, SetupRun, Verified};
use pointsman_core::task::{CiVerdict, Task};
use pointsman_core::text::{clean_block, clean_line};
use pointsman_core::time::Timestamp;
use pointsman_core::verdict::of_checks;
use pointsman_core::words;
use pointsman_store::{EntryScope, EntryStatus, EventFilter, Store};
use pointsman_view::evidence::{Artifacts, Check, CheckStatus, CiLog, Diff, Risk};
use pointsman_view::forge as view;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{rounds, style};
use crate::control::protocol::{ForgeCommand, Request};
use crate::daemon::{self, CHECK};
use crate::project::Project;

/// The most of a diff that is shown; its middle is left out beyond that.
pub(super) const DIFF_BYTES: usize = 16 << 20;
/// The most of a log that is read: its end.
const LOG_BYTES: u64 = 16 << 20;
/// The end of a log, where it is one field among others.
const TAIL_BYTES: u64 = 32 << 10;
/// How many events of CI are looked through, the newest.
const EVENTS: u32 = 1_000;

/// CI has begun, and has an answer.
const STARTED: &str = "checks_started";
const FINISHED: &str = "checks_finished";

/// Where pull requests and their commits are.
pub(super) struct Source<'c> {
    context: &'c Context,
    project: Project,
    /// The project's forge on a server, once it was asked for. It needs a token, and a log of our own CI does not.
    server: OnceCell<Arc<dyn ServerForge>>,
}

/// A pull request, as far as evidence about it goes.
pub(super) struct Pull {
    number: Number,
    pub(super) base: String,
    head: Option<Sha>,
    merged: bool,
}

/// One run of the project's CI, as the log of events has it.
struct CiRun {
    run: u32,
    sha: Sha,
    started_at: Option<Timestamp>,
    status: CheckStatus,
    took: Option<Duration>,
}

/// The data of the event that CI has begun.
#[derive(Deserialize)]
struct Started {
    sha: Sha,
}

/// The data of the event that CI has an answer.
#[derive(Deserialize)]
struct Finished {
    sha: Sha,
    run: u32,
    verdict: CiVerdict,
}

/// The diff of a pull request, or the counts of its lines.
pub(crate) fn read_diff(context: &Context, number: Number, stat: bool) -> Result<Diff, Failure> {
    let source = Source::of(context)?;
    let pull = source.pull(number)?;
    let repository = source.repository()?;
    let (base_sha, head_sha) = source.ends(&pull, &repository)?;
    let read = || -> anyhow::Result<String> {
        Ok(match stat {
            true => repository.diff_stat(&base_sha, &head_sha)?,
            false => repository.diff(&base_sha, &head_sha, DIFF_BYTES)?,
        })
    };
    let text = read()?;
    let (stat, diff) = if stat { (Some(text), None) } else { (None, Some(text)) };
    Ok(Diff { number, base: pull.base, base_sha, head_sha, diff, stat, since_sha: None })
}

/// `forge pr diff`.
pub(crate) fn diff(context: &Context, number: Number, stat: bool, since: bool) -> Result<(), Failure> {
    let project = context.project()?.config.name;
    let last = rounds::last_look(context, &project, number).filter(|_| since);
    let read = match since {
        true => rounds::read_since(context, number, last.as_ref())?,
        false => read_diff(context, number, stat)?,
    };
    if context.out.is_json() {
        return context.out.value(&read);
    }
    if !stat {
        rounds::remember(context, &project, number, &read.head_sha);
    }
    match &read.since_sha {
        Some(sha) if *sha == read.head_sha => {
            context.out.say(words::screen::nothing_since(sha));
            return Ok(());
        }
        sha if since => context.out.say(words::screen::since(sha.as_ref())),
        Some(_) | None => {}
    }
    let text = read.diff.or(read.stat).unwrap_or_default();
    match text.trim_end_matches('\n') {
        "" => {
            context.out.say(format!("Pull request #{number} changes nothing."));
            Ok(())
        }
        text => context.out.line(clean_block(text, DIFF_BYTES)),
    }
}

/// The receipt of a task's contribution, as the store has it.
pub(crate) fn receipt_of(store: &Store, config: &Config, task: &Task) -> Result<Vec<ReceiptLine>, Failure> {
    let part = &task.contribution;
    let entries = store.queue_entries(&task.key.project, EntryScope::All)?;
    let of_head = entries.iter().rev().find(|entry| Some(&entry.head) == part.head());
    let gate = of_head.map(|entry| {
        let result = match entry.status {
            EntryStatus::Landed => Verified::Passed,
            EntryStatus::Red => Verified::Failed,
            EntryStatus::Testing => Verified::Running,
            EntryStatus::Queued
            | EntryStatus::Building
            | EntryStatus::Conflict
            | EntryStatus::Stale
            | EntryStatus::Removed => Verified::Unverified,
        };
        GateRun { candidate: entry.candidate.clone(), result }
    });
    let setup = match (task.setup_failures, task.session.generation) {
        (1.., _) => SetupRun::Failed,
        (0, 1..) => SetupRun::Passed,
        (0, 0) => SetupRun::None,
    };
    Ok(review::receipt(part, config, setup, gate.as_ref()))
}

/// The risk of a pull request, if it is that of a task and the risk decides who looks at it.
pub(crate) fn risk(context: &Context, number: Number) -> Result<Option<Risk>, Failure> {
    let Some(store) = context.store()? else { return Ok(None) };
    let source = Source::of(context)?;
    let tasks = store.tasks(Some(&source.project.config.name))?;
    let task = tasks.iter().find(|task| task.contribution.pr() == Some(number));
    Ok(task.and_then(|task| Risk::of(&task.contribution, &source.project.config)))
}

/// The receipt of a pull request; empty if it is not that of a task.
pub(crate) fn receipt(context: &Context, number: Number) -> Result<Vec<ReceiptLine>, Failure> {
    let Some(store) = context.store()? else { return Ok(Vec::new()) };
    let source = Source::of(context)?;
    let task = store.tasks(Some(&source.project.config.name))?;
    match task.iter().find(|task| task.contribution.pr() == Some(number)) {
        Some(task) => receipt_of(&store, &source.project.config, task),
        None => Ok(Vec::new()),
    }
}

/// The artifacts of a task's pull request, or of one that no task is about.
pub(crate) fn artifacts_of(
    context: &Context,
    project: &ProjectName,
    issue: Option<Number>,
    pr: Option<Number>,
) -> Artifacts {
    let root = context.paths.project(project).artifacts();
    let place = Place { root, key: daemon::artifacts_of(issue, pr) };
    let mut found = Artifacts::default();
    for origin in Origin::ALL {
        if let Some((manifest, dir)) = place.read(origin) {
            found.add(origin, &manifest, &dir);
        }
    }
    found
}

/// The artifacts of a pull request.
pub(crate) fn artifacts(context: &Context, number: Number) -> Result<Artifacts, Failure> {
    let Some(store) = context.store()? else { return Ok(Artifacts::default()) };
    let source = Source::of(context)?;
    let project = &source.project.config.name;
    let tasks = store.tasks(Some(project))?;
    let task = tasks.iter().find(|task| task.contribution.pr() == Some(number));
    Ok(artifacts_of(context, project, task.map(|task| task.key.issue), Some(number)))
}

/// `forge pr checks`.
pub(crate) fn checks(context: &Context, number: Number) -> Result<(), Failure> {
    let source = Source::of(context)?;
    let pull = source.pull(number)?;
    let Some(sha) = &pull.head else {
        return Err(Failure::not_found(format!("pull request #{number} has no head: its branch is gone")));
    };
    let store = context.store()?;
    let task = store.as_ref().map(|store| source.task(store, number)).transpose()?.flatten();
    let mut found = Vec::new();
    for check in source.checks(sha)? {
        let local = match (check.name == CHECK && source.runs_ci(), &store) {
            (true, Some(store)) => source.local(store, task.as_ref(), &pull, sha)?,
            (true, None) | (false, _) => None,
        };
        let (status, took, log) = match local {
            // The forge knows red and green only; we know whose fault it is.
            Some((run, log)) => (run.status, run.took, log),
            None => (check.state.into(), None, None),
        };
        let log = log.map(|log| context.masked(&source.project.config, &log));
        let seconds = took.map(|took| took.as_secs_f64());
        found.push(Check { name: check.name, sha: sha.clone(), status, seconds, log });
    }
    if context.out.is_json() {
        return context.out.value(&found);
    }
    let mut table = Table::new(["CHECK", "STATUS", "SECONDS", "COMMIT"]);
    for check in &found {
        table.row([
            clean_line(&check.name, 80).into(),
            Cell::styled(check.status.name(), colour(check.status)),
            check.seconds.map(|seconds| format!("{seconds:.1}")).unwrap_or_default().into(),
            check.sha.short().into(),
        ]);
    }
    context.out.table(&table, "The head of this pull request has no checks yet.")
}

/// The log of CI on an issue's task or on a pull request: of the command that ran here, or what an outside CI says of each check.
pub(crate) fn read_ci_log(context: &Context, number: Number, run: Option<u32>) -> Result<CiLog, Failure> {
    let source = Source::of(context)?;
    if source.project.config.ci.kind.runs_outside() {
        return source.outside_log(number);
    }
    let missing = || {
        Failure::not_found(format!("there is no CI log for #{number}")).hint(
            "`pointsman task list` shows the tasks and `pointsman forge pr list` the pull requests; old logs are \
                removed after health.keep",
        )
    };
    let store = context.store()?.ok_or_else(missing)?;
    let log = match source.task(&store, number)? {
        Some(task) => source.log_of_task(&store, &task, run)?,
        // Its runs are not numbered.
        None if run.is_some() => return Err(Failure::not_found(words::access::no_numbered_runs(number))),
        None => source.log_of_pull(&store, number)?,
    };
    let mut log = log.ok_or_else(missing)?;
    log.log = context.masked(&source.project.config, &log.log);
    Ok(log)
}

/// `ci logs` where the CI is a command that runs here, or is asked at the forge.
pub(crate) fn ci_logs(context: &Context, number: Number, run: Option<u32>) -> Result<(), Failure> {
    let log = read_ci_log(context, number, run)?;
    if context.out.is_json() {
        return context.out.value(&log);
    }
    context.out.say(headline(&log));
    context.out.line(clean_block(log.log.trim_end(), usize::try_from(LOG_BYTES).unwrap_or(usize::MAX)))
}

/// The number of lines that the head of a task's branch changes; none if its commits are not here.
pub(crate) fn changed_lines(context: &Context, project: &Project, task: &Task) -> Option<u64> {
    let head = task.contribution.head()?;
    let source = Source { context, project: project.clone(), server: OnceCell::new() };
    let repository = source.repository().ok()?;
    let main = source.main(&repository, &project.config.primary_branch).ok()??;
    repository.changed_lines(&main, head).ok()
}

/// The log in one line: which run of which commit, and what it said.
pub(crate) fn headline(log: &CiLog) -> String {
    let run = log.run.map(|run| format!(" run {run}")).unwrap_or_default();
    let sha = log.sha.as_ref().map(|sha| format!(" of {}", sha.short())).unwrap_or_default();
    let status = log.status.map(|status| format!(": {}", status.name())).unwrap_or_default();
    let took = log.seconds.map(|seconds| format!(" after {seconds:.1} s")).unwrap_or_default();
    format!("CI{run}{sha}{status}{took}")
}

impl<'c> Source<'c> {
    pub(super) fn of(context: &'c Context) -> Result<Self, Failure> {
        Ok(Self { context, project: context.project()?, server: OnceCell::new() })
    }

    /// The project's forge, if it is on a server; none if it is the embedded one.
    fn server(&self) -> Result<Option<Arc<dyn ServerForge>>, Failure> {
        let config = &self.project.config;
        match config.forge.kind.capabilities().home {
            ForgeHome::Embedded => Ok(None),
            ForgeHome::Repository => Err(Failure::refused(words::access::no_forge(config.name.as_str()))),
            ForgeHome::Server => {
                if self.server.get().is_none()
                    && let Some(server) = self.context.on_server(config)?
                {
                    let _ = self.server.set(server);
                }
                Ok(self.server.get().cloned())
            }
        }
    }

    fn is_embedded(&self) -> bool {
        self.project.config.forge.kind.is_embedded()
    }

    fn ask<V: DeserializeOwned>(&self, command: ForgeCommand) -> Result<V, Failure> {
        self.context.ask(&Request::Forge { project: self.project.config.name.clone(), command })
    }

    pub(super) fn pull(&self, number: Number) -> Result<Pull, Failure> {
        let Some(server) = self.server()? else {
            let pr: view::PullRequest = self.ask(ForgeCommand::ShowPull { number })?;
            return Ok(Pull { number, base: pr.base, head: pr.head_sha, merged: pr.merged });
        };
        let missing = || Failure::not_found(format!("there is no pull request #{number}"));
        let pr = server.pull_request(number).map_err(anyhow::Error::from)?.ok_or_else(missing)?;
        Ok(Pull { number, base: pr.base, head: pr.head_sha, merged: pr.merged })
    }

    fn checks(&self, sha: &Sha) -> Result<Vec<view::Check>, Failure> {
        let Some(server) = self.server()? else {
            let checks: view::Checks = self.ask(ForgeCommand::ListChecks { sha: sha.clone() })?;
            return Ok(checks.checks);
        };
        let checks = server.checks(sha).map_err(anyhow::Error::from)?;
        Ok(checks.into_iter().map(view::Check::from).collect())
    }

    /// A repository with the commits: that of the embedded forge, else the daemon's mirror of the server's. The remote
    /// is not asked.
    pub(super) fn repository(&self) -> Result<Mirror, Failure> {
        let paths = self.context.paths.project(&self.project.config.name);
        let dir = if self.is_embedded() { paths.forge_repository() } else { paths.mirror() };
        if !dir.is_dir() {
            return Err(Failure::not_found("nothing was fetched yet").hint("pointsman up"));
        }
        let open = || -> anyhow::Result<Mirror> {
            let git = Git::open(self.context.paths.state())?;
            let remote = dir.to_str().ok_or_else(|| anyhow::anyhow!("{} is not UTF-8", dir.display()))?;
            Ok(Mirror::open_or_create(&git, &dir, remote)?)
        };
        Ok(open()?)
    }

    /// The commits between which a pull request lies. One that landed through the merge queue is what landed: its head
    /// is on the base by now, or was rebased.
    pub(super) fn ends(&self, pull: &Pull, repository: &Mirror) -> Result<(Sha, Sha), Failure> {
        if pull.merged
            && let Some(store) = self.context.store()?
        {
            let entries = store.queue_entries(&self.project.config.name, EntryScope::All)?;
            let landed = entries
                .into_iter()
                .rev()
                .find(|entry| entry.pr == Some(pull.number) && entry.status == EntryStatus::Landed);
            if let Some((base, candidate)) = landed.and_then(|entry| entry.base.zip(entry.candidate)) {
                return Ok((base, candidate));
            }
        }
        let number = pull.number;
        let Some(head) = pull.head.clone() else {
            return Err(Failure::not_found(format!(
                "pull request #{number} has no head: its branch is gone"
            )));
        };
        let read = || -> anyhow::Result<Option<Sha>> {
            match self.main(repository, &pull.base)? {
                Some(main) if repository.commit_exists(&head)? => Ok(repository.merge_base(&main, &head)?),
                Some(_) | None => Ok(None),
            }
        };
        match read()? {
            Some(base) => Ok((base, head)),
            None => Err(Failure::not_found(format!("the commits of pull request #{number} are not here"))
                .hint("the daemon fetches them; run `pointsman up`")),
        }
    }

    /// The head of a branch that pull requests are made against.
    fn main(&self, repository: &Mirror, branch: &str) -> anyhow::Result<Option<Sha>> {
        let Some(branch) = BranchName::new(branch) else { return Ok(None) };
        Ok(match self.is_embedded() {
            true => repository.read_ref(&branch.full())?,
            false => repository.remote_head(&branch)?,
        })
    }

    /// The task that a number is the issue or the pull request of.
    fn task(&self, store: &Store, number: Number) -> Result<Option<Task>, Failure> {
        let tasks = store.tasks(Some(&self.project.config.name))?;
        let of_issue = tasks.iter().find(|task| task.key.issue == number);
        Ok(of_issue.or_else(|| tasks.iter().find(|task| task.contribution.pr() == Some(number))).cloned())
    }

    /// Whether the CI is a command that the daemon runs.
    fn runs_ci(&self) -> bool {
        self.project.config.ci.kind.runs_here()
    }

    /// The newest run of our own CI on a commit, with the end of its log.
    fn local(
        &self,
        store: &Store,
        task: Option<&Task>,
        pull: &Pull,
        sha: &Sha,
    ) -> Result<Option<(CiRun, Option<String>)>, Failure> {
        let paths = self.context.paths.project(&self.project.config.name);
        let Some(task) = task else {
            let path = daemon::ci_log_of_pull(&paths, &self.project.config.name, pull.number, sha);
            let run = self.verdict(store, sha)?;
            return run.map(|run| Ok((run, read_end(&path, TAIL_BYTES)?))).transpose();
        };
        let run = runs(store, task)?.into_iter().rev().find(|run| run.sha == *sha);
        let tail = |run: &CiRun| read_end(&daemon::ci_log(&paths, &task.key, run.run), TAIL_BYTES);
        run.map(|run| tail(&run).map(|log| (run, log))).transpose()
    }

    /// What our CI said about the files of a commit that belongs to no task.
    fn verdict(&self, store: &Store, sha: &Sha) -> Result<Option<CiRun>, Failure> {
        let Some(command) = &self.project.config.ci.command else { return Ok(None) };
        let tree = self.repository()?.tree_of(sha).map_err(anyhow::Error::from)?;
        let row = daemon::ci_verdict(store, &self.project.config.name, &tree, command)?;
        Ok(row.map(|(verdict, took)| CiRun {
            run: 0,
            sha: sha.clone(),
            started_at: None,
            status: CheckStatus::from(&verdict),
            took,
        }))
    }

    fn log_of_task(&self, store: &Store, task: &Task, run: Option<u32>) -> Result<Option<CiLog>, Failure> {
        let paths = self.context.paths.project(&self.project.config.name);
        let number = run.unwrap_or(task.contribution.ci_run);
        let Some(log) = read_end(&daemon::ci_log(&paths, &task.key, number), LOG_BYTES)? else {
            return Ok(None);
        };
        let known = runs(store, task)?.into_iter().find(|run| run.run == number);
        Ok(Some(CiLog {
            run: Some(number),
            sha: known.as_ref().map(|run| run.sha.clone()),
            status: known.as_ref().map(|run| run.status),
            started_at: known.as_ref().and_then(|run| run.started_at).map(Into::into),
            seconds: known.as_ref().and_then(|run| run.took).map(|took| took.as_secs_f64()),
            log,
        }))
    }

    /// What the forge says of each check of the head, with the place where it says more. It keeps the logs itself.
    fn outside_log(&self, number: Number) -> Result<CiLog, Failure> {
        let task = match self.context.store()? {
            Some(store) => self.task(&store, number)?,
            None => None,
        };
        let head = match &task {
            Some(task) => task.contribution.head().cloned(),
            None => self.pull(number)?.head,
        };
        let sha = head.ok_or_else(|| {
            Failure::not_found(format!("#{number} has no commit on the forge, so there is no CI log"))
        })?;
        let known: Vec<forge::Check> = match self.server()? {
            Some(server) => server.checks(&sha).map_err(anyhow::Error::from)?,
            None => {
                let plain = |check: view::Check| forge::Check {
                    name: check.name,
                    state: check.state,
                    details: String::new(),
                };
                self.checks(&sha)?.into_iter().map(plain).collect()
            }
        };
        let status = of_checks(&known, &self.project.config.ci.required);
        let status = status.map_or(CheckStatus::Pending, |verdict| CheckStatus::from(&verdict));
        let end = task.as_ref().map(|task| task.contribution.log_end()).unwrap_or_default();
        Ok(CiLog {
            run: None,
            sha: Some(sha),
            status: Some(status),
            started_at: None,
            seconds: None,
            log: words::ci::outside_log(&known, end),
        })
    }

    /// The log of a pull request that no task is about: a person's.
    fn log_of_pull(&self, store: &Store, number: Number) -> Result<Option<CiLog>, Failure> {
        let paths = self.context.paths.project(&self.project.config.name);
        let Some(sha) = self.pull(number)?.head else { return Ok(None) };
        let path = daemon::ci_log_of_pull(&paths, &self.project.config.name, number, &sha);
        let Some(log) = read_end(&path, LOG_BYTES)? else { return Ok(None) };
        let known = self.verdict(store, &sha)?;
        Ok(Some(CiLog {
            run: None,
            sha: Some(sha),
            status: known.as_ref().map(|run| run.status),
            started_at: None,
            seconds: known.and_then(|run| run.took).map(|took| took.as_secs_f64()),
            log,
        }))
    }
}

/// The runs of a task's CI, oldest first. One that is under way has no answer yet.
fn runs(store: &Store, task: &Task) -> Result<Vec<CiRun>, Failure> {
    let events = store.events(&EventFilter {
        project: Some(task.key.project.clone()),
        issue: Some(task.key.issue),
        kinds: [STARTED, FINISHED].map(str::to_owned).to_vec(),
        limit: EVENTS,
        latest: true,
        ..EventFilter::default()
    })?;
    let mut started: Option<(Sha, Timestamp)> = None;
    let mut runs = Vec::new();
    for event in events {
        if event.kind == STARTED
            && let Ok(Started { sha }) = Started::deserialize(&event.data)
        {
            started = Some((sha, event.at));
        } else if let Ok(Finished { sha, run, verdict }) = Finished::deserialize(&event.data) {
            let began = started.take().filter(|(begun, _)| *begun == sha).map(|(_, at)| at);
            let took = began.map(|began| event.at.since(began));
            runs.push(CiRun { run, sha, started_at: began, status: CheckStatus::from(&verdict), took });
        }
    }
    if let Some((sha, run)) = task.contribution.pending() {
        let began = started.filter(|(begun, _)| begun == sha).map(|(_, at)| at);
        let status = CheckStatus::Pending;
        runs.push(CiRun { run, sha: sha.clone(), started_at: began, status, took: None });
    }
    Ok(runs)
}

/// The end of a log of ours; none if there is no such file.
fn read_end(path: &Path, limit: u64) -> Result<Option<String>, Failure> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(limit)))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

fn colour(status: CheckStatus) -> anstyle::Style {
    match status {
        CheckStatus::Pending => style::BUSY,
        CheckStatus::Passed => style::GOOD,
        CheckStatus::Failed | CheckStatus::Infra | CheckStatus::TimedOut => style::BAD,
    }
}
