//! Saving a task's working tree into the mirror.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use pointsman_adapters::git::checkpoint::{
    CheckpointName, CheckpointOutcome, Keeper, SESSION_TRAILER, list_all, newest, prune,
};
use pointsman_core::ids::{Number, Sha, TaskKey};
use pointsman_core::session::work::Observation;
use pointsman_core::task::Task;
use pointsman_core::words;
use pointsman_store::{CheckpointRow, Store, Write};

use super::Jobs;
use crate::daemon::clock;
use crate::daemon::crash::crash_point;
use crate::daemon::inbound::ThreadReport;
use crate::daemon::served::Served;

/// Younger checkpoints are kept, however many there are.
const KEPT_FOR: Duration = Duration::from_secs(3600);

/// One checkpoint.
pub(super) struct Checkpoint {
    key: TaskKey,
    session: Option<String>,
    why: String,
}

impl Checkpoint {
    pub(super) fn new(task: &Task, why: &str) -> Self {
        Self { key: task.key.clone(), session: task.session_id(), why: why.to_owned() }
    }

    pub(super) fn name(&self) -> String {
        format!("checkpoint {}", self.key)
    }

    pub(super) fn run(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) {
        if let Err(error) = self.take(jobs, served) {
            tracing::warn!(task = %self.key, error = format!("{error:#}"), "no checkpoint was taken");
        }
    }

    fn take(&self, jobs: &Arc<Jobs>, served: &Arc<Served>) -> anyhow::Result<()> {
        let tree = served.session_files(&self.key).tree;
        if !tree.exists() {
            return Ok(());
        }
        // The repository has the last word: the row of its newest one may be on its way, or died with a daemon.
        let last = newest(&served.captures, self.key.issue)?;
        let known = jobs.read(|store| store.next_checkpoint_number(&self.key))?;
        let next = last.as_ref().map_or(1, |c| u64::from(c.name.n) + 1).max(known);
        let name = CheckpointName { task: self.key.issue, n: u32::try_from(next)? };
        let keeper = Keeper::new(&served.captures, &served.paths.indexes());
        let session = self.session.as_deref().unwrap_or("none");
        let subject = words::daemon::git::checkpoint(&self.key, &self.why);
        let message = format!("{subject}\n\n{SESSION_TRAILER}: {session}\n");
        let taken = keeper.take(&tree, &name, &message, last.as_ref().map(|c| &c.tree))?;
        let CheckpointOutcome::Saved { commit, tree: saved, refname, files, incomplete } = taken else {
            return Ok(());
        };
        if let Some(why) = incomplete {
            tracing::warn!(task = %self.key, why, "the checkpoint may be incomplete");
        }
        crash_point("checkpoint-saved");
        let saved_commit = commit.clone();
        let keep = usize::try_from(served.config.limits.checkpoints)?.max(1);
        let pruned = prune(&served.captures, self.key.issue, keep, KEPT_FOR, clock::now())?;
        let row = CheckpointRow {
            task: self.key.clone(),
            n: next,
            session: self.session.clone(),
            reference: refname.as_str().to_owned(),
            commit,
            tree: saved,
            at: clock::now(),
            why: self.why.clone(),
            files: u64::from(files),
        };
        let pruned = pruned.iter().filter_map(|r| r.as_str().rsplit('/').next()?.parse().ok()).collect();
        jobs.inbox.report(ThreadReport::CheckpointTaken { row: Box::new(row), pruned });
        self.tell_files(jobs, served, &saved_commit)
    }

    /// Which files differ from the main branch is part of the work state.
    fn tell_files(&self, jobs: &Arc<Jobs>, served: &Arc<Served>, commit: &Sha) -> anyhow::Result<()> {
        let Some(main) = served.mirror.remote_head(&served.primary)? else { return Ok(()) };
        let observations = vec![Observation::Files(served.captures.changed_paths(&main, commit)?)];
        jobs.inbox.report(ThreadReport::Observed {
            workflow: self.key.clone().into(),
            observations,
            read_to: None,
        });
        Ok(())
    }
}

/// The writes that bring the rows of a project's checkpoints in line with their repository, which has the last word: a daemon
/// that died in between left one without the other. Only for a time when none is taken.
pub(crate) fn adopt(store: &Store, served: &Served) -> anyhow::Result<Vec<Write>> {
    let project = &served.config.name;
    let kept = list_all(&served.captures)?;
    let rows = store.all_checkpoints(project)?;
    let mut writes = Vec::new();
    let known: BTreeSet<(Number, u64)> = rows.iter().map(|row| (row.task.issue, row.n)).collect();
    let there: BTreeSet<(Number, u64)> = kept.iter().map(|c| (c.name.task, u64::from(c.name.n))).collect();
    for found in kept.iter().filter(|c| !known.contains(&(c.name.task, u64::from(c.name.n)))) {
        let task = TaskKey { project: project.clone(), issue: found.name.task };
        tracing::info!(%task, n = found.name.n, "a checkpoint that was never written down");
        let files = match &found.parent {
            Some(parent) => served.captures.changed_paths(parent, &found.commit)?.len(),
            None => 0,
        };
        writes.push(Write::Checkpoint(CheckpointRow {
            task,
            n: u64::from(found.name.n),
            session: None,
            reference: found.name.refname().as_str().to_owned(),
            commit: found.commit.clone(),
            tree: found.tree.clone(),
            at: found.at,
            why: words::daemon::git::found_after_crash().to_owned(),
            files: files as u64,
        }));
    }
    for gone in rows.iter().filter(|row| !there.contains(&(row.task.issue, row.n))) {
        writes.push(Write::CheckpointForgotten { task: gone.task.clone(), n: gone.n });
    }
    Ok(writes)
}
