//! Checkpoints: where the work on a task was, again and again, under `refs/pointsman/checkpoints/<task>/<n>`.
//!
//! A checkpoint is a commit with all files of the working tree; its parent is what the agent had committed. When to
//! take one is not decided here. [`rebuild_from`](super::tree::rebuild_from) makes a working tree of one again,
//! [`rescue`](super::rescue) lists and restores them for people.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pointsman_core::ids::{Number, Sha};
use pointsman_core::time::Timestamp;

use super::capture::{self, Capture};
use super::mirror::{Mirror, RefUpdate};
use super::push::Expect;
use super::snapshot::{Snapshot, snapshot};
use super::warm_index::{self, Slot};
use super::{Error, RefName};

/// Where checkpoints are kept.
pub(super) const PREFIX: &str = "refs/pointsman/checkpoints";
/// The trailer of a checkpoint's message that names the session it is of, for `rescue list`.
pub const SESSION_TRAILER: &str = "Pointsman-Session";

/// The name of a checkpoint: the `n`th one of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CheckpointName {
    /// The issue that is worked on.
    pub task: Number,
    pub n: u32,
}

impl CheckpointName {
    /// Its reference in the mirror.
    pub fn refname(&self) -> RefName {
        RefName::new(&format!("{PREFIX}/{}/{}", self.task, self.n)).expect("numbers make a good name")
    }

    /// Reads a reference back.
    pub fn parse(refname: &str) -> Option<Self> {
        let (task, n) = refname.strip_prefix(PREFIX)?.strip_prefix('/')?.split_once('/')?;
        let name = Self { task: task.parse().ok()?, n: n.parse().ok()? };
        (name.refname().as_str() == refname).then_some(name)
    }
}

/// The result of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointOutcome {
    /// Files and HEAD are as the last checkpoint has them; nothing was written.
    Unchanged,
    /// There is a new checkpoint.
    Saved {
        commit: Sha,
        /// Its tree, for the next time.
        tree: Sha,
        /// The reference that keeps it.
        refname: RefName,
        /// How many files differ from what the agent has committed.
        files: u32,
        /// Why it may not be everything; see [`Capture::incomplete`].
        incomplete: Option<String>,
    },
}

/// Takes checkpoints, and keeps an index per task so that only changed files are read.
#[derive(Clone, Debug)]
pub struct Keeper<'a> {
    mirror: &'a Mirror,
    index_dir: PathBuf,
}

impl<'a> Keeper<'a> {
    /// With indexes in `index_dir`, which only the daemon may write and which may be emptied at any time.
    pub fn new(mirror: &'a Mirror, index_dir: &Path) -> Self {
        warm_index::sweep(index_dir);
        Self { mirror, index_dir: index_dir.to_owned() }
    }

    /// Saves the tracked and the untracked (not ignored) files of a working tree as the checkpoint `name`, unless
    /// nothing changed since the last one, whose tree is `last_tree`. The tree, its index and its configuration are
    /// neither written nor used.
    ///
    /// The same checkpoint under the same name again is done already, not an error.
    pub fn take(
        &self,
        work_dir: &Path,
        name: &CheckpointName,
        message: &str,
        last_tree: Option<&Sha>,
    ) -> Result<CheckpointOutcome, Error> {
        let snapshot = snapshot(self.mirror, work_dir, Some(&self.slot(name.task)))?;
        if last_tree == Some(&snapshot.tree) && self.is_newest(name.task, &snapshot)? {
            snapshot.settle(true);
            return Ok(CheckpointOutcome::Unchanged);
        }
        let files = u32::try_from(snapshot.changed_paths()?.len()).unwrap_or(u32::MAX);
        let commit = snapshot.commit(message)?;
        snapshot.keep()?;
        let refname = name.refname();
        let commit = match self.mirror.update_ref(&refname, &commit, &Expect::Absent)? {
            RefUpdate::Done => commit,
            RefUpdate::Stale { actual } => {
                let there = list(self.mirror, name.task)?.into_iter().find(|c| c.name == *name);
                let same = there.filter(|c| c.tree == snapshot.tree && c.parent == snapshot.head);
                same.map(|c| c.commit)
                    .filter(|commit| Some(commit) == actual.as_ref())
                    .ok_or_else(|| Error::RefTaken { refname: refname.to_string() })?
            }
        };
        let (tree, incomplete) = (snapshot.tree.clone(), snapshot.incomplete.clone());
        snapshot.settle(true);
        Ok(CheckpointOutcome::Saved { commit, tree, refname, files, incomplete })
    }

    /// Like [`capture`](capture::capture), with the task's index.
    pub fn rescue(
        &self,
        work_dir: &Path,
        task: Number,
        refname: &RefName,
        message: &str,
    ) -> Result<Option<Capture>, Error> {
        let snapshot = snapshot(self.mirror, work_dir, Some(&self.slot(task)))?;
        let saved = capture::save(self.mirror, &snapshot, refname, message)?;
        if saved.is_some() {
            let checkpointed = snapshot.is_last_checkpoint();
            snapshot.settle(checkpointed);
        }
        Ok(saved)
    }

    /// An equal tree is not enough: what was committed in the meantime must not be lost either.
    fn is_newest(&self, task: Number, snapshot: &Snapshot<'_>) -> Result<bool, Error> {
        if snapshot.is_last_checkpoint() {
            return Ok(true);
        }
        let newest = newest(self.mirror, task)?;
        Ok(newest.is_some_and(|c| c.tree == snapshot.tree && c.parent == snapshot.head))
    }

    fn slot(&self, task: Number) -> Slot {
        Slot { dir: self.index_dir.clone(), name: task.to_string() }
    }
}

/// A checkpoint that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub name: CheckpointName,
    pub commit: Sha,
    /// All files of the working tree.
    pub tree: Sha,
    /// The HEAD of the working tree, if it had one.
    pub parent: Option<Sha>,
    pub at: Timestamp,
}

/// The checkpoints of a task, oldest first.
pub fn list(mirror: &Mirror, task: Number) -> Result<Vec<Checkpoint>, Error> {
    list_below(mirror, &format!("{PREFIX}/{task}/"))
}

/// The checkpoints of all tasks, by task and number.
pub fn list_all(mirror: &Mirror) -> Result<Vec<Checkpoint>, Error> {
    list_below(mirror, &format!("{PREFIX}/"))
}

fn list_below(mirror: &Mirror, prefix: &str) -> Result<Vec<Checkpoint>, Error> {
    let listed = mirror
        .call("for-each-ref")
        .arg("--format=%(refname) %(objectname) %(tree) %(committerdate:unix) %(parent)")
        .args(["--", prefix])
        .text()?;
    let mut found: Vec<Checkpoint> = listed.lines().filter_map(parse_line).collect();
    found.sort_by_key(|checkpoint| checkpoint.name);
    Ok(found)
}

/// The newest checkpoint of a task.
pub fn newest(mirror: &Mirror, task: Number) -> Result<Option<Checkpoint>, Error> {
    Ok(list(mirror, task)?.pop())
}

/// Removes checkpoints of a task and answers which: all but the newest `keep` (at least one) and those that are not
/// older than `older_than`.
pub fn prune(
    mirror: &Mirror,
    task: Number,
    keep: usize,
    older_than: Duration,
    now: Timestamp,
) -> Result<Vec<RefName>, Error> {
    let mut removed = Vec::new();
    let all = list(mirror, task)?;
    let beyond = all.len().saturating_sub(keep.max(1));
    for old in all[..beyond].iter().filter(|checkpoint| now.since(checkpoint.at) > older_than) {
        let refname = old.name.refname();
        match mirror.delete_ref(&refname, &old.commit)? {
            RefUpdate::Done => removed.push(refname),
            // Somebody else was here.
            RefUpdate::Stale { .. } => {}
        }
    }
    Ok(removed)
}

fn parse_line(line: &str) -> Option<Checkpoint> {
    let mut words = line.split(' ');
    Some(Checkpoint {
        name: CheckpointName::parse(words.next()?)?,
        commit: Sha::new(words.next()?)?,
        tree: Sha::new(words.next()?)?,
        at: Timestamp(words.next()?.parse::<i64>().ok()?.saturating_mul(1000)),
        parent: words.next().and_then(Sha::new),
    })
}
