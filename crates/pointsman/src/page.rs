//! The page that a person reads first, read from the store: for `status`, and for the digest of the day.

use std::collections::BTreeSet;

use pointsman_core::config::Config;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::page::{self, Circumstances, Section, Wait};
use pointsman_core::part::question::{Question, Ranked, order};
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{self, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{EntryStatus, QueueEntry, Store};

use crate::daemon;

/// As many ends of entries of the merge queue are looked through.
const LANDINGS: u32 = 500;

/// One project's part of the page, without what needs a person.
pub(crate) struct Page {
    pub(crate) landed: Vec<Landing>,
    pub(crate) running: Vec<Task>,
    pub(crate) waiting: Vec<(Task, Wait)>,
    pub(crate) spent_today: Spent,
}

/// A change that reached the main branch.
pub(crate) struct Landing {
    pub(crate) issue: Option<Number>,
    pub(crate) pr: Option<Number>,
    /// The title of its issue, else its branch.
    pub(crate) title: String,
    pub(crate) at: Timestamp,
}

/// Puts questions into the order of the inbox. `size` counts the lines that one is about.
pub(crate) fn rank<'c>(
    questions: Vec<Question>,
    tasks: &[Task],
    config: impl Fn(&ProjectName) -> Option<&'c Config>,
    size: impl Fn(&Question) -> Option<u64>,
) -> Vec<Ranked> {
    let ranked = |asked: Question| {
        let concurrency = config(&asked.source.project).map_or(usize::MAX, concurrency);
        Ranked { held_up: task::held_up(&asked, tasks, concurrency), lines: size(&asked), asked }
    };
    let mut ranked: Vec<Ranked> = questions.into_iter().map(ranked).collect();
    order(&mut ranked);
    ranked
}

fn concurrency(config: &Config) -> usize {
    usize::try_from(config.dev.concurrency).unwrap_or(usize::MAX)
}

impl Page {
    /// The page of a project, with what landed since then. `questions` are those that are open. Without a configuration, nobody
    /// knows under which circumstances its tasks wait.
    pub(crate) fn read(
        store: &Store,
        project: &ProjectName,
        config: Option<&Config>,
        questions: &[Question],
        halted: bool,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<Self, pointsman_store::Error> {
        let tasks = store.tasks(Some(project))?;
        let used_up = match config {
            Some(config) => daemon::used_up_today(store, config, Task::ROLE, now)?,
            None => None,
        };
        let around = Circumstances {
            concurrency: config.map_or(usize::MAX, concurrency),
            halted,
            dev_disabled: config.is_some_and(|config| !config.roles.dev.enabled),
            queue_paused: store.queue_state(project)?.stopped.is_some(),
            used_up,
        };
        let asked_about: BTreeSet<Number> = questions
            .iter()
            .filter(|asked| asked.source.project == *project)
            .filter_map(|asked| asked.source.issue)
            .collect();
        let (mut running, mut waiting) = (Vec::new(), Vec::new());
        for task in &tasks {
            match page::section(task, &tasks, &around, asked_about.contains(&task.key.issue)) {
                Section::NeedsYou | Section::NotShown => {}
                Section::Runs => running.push(task.clone()),
                Section::Waits(wait) => waiting.push((task.clone(), wait)),
            }
        }
        Ok(Self {
            landed: landed(store, project, &tasks, since)?,
            running,
            waiting,
            spent_today: store.spent_on_day(Some(project), &daemon::clock::day(now), now)?,
        })
    }
}

/// Everything that landed since then, oldest first: by the merge queue, or merged by people.
fn landed(
    store: &Store,
    project: &ProjectName,
    tasks: &[Task],
    since: Timestamp,
) -> Result<Vec<Landing>, pointsman_store::Error> {
    let entries = store.decided_entries(project, LANDINGS)?;
    let entries: Vec<QueueEntry> =
        entries.into_iter().filter(|entry| entry.status == EntryStatus::Landed).collect();
    let title = |issue: Option<Number>| {
        tasks.iter().find(|task| Some(task.key.issue) == issue).map(|task| task.title.clone())
    };
    let of_queue = entries.iter().filter_map(|entry| {
        Some(Landing {
            issue: entry.issue,
            pr: entry.pr,
            title: title(entry.issue).unwrap_or_else(|| entry.branch.clone()),
            at: entry.landed_at?,
        })
    });
    let queued = |task: &&Task| entries.iter().any(|entry| entry.issue == Some(task.key.issue));
    let by_people = tasks.iter().filter(|task| task.contribution.merged_as().is_some() && !queued(task));
    let of_people = by_people.map(|task| Landing {
        issue: Some(task.key.issue),
        pr: task.contribution.pr(),
        title: task.title.clone(),
        at: task.since,
    });
    let mut landed: Vec<Landing> = of_queue.chain(of_people).filter(|landing| landing.at >= since).collect();
    landed.sort_by_key(|landing| landing.at);
    Ok(landed)
}
