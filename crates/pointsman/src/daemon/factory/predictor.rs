//! The predictor: counts what happened in the last two weeks. What the figures foretell is filed by its memory. No model is
//! asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::config::Config;
use pointsman_core::forge::Issue;
use pointsman_core::gardener;
use pointsman_core::ids::{ProjectName, RoleKey};
use pointsman_core::log;
use pointsman_core::predictor::{Counts, Figures, Memory, Prediction, Sample, issue_name, predict};
use pointsman_core::role::Role;
use pointsman_core::role_memory::Event;
use pointsman_core::task::{CiVerdict, Event as TaskEvent, State};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{EventFilter, Store};

use super::watch::Watch;
use super::{collect, is_due};
use crate::daemon::engine::Input;
use crate::daemon::served::Served;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Predictor;
/// Its formula, whose times it uses.
pub(super) const FORMULA: &str = ROLE.formula();
/// The name under which it is remembered.
const NAME: &str = ROLE.as_str();
const WEEK: i64 = 7 * 86_400_000;

/// Reads what the predictor remembers of a project.
pub fn memory(store: &Store, project: &ProjectName) -> Result<Memory, pointsman_store::Error> {
    Ok(store.memory(project, NAME)?.unwrap_or_default())
}

/// Figures of the last two weeks, from the log and the issues.
pub fn figures(
    store: &Store,
    config: &Config,
    issues: &[Issue],
    now: Timestamp,
) -> Result<Figures, pointsman_store::Error> {
    let (this, last) = (Timestamp(now.0 - WEEK), Timestamp(now.0 - 2 * WEEK));
    let mut figures = Figures::default();
    let mut filter = EventFilter {
        since: store.seq_before(last)?,
        project: Some(config.name.clone()),
        kinds: vec!["checks_finished".to_owned(), "AGENT_CRASHED".to_owned()],
        limit: 1_000,
        ..EventFilter::default()
    };
    loop {
        let page = store.events(&filter)?;
        let Some(newest) = page.last() else { break };
        filter.since = newest.seq;
        for event in page.iter().filter(|event| event.at >= last && event.at <= now) {
            let counts = if event.at >= this { &mut figures.week } else { &mut figures.before };
            if event.kind == "AGENT_CRASHED" {
                counts.crashes += 1;
                continue;
            }
            counts.checks += 1;
            let entry = log::TaskEntry::read(&event.kind, &event.data).map(|entry| entry.event);
            if let Some(TaskEvent::ChecksFinished { verdict, .. }) = entry {
                match verdict {
                    CiVerdict::Failed { .. } => counts.red += 1,
                    CiVerdict::Infra { .. } | CiVerdict::Unreached { .. } | CiVerdict::TimedOut { .. } => {
                        counts.infra += 1;
                    }
                    CiVerdict::Passed => {}
                }
            }
        }
    }
    for task in store.tasks(Some(&config.name))?.iter().filter(|task| task.state == State::Blocked) {
        let counts: Option<&mut Counts> = if task.since >= this {
            Some(&mut figures.week)
        } else {
            (task.since >= last).then_some(&mut figures.before)
        };
        if let Some(counts) = counts {
            counts.blocked += 1;
        }
    }
    let groomed = super::gardener::memory(store, &config.name)?;
    let stale = config.timing.stale_issue.duration();
    let untouched = |issue: &&Issue| now.since(gardener::Memory::changed_at(&groomed, issue)) > stale;
    figures.open = u64::try_from(issues.len()).unwrap_or(u64::MAX);
    figures.stale = u64::try_from(issues.iter().filter(untouched).count()).unwrap_or(u64::MAX);
    Ok(figures)
}

/// The keys of predictions that are open as issues.
pub fn open(predictions: &[Prediction], issues: &[Issue]) -> BTreeSet<String> {
    let is_open = |one: &&Prediction| {
        let marker = words::comment::marker(&issue_name(one));
        issues.iter().any(|issue| issue.body.ends_with(&marker))
    };
    predictions.iter().filter(is_open).map(Prediction::key).collect()
}

impl Watch {
    /// Does what is due.
    pub(super) fn foresee(&self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        let config = &served.config;
        let Some(seen) = served.seen() else { return Ok(()) };
        let mut memory = self.world.read(|store| memory(store, &config.name))?;
        if !self.world.read(|store| is_due(store, &config.name, FORMULA, memory.looked_at))? {
            return Ok(());
        }
        let figures = self.world.read(|store| figures(store, config, &seen.issues, now))?;
        let machine = collect::machine(&self.world.paths, config);
        let disks = machine.disks.into_iter().map(|disk| (disk.path, disk.used_percent)).collect();
        let sample = Sample { at: now, disks, free_memory_mb: machine.free_memory_mb };
        memory.measure(sample.clone(), now);
        let open = open(&predict(&memory, &figures, config), &seen.issues);
        let key = RoleKey { project: config.name.clone(), role: ROLE };
        let measured = Event::Measured { sample, figures, open };
        // Whoever ends early because the daemon does measures once more in the next one.
        let _ = self.inbox.record(Input::of_role(key, measured));
        Ok(())
    }
}
