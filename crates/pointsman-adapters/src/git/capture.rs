//! Saving what is in a working tree under a reference of the mirror; how, is in [`snapshot`](super::snapshot). The daemon
//! gives the repository [beside the mirror](Mirror::captures), whose objects no session sees.

use std::path::Path;

use pointsman_core::ids::Sha;

use super::mirror::{Mirror, RefUpdate};
use super::push::Expect;
use super::snapshot::{Snapshot, snapshot};
use super::{Error, RefName};

/// A saved working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The commit, kept by the reference that was asked for.
    pub commit: Sha,
    /// Why it may not be everything: unreadable files, repositories within the tree (only their commit is noted).
    pub incomplete: Option<String>,
}

/// Saves the tracked and the untracked (not ignored) files of a working tree as a commit on top of the tree's HEAD,
/// with `refname` (new, see [`RefName::rescue`]) pointing to it in the mirror.
///
/// Without uncommitted changes the reference points to HEAD itself if the mirror had not got all of HEAD's history, so
/// that commits that were never pushed are kept; if it had, there is nothing to save and the answer is nothing. The
/// same capture under the same name again is done already, not an error.
///
/// [`Keeper::rescue`](super::checkpoint::Keeper::rescue) does the same with what it knows from the last checkpoint.
pub fn capture(
    mirror: &Mirror,
    work_dir: &Path,
    refname: &RefName,
    message: &str,
) -> Result<Option<Capture>, Error> {
    save(mirror, &snapshot(mirror, work_dir, None)?, refname, message)
}

/// A working tree that is kept as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// The commit that is checked out in it.
    pub head: Sha,
    /// All of its files: `head` itself, or a commit on top of it.
    pub commit: Sha,
    /// Why it may not be everything.
    pub incomplete: Option<String>,
}

/// Moves `refname` to all that is in a working tree, whether it was kept before or not. None if its commits cannot be read.
pub fn capture_whole(
    mirror: &Mirror,
    work_dir: &Path,
    refname: &RefName,
    message: &str,
) -> Result<Option<Whole>, Error> {
    let snapshot = snapshot(mirror, work_dir, None)?;
    let Some(head) = snapshot.head.clone() else { return Ok(None) };
    let commit = match snapshot.changed_paths()?.is_empty() {
        true => head.clone(),
        false => snapshot.commit(message)?,
    };
    snapshot.keep()?;
    move_ref(mirror, refname, &commit)?;
    Ok(Some(Whole { head, commit, incomplete: snapshot.incomplete.clone() }))
}

/// Moves `refname` to a commit that the mirror, or the one whose objects it borrows, has already.
pub fn move_ref(mirror: &Mirror, refname: &RefName, commit: &Sha) -> Result<(), Error> {
    mirror.follow_lender()?;
    let expect = mirror.read_ref(refname)?.map_or(Expect::Absent, Expect::At);
    match mirror.update_ref(refname, commit, &expect)? {
        RefUpdate::Done => Ok(()),
        RefUpdate::Stale { .. } => Err(Error::RefTaken { refname: refname.to_string() }),
    }
}

/// Whether one commit is in the history of another. The mirror, or the one whose objects it borrows, has both.
pub fn is_part_of(mirror: &Mirror, one: &Sha, other: &Sha) -> Result<bool, Error> {
    mirror.follow_lender()?;
    mirror.is_ancestor(one, other)
}

pub(super) fn save(
    mirror: &Mirror,
    snapshot: &Snapshot<'_>,
    refname: &RefName,
    message: &str,
) -> Result<Option<Capture>, Error> {
    let changed = !snapshot.changed_paths()?.is_empty();
    let commit = match (&snapshot.head, changed) {
        (None, false) => return Ok(None),
        (Some(head), false) if is_kept(mirror, head)? => return Ok(None),
        (Some(head), false) => head.clone(),
        (_, true) => snapshot.commit(message)?,
    };
    snapshot.keep()?;
    let commit = match mirror.update_ref(refname, &commit, &Expect::Absent)? {
        RefUpdate::Done => commit,
        RefUpdate::Stale { actual: Some(actual) } if mirror.tree_of(&actual)? == snapshot.tree => actual,
        RefUpdate::Stale { .. } => return Err(Error::RefTaken { refname: refname.to_string() }),
    };
    Ok(Some(Capture { commit, incomplete: snapshot.incomplete.clone() }))
}

/// The first free rescue reference of a session; nothing if its name cannot be part of a reference.
pub fn next_rescue_ref(mirror: &Mirror, session: &str) -> Result<Option<RefName>, Error> {
    let Some(prefix) = RefName::new(&format!("refs/pointsman/rescue/{session}")) else { return Ok(None) };
    let taken = mirror.list_refs(&prefix)?;
    let last =
        taken.iter().filter_map(|(name, _)| name.as_str().rsplit('/').next()?.parse::<u32>().ok()).max();
    Ok(RefName::rescue(session, last.unwrap_or(0) + 1))
}

/// Whether some reference of the mirror, or of the one whose objects it borrows, holds this commit already. The HEAD of a linked tree does not count: it goes
/// with the tree.
fn is_kept(mirror: &Mirror, head: &Sha) -> Result<bool, Error> {
    let missing = mirror
        .call("rev-list")
        .args(["--count", "--max-count=1", "--single-worktree", head.as_str()])
        .args(["--not", "--all", "--alternate-refs", "--"])
        .text()?;
    Ok(missing == "0")
}
