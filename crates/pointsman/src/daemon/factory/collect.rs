//! Reads what the rules of health look at. With a daemon or without: what only a daemon knows is left out then.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::containers::{self, PROGRAMS};
use pointsman_adapters::git::list_locks;
use pointsman_adapters::machine;
use pointsman_adapters::process::find_program;
use pointsman_core::config::{Config, NotifierKind};
use pointsman_core::dependencies;
use pointsman_core::forge::Issue;
use pointsman_core::health::{Facts, Leftovers, Machine, OpenIssue, SessionFact};
use pointsman_core::session::liveness::Probe;
use pointsman_core::task::{Stage, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{SessionScope, StoppedBy, Store};

use super::logs;
use crate::daemon::budget;
use crate::daemon::clock;
use crate::daemon::notifier::{LISTENER, health, health_name};
use crate::daemon::stage;
use crate::daemon::vault::trusted;
use crate::paths::Paths;
use crate::process_probe::ProcessProbe;

/// A lock that is younger may be somebody's who works.
const LOCK_AGE: Duration = Duration::from_secs(600);

/// The open issues, as the forge last told them.
#[derive(Clone, Debug)]
pub struct ForgeIssues {
    pub issues: Vec<Issue>,
    pub at: Timestamp,
}

/// The state of the forge as far as a daemon knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForgeKnowledge {
    /// What it said when it last answered.
    pub(crate) seen: Option<Arc<ForgeIssues>>,
    /// Since when it does not answer, if so.
    pub(crate) silent_since: Option<Timestamp>,
}

/// Looks at everything but the machine, which may take a while. Without a daemon nothing is known of the forge.
pub(crate) fn collect(
    machine: Machine,
    paths: &Paths,
    store: &Store,
    config: &Config,
    daemon: Option<&ForgeKnowledge>,
    now: Timestamp,
) -> Result<Facts, pointsman_store::Error> {
    let project = &config.name;
    let tasks = store.tasks(Some(project))?;
    let witness = ProcessProbe::new();
    let session = |row: pointsman_store::SessionRow| SessionFact {
        gone: witness.evidence(&row, None).process == Probe::Gone,
        session: row.session,
        issue: row.issue,
        last_seen: row.last_seen,
    };
    let sessions = store.sessions(Some(project), SessionScope::Live)?.into_iter().map(session).collect();
    let mut ill_notifiers = Vec::new();
    let notifiers = config.notify.to.iter().filter(|kind| **kind != NotifierKind::Log);
    for part in notifiers.map(|kind| health_name(*kind)).chain([LISTENER.to_owned()]) {
        if health(store, project, &part)?.is_some() {
            ill_notifiers.push(part);
        }
    }
    let stopped = store.queue_state(project)?.stopped.filter(|stopped| match stopped.by {
        StoppedBy::Audit | StoppedBy::Refusal => true,
        StoppedBy::Person => false,
    });
    let seen = daemon.and_then(|known| known.seen.as_ref());
    Ok(Facts {
        machine,
        daemon: daemon.is_some(),
        sessions,
        issues: seen.map(|seen| seen.issues.iter().map(open_issue).collect()),
        forge_silent_since: daemon.and_then(|known| known.silent_since),
        held_back: budget::used_up_today(store, config, Task::ROLE, now)?,
        line_stopped: stopped.map(|stopped| stopped.reason),
        ill_notifiers,
        leftovers: leftovers(paths, config, &tasks, now),
        log_errors: logs::errors(paths, now),
        tasks,
    })
}

/// The machine with its containers; `path` is where a program that knows them is looked for.
pub(crate) fn whole_machine(paths: &Paths, config: &Config, path: Option<&OsStr>) -> Machine {
    let mut machine = machine(paths, config);
    machine.unhealthy_containers = ill_containers(paths, path).or(match machine.containers {
        Some(0) => Some(Vec::new()),
        Some(_) | None => None,
    });
    machine
}

fn ill_containers(paths: &Paths, path: Option<&OsStr>) -> Option<Vec<String>> {
    let found = PROGRAMS.iter().filter_map(|name| find_program(name, path, Path::new("/")));
    let mut ours = found.filter(|program| program.is_absolute() && trusted(program, paths.state()).is_ok());
    let program = ours.next()?;
    match containers::unhealthy(&program) {
        Ok(names) => Some(names),
        Err(why) => {
            tracing::debug!(program = %program.display(), why, "how containers are is not known");
            None
        }
    }
}

/// The machine, and the disks where our files lie.
pub(super) fn machine(paths: &Paths, config: &Config) -> Machine {
    stage::machine(machine::look(&[paths.state(), &config.dev.phase_dir]))
}

fn open_issue(issue: &Issue) -> OpenIssue {
    let dependencies = dependencies::parse(&issue.body).into_iter().collect();
    OpenIssue { number: issue.number, created_at: issue.created_at, dependencies }
}

fn leftovers(paths: &Paths, config: &Config, tasks: &[Task], now: Timestamp) -> Leftovers {
    let project = paths.project(&config.name);
    let keep = config.health.keep.duration();
    let locks = [project.mirror(), project.captures(), project.forge_repository()]
        .iter()
        .flat_map(|repository| list_locks(repository).unwrap_or_default())
        .filter(|lock| is_older(lock, LOCK_AGE, now))
        .map(|lock| lock.to_string_lossy().into_owned())
        .collect();
    let over = |task: &&Task| {
        task.state == State::Closed
            && task.session.stage == Stage::None
            && now.since(task.since) > keep
            && project.sandbox(&task.key.clone().into()).join("tree").exists()
    };
    Leftovers {
        locks,
        trees: tasks.iter().filter(over).map(|task| task.key.issue).collect(),
        old_logs: u64::try_from(old_logs(&project.logs(), keep, now).len()).unwrap_or(u64::MAX),
    }
}

/// Logs that are older than they are kept.
pub(super) fn old_logs(dir: &Path, keep: Duration, now: Timestamp) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut logs: Vec<_> = entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log") && is_older(path, keep, now))
        .collect();
    logs.sort();
    logs
}

fn is_older(path: &Path, age: Duration, now: Timestamp) -> bool {
    path.symlink_metadata().is_ok_and(|file| now.since(clock::written(&file)) > age)
}
