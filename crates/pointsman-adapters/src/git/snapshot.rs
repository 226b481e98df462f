//! A working tree as objects of the mirror, made without touching the tree and without running anything of it.
//!
//! It is done with our repository, our configuration and an index of ours; from the tree come only file contents. An
//! agent's filters, hooks and monitors live in its own configuration, which is never read.
//!
//! One way in would remain: for a submodule that is in the index, git runs `git status` inside it, with the submodule's
//! own configuration. So the index never holds a submodule while git compares it with the tree.
//!
//! With a [`warm_index`](super::warm_index) a second look costs one call of git if nothing changed. What is saved does
//! not depend on it: the files of HEAD, and those that are not ignored.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pointsman_core::ids::Sha;

use super::incoming::Incoming;
use super::mirror::Mirror;
use super::tree_index::{Change, TreeIndex};
use super::warm_index::{IndexState, Slot, WarmIndex};
use super::{Error, RefName, files, refs};
use crate::retry::Retry;

/// The most of a tree's own exclude file that is honoured.
const EXCLUDE_CAP: u64 = 1 << 20;
/// `HEAD` is one line.
const HEAD_CAP: u64 = 4096;

/// A working tree as objects; no reference points to them yet, and until they are kept the mirror has not got them.
pub(super) struct Snapshot<'a> {
    pub(super) head: Option<Sha>,
    pub(super) tree: Sha,
    /// What differs from HEAD; all files without one. Not known if nothing changed since the last time.
    changes: Option<Vec<Change>>,
    /// Why it may not be everything.
    pub(super) incomplete: Option<String>,
    incoming: Incoming<'a>,
    warm: Option<WarmIndex>,
    /// An index with a submodule is not kept; see above.
    holds_repositories: bool,
}

/// Takes a snapshot of a working tree, with the index that is kept in the slot, if one is.
pub(super) fn snapshot<'a>(
    mirror: &'a Mirror,
    work_dir: &Path,
    slot: Option<&Slot>,
) -> Result<Snapshot<'a>, Error> {
    let work_dir = files::absolute(work_dir)?;
    let Some(slot) = slot else { return attempt(mirror, &work_dir, None) };
    let warm = WarmIndex::claim(slot)?;
    if warm.known().is_some() {
        match attempt(mirror, &work_dir, Some(warm)) {
            Ok(snapshot) => return Ok(snapshot),
            // Damaged, or made for another mirror. If it is something else, it comes up again.
            Err(error) => tracing::debug!(%error, "a warm index is made anew"),
        }
        return attempt(mirror, &work_dir, Some(WarmIndex::claim(slot)?));
    }
    attempt(mirror, &work_dir, Some(warm))
}

fn attempt<'a>(mirror: &'a Mirror, work_dir: &Path, warm: Option<WarmIndex>) -> Result<Snapshot<'a>, Error> {
    mirror.follow_lender()?;
    let incoming = Incoming::new(mirror)?;
    let known = warm.as_ref().and_then(WarmIndex::known);
    let mut doubts = Vec::new();
    let head = match known.and_then(|known| known.head.as_ref()) {
        // The mirror got it the last time.
        Some(last) if peek_head(work_dir).as_ref() == Some(last) => Some(last.clone()),
        Some(_) | None => match fetch_head(mirror, work_dir, incoming.scratch()) {
            Ok(head) => head,
            // A tree whose repository is broken still has files worth saving.
            Err(
                error @ (Error::Failed { retry: Retry::Later | Retry::Never, .. } | Error::NotOurs { .. }),
            ) => {
                doubts.push(format!("its commits could not be read: {error}"));
                None
            }
            Err(error) => return Err(error),
        },
    };
    let exclude = incoming.scratch().join("exclude");
    let lines = files::read_untrusted(&work_dir.join(".git/info/exclude"), EXCLUDE_CAP).unwrap_or_default();
    std::fs::write(&exclude, lines.unwrap_or_default()).map_err(files::error("write", &exclude))?;
    let file = warm.as_ref().map_or_else(|| incoming.scratch().join("index"), WarmIndex::file);
    let index = TreeIndex { incoming: &incoming, file, work_dir, exclude };

    let fitting = known.filter(|known| known.head == head && !index.any_exists(&known.deleted));
    let filled = match fitting {
        Some(known) => match index.refill(&head, known)? {
            Some(filled) => filled,
            None => index.fill(&head)?,
        },
        None => index.fill(&head)?,
    };
    doubts.extend(filled.doubts);
    let incomplete = if doubts.is_empty() { None } else { Some(doubts.join("; ")) };
    Ok(Snapshot {
        head,
        tree: filled.tree,
        changes: filled.changes,
        incomplete,
        holds_repositories: filled.holds_repositories,
        incoming,
        warm,
    })
}

impl Snapshot<'_> {
    /// Whether the last snapshot that was kept is the same and was a checkpoint.
    pub(super) fn is_last_checkpoint(&self) -> bool {
        let known = self.warm.as_ref().and_then(WarmIndex::known);
        known.is_some_and(|k| k.checkpointed && k.head == self.head && k.tree == self.tree)
    }

    /// The paths that differ from HEAD; all of them without one.
    pub(super) fn changed_paths(&self) -> Result<Vec<Vec<u8>>, Error> {
        let fresh;
        let changes = match &self.changes {
            Some(changes) => changes,
            None => {
                fresh = super::tree_index::changes(&self.incoming, self.head.as_ref(), &self.tree)?;
                &fresh
            }
        };
        Ok(changes.iter().map(|change| change.path.clone()).collect())
    }

    /// The snapshot as a commit on top of HEAD. Like the rest, it has to be kept.
    pub(super) fn commit(&self, message: &str) -> Result<Sha, Error> {
        let mut call = self.incoming.call("commit-tree").arg(self.tree.as_str());
        if let Some(head) = &self.head {
            call = call.args(["-p", head.as_str()]);
        }
        call.args(["-F", "-"]).stdin(message).sha()
    }

    /// Makes the objects a durable part of the mirror.
    pub(super) fn keep(&self) -> Result<(), Error> {
        self.incoming.keep()
    }

    /// Brings the warm index back, after the snapshot was kept.
    pub(super) fn settle(self, checkpointed: bool) {
        let Some(warm) = self.warm else { return };
        if self.holds_repositories || self.incomplete.is_some() {
            return;
        }
        let deleted = match (self.changes, warm.known()) {
            (Some(changes), _) => {
                changes.into_iter().filter(|c| c.is_deletion).map(|change| change.path).collect()
            }
            (None, Some(known)) => known.deleted.clone(),
            (None, None) => return,
        };
        warm.keep(&IndexState { head: self.head, tree: self.tree, checkpointed, deleted });
    }
}

/// Brings the tree's HEAD into the mirror. The reference is only needed on the way: nothing is ever pruned.
fn fetch_head(mirror: &Mirror, work_dir: &Path, scratch: &Path) -> Result<Option<Sha>, Error> {
    let unique = scratch.file_name().unwrap_or_default().to_string_lossy().replace('.', "-");
    let to = RefName::new(&format!("refs/pointsman/incoming/{unique}"))
        .ok_or_else(|| Error::NotOurs { path: scratch.to_owned(), expected: "a plain name" })?;
    let head = mirror.fetch_unchecked(work_dir, &RefName::head(), &to)?;
    if let Some(head) = &head {
        mirror.delete_ref(&to, head)?;
    }
    Ok(head)
}

/// What HEAD seems to be, without git. Only good for telling that it is what it was: nothing if it is not plain to see.
fn peek_head(work_dir: &Path) -> Option<Sha> {
    let git_dir = work_dir.join(".git");
    if !git_dir.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return None;
    }
    let text = files::read_untrusted(&git_dir.join("HEAD"), HEAD_CAP).ok()??;
    let text = OsStr::from_bytes(&text).to_str()?.trim_end();
    match text.strip_prefix("ref: ") {
        Some(name) => refs::read_ref(&git_dir, &RefName::new(name)?).ok()?,
        None => Sha::new(text),
    }
}
