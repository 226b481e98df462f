//! Saving what is in a working tree, without touching the tree and without running anything of it.
//!
//! It is done with our repository, our configuration and a temporary index; from the tree come only file contents. An
//! agent's filters, hooks and monitors live in its own configuration, which is never read.
//!
//! One way in would remain: for a submodule that is in the index, git runs `git status` inside it, with the submodule's
//! own configuration. So the index never holds a submodule while git compares it with the tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pointsman_core::ids::Sha;

use super::inspect::nul_list;
use super::mirror::{Mirror, RefUpdate};
use super::push::Expect;
use super::{Call, Error, RefName, files};
use crate::process::End;
use crate::retry::Retry;

/// The most of a tree's own exclude file that is honoured.
const EXCLUDE_CAP: u64 = 1 << 20;

/// What was saved.
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
pub fn capture(
    mirror: &Mirror,
    work_dir: &Path,
    refname: &RefName,
    message: &str,
) -> Result<Option<Capture>, Error> {
    let snapshot = snapshot(mirror, work_dir)?;
    let changed = match &snapshot.head {
        Some(head) => mirror.tree_of(head)? != snapshot.tree,
        None => !mirror.call("ls-tree").args([snapshot.tree.as_str()]).bytes()?.is_empty(),
    };
    let commit = match (&snapshot.head, changed) {
        (None, false) => return Ok(None),
        (Some(head), false) if is_kept(mirror, head)? => return Ok(None),
        (Some(head), false) => head.clone(),
        (head, true) => {
            let mut call = mirror.call("commit-tree").arg(snapshot.tree.as_str());
            if let Some(head) = head {
                call = call.args(["-p", head.as_str()]);
            }
            call.args(["-F", "-"]).stdin(message).sha()?
        }
    };
    let commit = match mirror.update_ref(refname, &commit, &Expect::Absent)? {
        RefUpdate::Done => commit,
        RefUpdate::Stale { actual: Some(actual) } if mirror.tree_of(&actual)? == snapshot.tree => actual,
        RefUpdate::Stale { .. } => return Err(Error::RefTaken { refname: refname.to_string() }),
    };
    Ok(Some(Capture { commit, incomplete: snapshot.incomplete }))
}

/// The first free rescue reference of a session; nothing if its name cannot be part of a reference.
pub fn next_rescue_ref(mirror: &Mirror, session: &str) -> Result<Option<RefName>, Error> {
    let Some(prefix) = RefName::new(&format!("refs/pointsman/rescue/{session}")) else { return Ok(None) };
    let taken = mirror.list_refs(&prefix)?;
    let last =
        taken.iter().filter_map(|(name, _)| name.as_str().rsplit('/').next()?.parse::<u32>().ok()).max();
    Ok(RefName::rescue(session, last.unwrap_or(0) + 1))
}

/// The paths in a working tree that differ from its HEAD, untracked files included.
pub fn files_in_progress(mirror: &Mirror, work_dir: &Path) -> Result<Vec<String>, Error> {
    let snapshot = snapshot(mirror, work_dir)?;
    let listed = match &snapshot.head {
        Some(head) => mirror
            .call("diff-tree")
            .args(["-r", "-z", "--name-only", "--no-renames", head.as_str(), snapshot.tree.as_str(), "--"])
            .bytes()?,
        None => mirror.call("ls-tree").args(["-r", "-z", "--name-only", snapshot.tree.as_str()]).bytes()?,
    };
    Ok(nul_list(&listed))
}

/// A working tree as objects of the mirror; no reference points to them yet.
struct Snapshot {
    head: Option<Sha>,
    tree: Sha,
    incomplete: Option<String>,
}

fn snapshot(mirror: &Mirror, work_dir: &Path) -> Result<Snapshot, Error> {
    let work_dir = files::absolute(work_dir)?;
    let scratch = tempfile::Builder::new()
        .prefix("pointsman-capture-")
        .tempdir_in(mirror.dir())
        .map_err(files::error("make a directory in", mirror.dir()))?;
    let mut doubts = Vec::new();

    let head = match fetch_head(mirror, &work_dir, scratch.path()) {
        Ok(head) => head,
        // A tree whose repository is broken still has files worth saving.
        Err(error @ (Error::Failed { retry: Retry::Later | Retry::Never, .. } | Error::NotOurs { .. })) => {
            doubts.push(format!("its commits could not be read: {error}"));
            None
        }
        Err(error) => return Err(error),
    };
    let exclude = scratch.path().join("exclude");
    let lines = files::read_untrusted(&work_dir.join(".git/info/exclude"), EXCLUDE_CAP).unwrap_or_default();
    files::write_atomic(&exclude, &lines.unwrap_or_default(), 0o600)?;
    let index = Index { mirror, file: scratch.path().join("index"), work_dir, exclude };

    if let Some(head) = &head {
        index.call("read-tree").arg(head.as_str()).ok()?;
    }
    let submodules = index.submodules()?;
    index.replace(submodules.iter().map(|s| s.removal()))?;
    doubts.extend(index.add_everything()?);
    let now = index.submodules()?;
    index.replace(submodules.iter().filter(|s| index.is_empty_submodule(s, &now)).map(Submodule::entry))?;
    // A repository that the agent made or changed within its tree: its commit is noted, its files are not saved.
    let nested: Vec<String> = now
        .iter()
        .filter(|s| !submodules.contains(s))
        .map(|s| String::from_utf8_lossy(&s.path).into_owned())
        .collect();
    if !nested.is_empty() {
        doubts.push(format!("repositories within the tree: {}", nested.join(", ")));
    }
    let tree = index.call("write-tree").sha()?;
    let incomplete = if doubts.is_empty() { None } else { Some(doubts.join("; ")) };
    Ok(Snapshot { head, tree, incomplete })
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

/// Whether some reference of the mirror holds this commit already. The HEAD of a linked tree does not count: it goes
/// with the tree.
fn is_kept(mirror: &Mirror, head: &Sha) -> Result<bool, Error> {
    let missing = mirror
        .call("rev-list")
        .args(["--count", "--max-count=1", "--single-worktree", head.as_str(), "--not", "--all", "--"])
        .text()?;
    Ok(missing == "0")
}

/// A submodule's entry in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Submodule {
    commit: Vec<u8>,
    path: Vec<u8>,
}

impl Submodule {
    fn removal(&self) -> Vec<u8> {
        [b"0 ", "0".repeat(self.commit.len()).as_bytes(), b"\t", &self.path, b"\0"].concat()
    }

    fn entry(&self) -> Vec<u8> {
        [b"160000 ", &self.commit[..], b"\t", &self.path, b"\0"].concat()
    }
}

/// A temporary index of the mirror over somebody's working tree.
struct Index<'a> {
    mirror: &'a Mirror,
    file: std::path::PathBuf,
    work_dir: std::path::PathBuf,
    exclude: std::path::PathBuf,
}

impl Index<'_> {
    fn call(&self, operation: &'static str) -> Call {
        self.mirror
            .git
            .call(operation)
            .config("core.excludesFile", &self.exclude)
            .config("core.safecrlf", "false")
            .git_dir(self.mirror.dir())
            .work_tree(&self.work_dir)
            .env("GIT_INDEX_FILE", self.file.as_os_str())
    }

    /// Brings the index up to the tree; what cannot be read is left out and reported.
    fn add_everything(&self) -> Result<Option<String>, Error> {
        let done =
            self.call("add").args(["--all", "--ignore-errors", "--", "."]).remote(Retry::Later).finish()?;
        match done.end {
            End::Exited(0) => Ok(None),
            _ if self.file.exists() => Ok(Some(super::error::excerpt(&done.stderr))),
            end => Err(Error::Failed {
                operation: "add",
                inputs: self.work_dir.display().to_string(),
                end,
                stderr: super::error::excerpt(&done.stderr),
                retry: Retry::Later,
            }),
        }
    }

    fn submodules(&self) -> Result<Vec<Submodule>, Error> {
        let listed = self.call("ls-files").args(["--stage", "-z"]).bytes()?;
        let entries = listed.split(|b| *b == 0).filter_map(|entry| {
            let rest = entry.strip_prefix(b"160000 ")?;
            let commit = rest.split(|b| *b == b' ').next()?;
            let tab = rest.iter().position(|b| *b == b'\t')?;
            Some(Submodule { commit: commit.to_vec(), path: rest[tab + 1..].to_vec() })
        });
        Ok(entries.collect())
    }

    fn replace(&self, lines: impl Iterator<Item = Vec<u8>>) -> Result<(), Error> {
        let input: Vec<u8> = lines.flatten().collect();
        if input.is_empty() {
            return Ok(());
        }
        self.call("update-index").args(["-z", "--index-info"]).stdin(input).ok()
    }

    /// A submodule that was never checked out is an empty directory, which `add` does not see: it is unchanged, not
    /// deleted.
    fn is_empty_submodule(&self, submodule: &Submodule, now: &[Submodule]) -> bool {
        let dir = self.work_dir.join(OsStr::from_bytes(&submodule.path));
        let is_dir = dir.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        let is_empty = std::fs::read_dir(&dir).is_ok_and(|mut entries| entries.next().is_none());
        is_dir && is_empty && !now.iter().any(|n| n.path == submodule.path)
    }
}
