//! Databases that are older than the world they describe: restored from a backup, put back by hand, or gone.
//!
//! Beside the databases stands how far each of them was. One that is behind that is older. Then git and the forge are asked
//! first: nothing is performed for a project, and no deadline passes, until its forge was looked at once, and what happened on
//! its main branch in between is taken as it is. Agents of whom no record is left are ended; their trees stay.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::phase_file;
use pointsman_core::forge::{Issue, IssueState};
use pointsman_core::ids::{Number, ProjectName};
use pointsman_core::labels::{BACKLOG, IN_PROGRESS};
use pointsman_core::task::{State, Task};
use pointsman_core::words;
use pointsman_store::{SessionScope, Store};

use super::effects::{EffectPerformer, epoch};
use super::engine::Engine;
use super::served::Served;
use crate::embedded_forge::{EmbeddedForge, Newest};
use crate::paths::{Paths, ProjectPaths};

/// The time that an agent without a record has to end.
const GRACE: Duration = Duration::from_secs(2);

/// How far the store was when the last daemon saw it. Read before anything writes it anew.
pub(super) fn newest_event(paths: &Paths) -> Option<i64> {
    std::fs::read_to_string(paths.newest_event()).ok()?.trim().parse().ok()
}

/// Writes down how far the store is, for a daemon that finds an older one.
pub(super) fn remember_store(file: &Path, seq: i64) {
    remember(file, &seq.to_string());
}

/// Writes down how far an embedded forge is.
pub(super) fn remember_forge(served: &Served) {
    let newest = served.embedded.as_ref().and_then(|forge| forge.newest().ok());
    if let Some(Newest { number, comment }) = newest {
        remember(&served.paths.newest_on_forge(), &format!("{number} {comment}"));
    }
}

/// Says that databases were restored, before any daemon sees them.
pub(crate) fn mark(paths: &Paths) -> std::io::Result<()> {
    phase_file::write_state_file(&paths.restored(), b"restored\n")
}

fn remember(file: &Path, text: &str) {
    if std::fs::read_to_string(file).is_ok_and(|there| there == text) {
        return;
    }
    if let Err(error) = phase_file::write_state_file(file, text.as_bytes()) {
        tracing::warn!(file = %file.display(), %error, "how far a database is was not written down");
    }
}

/// Looks whether a database is older than it was, and holds everything back if so. Answers the projects that are held.
pub(super) fn look(
    paths: &Paths,
    engine: &mut Engine,
    newest_event: Option<i64>,
    projects: &BTreeMap<ProjectName, Arc<Served>>,
) -> anyhow::Result<BTreeSet<ProjectName>> {
    let seq = engine.store().last_seq()?;
    let store_is_older = newest_event.is_some_and(|known| seq < known);
    let mut older_forges = BTreeSet::new();
    for (name, served) in projects {
        let Some(embedded) = &served.embedded else { continue };
        let now = embedded.newest()?;
        let floor = highest_number(&engine.store().tasks(Some(name))?);
        if floor > now.number {
            embedded.skip_numbers(floor)?;
        }
        if floor > now.number || known_newest(&served.paths).is_some_and(|known| now.is_behind(known)) {
            older_forges.insert(name.clone());
        }
    }
    let is_marked = paths.restored().exists();
    if !store_is_older && older_forges.is_empty() && !is_marked {
        return Ok(BTreeSet::new());
    }
    // Should this daemon die, the next one goes on.
    mark(paths)?;
    let held: BTreeSet<ProjectName> = projects
        .keys()
        .filter(|name| store_is_older || is_marked || older_forges.contains(*name))
        .cloned()
        .collect();
    for name in &held {
        tracing::warn!(project = %name, "{}", words::backup::reconciled_first());
        engine.hold(name);
        if let Some(embedded) = &projects[name].embedded {
            show_landings(engine.store(), &projects[name], embedded)?;
        }
    }
    if held.is_empty() {
        all_reconciled(paths);
    }
    Ok(held)
}

/// Nothing is older any more.
pub(super) fn all_reconciled(paths: &Paths) {
    if let Err(error) = phase_file::remove_own_file(&paths.restored()) {
        tracing::warn!(%error, "the mark of a restored database stays");
    }
}

/// What has landed is closed, also on a forge that has forgotten it. Somebody may have opened an issue again since; whoever
/// restores a forge loses that.
fn show_landings(store: &Store, served: &Served, forge: &EmbeddedForge) -> anyhow::Result<()> {
    use pointsman_adapters::forge::Forge;
    for task in store.tasks(Some(&served.config.name))? {
        let Some(sha) = task.contribution.merged_as().filter(|_| is_over(&task)) else { continue };
        let issue = task.key.issue;
        if let Some(pr) = task.contribution.pr()
            && forge.pull_request(pr)?.is_some_and(|pr| !pr.merged)
        {
            forge.record_merge(pr, sha)?;
        }
        // Of the same title: a number may have meant something else on another forge.
        let is_it = |found: &Issue| found.state == IssueState::Open && found.title == task.title;
        if forge.issue(issue)?.as_ref().is_some_and(is_it) {
            tracing::warn!(project = %served.config.name, issue, "{}", words::backup::landed_already());
            forge.close_issue(issue)?;
            forge.set_labels(issue, &[], &[BACKLOG.to_owned(), IN_PROGRESS.to_owned()])?;
        }
    }
    Ok(())
}

fn is_over(task: &Task) -> bool {
    match task.state {
        State::Closed | State::Merged => true,
        State::Backlog
        | State::WaitingDependencies
        | State::Working
        | State::AwaitingCi
        | State::AwaitingReview
        | State::MergeQueue
        | State::Escalated
        | State::Blocked
        | State::Refused
        | State::Paused => false,
    }
}

/// The highest number of an issue or a pull request that tasks know: a forge must not give it to anything else.
fn highest_number(tasks: &[Task]) -> Number {
    tasks.iter().flat_map(|task| [Some(task.key.issue), task.contribution.pr()]).flatten().max().unwrap_or(0)
}

/// Ends the agents of which the store has no record: it was restored or lost. Whoever starts a session writes it down before.
pub(super) fn end_unrecorded(world: &EffectPerformer) -> anyhow::Result<()> {
    let recorded: BTreeSet<String> = world
        .read(|store| store.sessions(None, SessionScope::All))?
        .iter()
        .map(|row| epoch(&row.session))
        .collect();
    for (identity, found) in world.drivers.list()? {
        // A terminal that somebody else opened there is not ours to end.
        let is_ours = found.epoch.rsplit_once('_').is_some_and(|(of, _)| of == identity);
        if found.dead || !is_ours || recorded.contains(&found.epoch) {
            continue;
        }
        tracing::warn!(identity, pid = found.pid, "{}", words::backup::unrecorded());
        if let Err(error) = world.drivers.end(&identity, &found, GRACE) {
            tracing::error!(identity, %error, "an agent without a record was not ended");
        }
    }
    Ok(())
}

fn known_newest(paths: &ProjectPaths) -> Option<Newest> {
    let text = std::fs::read_to_string(paths.newest_on_forge()).ok()?;
    let (number, comment) = text.trim().split_once(' ')?;
    Some(Newest { number: number.parse().ok()?, comment: comment.parse().ok()? })
}
