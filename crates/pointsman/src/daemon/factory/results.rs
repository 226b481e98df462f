//! The results of roles: read from the log and from what the forge said anyway, and written down once.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

use pointsman_core::ids::{Number, ProjectName, Sha};
use pointsman_core::log;
use pointsman_core::run::{Status, action_key};
use pointsman_core::time::Timestamp;
use pointsman_core::value::{Following, LoggedResult, Outcome, ResultEnd, ResultOver};
use pointsman_store::{Change, EventFilter, EventRow, Memory, Store, Write};

use super::watch::Watch;
use super::{RoleReport, send};
use crate::daemon::engine::Engine;
use crate::daemon::served::Served;

/// The name under which it is remembered.
const NAME: &str = "results";

/// A landing that was taken back.
#[derive(Clone, Debug)]
pub(crate) struct Revert {
    pub(crate) sha: Sha,
    pub(crate) by: Sha,
    /// The issue it was for.
    pub(crate) issue: Option<Number>,
    pub(crate) pr: Option<Number>,
}

impl Watch {
    /// Looks what became of what roles did, whenever the forge has said something new.
    pub(super) fn follow_results(&mut self, served: &Arc<Served>, now: Timestamp) -> anyhow::Result<()> {
        let project = &served.config.name;
        let Some(seen) = served.seen() else { return Ok(()) };
        if self.followed.get(project) == Some(&seen.at) {
            return Ok(());
        }
        let (before, mut following, mut over) = self.world.read(|store| {
            let before: Following = store.memory(project, NAME)?.unwrap_or_default();
            let mut following = before.clone();
            let over = hear(store, project, &mut following)?;
            Ok::<_, pointsman_store::Error>((before, following, over))
        })?;
        let open: BTreeSet<Number> = seen.issues.iter().map(|issue| issue.number).collect();
        let unread = RefCell::new(None);
        let is_done = |issue| {
            let done = self.world.read(|store| is_done(store, project, issue));
            done.unwrap_or_else(|error| {
                unread.replace(Some(error));
                false
            })
        };
        over.extend(following.see(&open, seen.at, is_done, now));
        // What could not be read is no result: all of it is looked at again.
        if let Some(error) = unread.into_inner() {
            return Err(error.into());
        }
        if following != before {
            let (project, following) = (project.clone(), Box::new(following));
            send(&self.inbox, RoleReport::Followed { project, following, over });
        }
        self.followed.insert(project.clone(), seen.at);
        Ok(())
    }
}

/// Reads on in the log.
fn hear(
    store: &Store,
    project: &ProjectName,
    following: &mut Following,
) -> Result<Vec<ResultOver>, pointsman_store::Error> {
    let mut filter = EventFilter {
        since: following.seq,
        project: Some(project.clone()),
        kinds: [log::ROLE_FILED, log::ROLE_CLOSED, log::PREDICTION_TRIAGED].map(str::to_owned).to_vec(),
        limit: 1_000,
        ..EventFilter::default()
    };
    let mut over = Vec::new();
    loop {
        let page = store.events(&filter)?;
        let Some(last) = page.last() else { return Ok(over) };
        (filter.since, following.seq) = (last.seq, last.seq);
        for event in &page {
            let Some((issue, heard)) = event.issue.zip(logged_result(event)) else { continue };
            over.extend(following.hear(issue, &heard, event.at));
        }
    }
}

fn logged_result(event: &EventRow) -> Option<LoggedResult> {
    match log::Entry::read(&event.kind, &event.data)? {
        log::Entry::RoleFiled(of) => Some(LoggedResult::Filed { role: of.role }),
        log::Entry::RoleClosed(of) => Some(LoggedResult::Closed { role: of.role }),
        log::Entry::PredictionTriaged { verdict, .. } => Some(LoggedResult::Triaged { verdict }),
        _ => None,
    }
}

/// Whether something of ours landed for an issue, or its action was carried out.
fn is_done(store: &Store, project: &ProjectName, issue: Number) -> Result<bool, pointsman_store::Error> {
    let key = pointsman_core::ids::TaskKey { project: project.clone(), issue };
    let landed = store.task(&key)?.is_some_and(|task| task.contribution.merged_as().is_some());
    let acted = store.runs_about(project, &action_key(issue))?.iter().any(|run| run.status == Status::Done);
    Ok(landed || acted)
}

/// Whether it counts for the pause of a role. Predictions are results by themselves; what else roles did was counted
/// when it was done, and a single mistake among it does not make it noise.
fn counts(outcome: &ResultOver) -> Option<Outcome> {
    match outcome.became {
        ResultEnd::Dismissed => Some(Outcome::Noise),
        ResultEnd::Promoted | ResultEnd::Watched | ResultEnd::Landed => Some(Outcome::Used),
        ResultEnd::Reopened => None,
    }
    .filter(|_| outcome.role.predicts())
}

/// Writes down what became of things. Twice is the same as once.
pub(super) fn write(
    engine: &mut Engine,
    project: &ProjectName,
    following: &Following,
    over: &[ResultOver],
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let before: Following = engine.store().memory(project, NAME)?.unwrap_or_default();
    if before == *following {
        return Ok(());
    }
    let (mut changes, mut counted) = (Vec::new(), Vec::new());
    for outcome in over {
        let (role, became) = (outcome.role, outcome.became.name().to_owned());
        let logged = log::Entry::ResultOver { role, outcome: became };
        changes.push(Change { issue: Some(outcome.issue), ..Change::logged(now, project, &logged) });
        counted.extend(counts(outcome).map(|counts| super::counted(project, role, counts)));
    }
    let memory = Memory::new(NAME, following)?;
    match changes.first_mut() {
        Some(first) => first.memories.push(memory),
        None => changes.push(super::remembered(project, memory, now)),
    }
    engine.take_with(&counted, changes, now).map(drop)
}

/// Writes down what was taken back, and up to where main was looked at.
pub(super) fn write_reverts(
    engine: &mut Engine,
    project: &ProjectName,
    upto: &Sha,
    reverts: &[Revert],
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    let change = |revert: &Revert| {
        let Revert { sha, by, issue, pr } = revert.clone();
        let dedup = Some(format!("reverted:{project}:{sha}"));
        let logged = log::Entry::LandingReverted { sha, by, issue, pr };
        Change { issue, dedup, ..Change::logged(now, project, &logged) }
    };
    let mut changes: Vec<Change> = reverts.iter().map(change).collect();
    changes.push(Change::quiet(now, vec![Write::cursor(project, REVERTS, upto.as_str())]));
    engine.write(&changes).map(drop)
}

/// Where main was when it was last looked at for what takes something back.
pub(crate) const REVERTS: &str = "reverts";
