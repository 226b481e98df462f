//! The predictor: counts what happened in the last two weeks, and files what the figures foretell. No model is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::config::Config;
use pointsman_core::forge::Issue;
use pointsman_core::gardener;
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::labels::UNREVIEWED;
use pointsman_core::log;
use pointsman_core::predictor::{Counts, Figures, Memory, Prediction, Sample, predict};
use pointsman_core::role::Role;
use pointsman_core::task::{CiVerdict, Event, State};
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use pointsman_store::{Change, EventFilter, Store};

use super::watch::Watch;
use super::{RoleReport, collect, is_due, send, value};
use crate::daemon::engine::Engine;
use crate::daemon::inbound::Inbox;
use crate::daemon::served::Served;

/// The role that this file is about.
pub(super) const ROLE: Role = Role::Predictor;
/// Its formula, whose times it uses.
pub(super) const FORMULA: &str = ROLE.formula();
/// The name under which it is remembered.
const NAME: &str = ROLE.as_str();
/// The beginning of the names under which predictions are filed.
const PREFIX: &str = "prediction";
const WEEK: i64 = 7 * 86_400_000;

/// A look, and what was filed.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// What is to be remembered.
    pub memory: Memory,
    /// What was filed, one line each.
    pub lines: Vec<String>,
    pub issues: Vec<Number>,
}

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
            if let Some(Event::ChecksFinished { verdict, .. }) = entry {
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

/// The open issues that hold a prediction which is on record. One that is not was filed by a daemon that died before it
/// could write that down: it is filed once more, which finds it, and is written down then.
pub fn recorded(
    store: &Store,
    project: &ProjectName,
    issues: &[Issue],
) -> Result<BTreeSet<Number>, pointsman_store::Error> {
    let marker = words::comment::marker(PREFIX);
    let beginning = marker.trim_end_matches(|c: char| !c.is_alphanumeric());
    let mut recorded = BTreeSet::new();
    for issue in issues.iter().filter(|issue| issue.body.contains(beginning)) {
        let filed = store.events(&EventFilter {
            project: Some(project.clone()),
            issue: Some(issue.number),
            kinds: vec![log::ROLE_FILED.to_owned()],
            limit: 1,
            ..EventFilter::default()
        })?;
        recorded.extend((!filed.is_empty()).then_some(issue.number));
    }
    Ok(recorded)
}

/// Predictions from the figures that nobody has been told yet. Of the open issues only those count that are on record.
pub fn news(
    memory: &Memory,
    figures: &Figures,
    (issues, recorded): (&[Issue], &BTreeSet<Number>),
    config: &Config,
    now: Timestamp,
) -> Vec<Prediction> {
    let predictions = predict(memory, figures, config);
    let is_open = |one: &&Prediction| {
        let marker = words::comment::marker(&name(one));
        issues.iter().any(|issue| issue.body.ends_with(&marker) && recorded.contains(&issue.number))
    };
    let open: BTreeSet<String> = predictions.iter().filter(is_open).map(Prediction::key).collect();
    memory.news(predictions, &open, config, now)
}

/// Under which name an issue of it is found again.
fn name(prediction: &Prediction) -> String {
    format!("{PREFIX}-{}", prediction.key())
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
        let recorded = self.world.read(|store| recorded(store, &config.name, &seen.issues))?;
        let value = self.world.read(|store| value(store, &config.name, ROLE))?;
        let is_paused = value.paused_at.is_some();
        let machine = collect::machine(&self.world.paths, config);
        let disks = machine.disks.into_iter().map(|disk| (disk.path, disk.used_percent)).collect();
        memory.measure(Sample { at: now, disks, free_memory_mb: machine.free_memory_mb }, now);
        let inbox = self.inbox.clone();
        self.beside(format!("predictor {}", config.name), served, now, move |served| {
            let wanted = news(&memory, &figures, (&seen.issues, &recorded), &served.config, now);
            let wanted = if is_paused { Vec::new() } else { wanted };
            file(&inbox, served, memory.clone(), &wanted, now)
        });
        Ok(())
    }
}

/// Files what is new; twice is the same as once.
fn file(
    inbox: &Inbox,
    served: &Served,
    mut memory: Memory,
    wanted: &[Prediction],
    now: Timestamp,
) -> anyhow::Result<()> {
    let (mut lines, mut issues) = (Vec::new(), Vec::new());
    for prediction in wanted {
        let (title, body) = words::predictor::issue(prediction);
        let filed = served.forge.file_issue_once(&name(prediction), &title, &body, &[UNREVIEWED])?;
        memory.said.insert(prediction.key(), now);
        lines.push(format!("#{filed} {title}"));
        issues.push(filed);
    }
    let project = served.config.name.clone();
    send(inbox, RoleReport::Predicted { project, predicted: Box::new(Predicted { memory, lines, issues }) });
    Ok(())
}

/// Writes a look down.
pub fn write(
    engine: &mut Engine,
    project: &ProjectName,
    predicted: &Predicted,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let memory = pointsman_store::Memory::new(NAME, &predicted.memory)?;
    if predicted.lines.is_empty() {
        return engine.write(&[super::remembered(project, memory, now)]).map(drop);
    }
    let logged = log::Entry::PredictorFiled { lines: predicted.lines.clone() };
    let mut change = Change::logged(now, project, &logged);
    change.memories.push(memory);
    let filed = predicted.issues.iter().map(|issue| {
        let logged = log::Entry::RoleFiled(log::RoleIssue { role: ROLE, run: None });
        Change { issue: Some(*issue), ..Change::logged(now, project, &logged) }
    });
    let changes: Vec<Change> = [change].into_iter().chain(filed).collect();
    engine.write(&changes).map(drop)
}
