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
