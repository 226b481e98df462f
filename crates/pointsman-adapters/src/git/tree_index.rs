//! An index of the mirror over somebody's working tree, for [`snapshot`](super::snapshot).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;

use super::incoming::Incoming;
use super::warm_index::IndexState;
use super::{Call, Error};
use crate::process::{End, Finished};
use crate::retry::Retry;

/// The mode of a submodule, or of a repository that the agent made within its tree.
const REPOSITORY_MODE: &[u8] = b"160000";
/// How often git may give up on a tree that somebody is changing: a file that goes at the wrong moment is fatal to it.
const ADD_TRIES: u32 = 3;

pub(super) struct TreeIndex<'a> {
    pub(super) incoming: &'a Incoming<'a>,
    pub(super) file: PathBuf,
    pub(super) work_dir: &'a Path,
    /// Lines of the tree's own exclude file.
    pub(super) exclude: PathBuf,
}

/// What an index became.
pub(super) struct Filled {
    pub(super) tree: Sha,
    /// Against HEAD; not looked at if the tree is what it was.
    pub(super) changes: Option<Vec<Change>>,
    pub(super) doubts: Vec<String>,
    pub(super) holds_repositories: bool,
}

/// A path that differs from HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: Vec<u8>,
    pub(super) is_addition: bool,
    pub(super) is_deletion: bool,
    is_repository: bool,
}

impl TreeIndex<'_> {
    /// Fills the index with the files of HEAD and then with what is in the tree.
    pub(super) fn fill(&self, head: &Option<Sha>) -> Result<Filled, Error> {
        // What an earlier index knows about unchanged files stays known.
        match head {
            Some(head) => self.call("read-tree").args(["-m", "-i", head.as_str()]).ok()?,
            None => self.call("read-tree").arg("--empty").ok()?,
        }
        let submodules = self.submodules()?;
        self.replace(submodules.iter().map(Submodule::removal))?;
        let mut doubts: Vec<String> = self.add_everything()?.into_iter().collect();
        if !submodules.is_empty() {
            let now = self.submodules()?;
            let empty = submodules.iter().filter(|s| self.is_empty_submodule(s, &now));
            self.replace(empty.map(Submodule::entry))?;
        }
        let tree = self.call("write-tree").sha()?;
        let changes = changes(self.incoming, head.as_ref(), &tree)?;
        // A repository that the agent made or changed within its tree: its commit is noted, its files are not saved.
        let nested: Vec<_> =
            changes.iter().filter(|c| c.is_repository).map(|c| String::from_utf8_lossy(&c.path)).collect();
        if !nested.is_empty() {
            doubts.push(format!("repositories within the tree: {}", nested.join(", ")));
        }
        let holds_repositories = !submodules.is_empty() || !nested.is_empty();
        Ok(Filled { tree, changes: Some(changes), doubts, holds_repositories })
    }

    /// Brings an index that was kept up to the tree; nothing if it has to be filled from HEAD after all, because the
    /// result would be another one.
    pub(super) fn refill(&self, head: &Option<Sha>, known: &IndexState) -> Result<Option<Filled>, Error> {
        let before = self.version();
        if self.add_everything()?.is_some() {
            return Ok(None);
        }
        // Git replaces the file if it has anything new to say.
        let untouched = before.is_some() && before == self.version();
        let tree = if untouched { known.tree.clone() } else { self.call("write-tree").sha()? };
        if tree == known.tree {
            return Ok(Some(Filled { tree, changes: None, doubts: Vec::new(), holds_repositories: false }));
        }
        let changes = changes(self.incoming, head.as_ref(), &tree)?;
        let added: Vec<u8> =
            changes.iter().filter(|c| c.is_addition).flat_map(|c| [&c.path[..], b"\0"].concat()).collect();
        if changes.iter().any(|c| c.is_repository) || self.any_ignored(added)? {
            return Ok(None);
        }
        Ok(Some(Filled { tree, changes: Some(changes), doubts: Vec::new(), holds_repositories: false }))
    }

    /// Whether there is a file or a symlink at one of the paths.
    pub(super) fn any_exists(&self, paths: &[Vec<u8>]) -> bool {
        paths.iter().any(|path| {
            let place = self.work_dir.join(OsStr::from_bytes(path));
            place.symlink_metadata().is_ok_and(|meta| !meta.is_dir())
        })
    }

    /// Tells one content of the index file from another.
    fn version(&self) -> Option<(u64, i64, i64)> {
        self.file.metadata().ok().map(|meta| (meta.ino(), meta.mtime(), meta.mtime_nsec()))
    }

    fn any_ignored(&self, paths: Vec<u8>) -> Result<bool, Error> {
        if paths.is_empty() {
            return Ok(false);
        }
        let call = self.call("check-ignore").args(["-z", "--stdin", "--no-index"]).stdin(paths);
        call.behind(self.reading("check-ignore")?).yes()
    }

    /// The sandbox for a call that opens files of the tree.
    fn reading(&self, operation: &'static str) -> Result<Vec<OsString>, Error> {
        let index = self.file.parent().unwrap_or(Path::new("/"));
        self.incoming.reading(operation, self.work_dir, &[index])
    }

    fn call(&self, operation: &'static str) -> Call {
        self.incoming
            .call(operation)
            .config("core.excludesFile", &self.exclude)
            .config("core.safecrlf", "false")
            .work_tree(self.work_dir)
            .env("GIT_INDEX_FILE", self.file.as_os_str())
    }

    /// Brings the index up to the tree; what cannot be read is left out and reported.
    fn add_everything(&self) -> Result<Option<String>, Error> {
        let wrapper = self.reading("add")?;
        let add = |call: Call| {
            let call = call.args(["--all", "--ignore-errors", "--", "."]).remote(Retry::Later);
            call.behind(wrapper.clone()).finish()
        };
        let mut done = add(self.call("add"))?;
        for _ in 1..ADD_TRIES {
            if let Some(answer) = added(&done) {
                return Ok(answer);
            }
            done = add(self.call("add"))?;
        }
        if let Some(answer) = added(&done) {
            return Ok(answer);
        }
        // Attributes can make a file impossible to add (an encoding that it does not have). Then as it is.
        let plain = add(self.call("add").git_dir(&self.incoming.without_attributes()?))?;
        match added(&plain) {
            Some(_) => Ok(Some(super::error::excerpt(&done.stderr))),
            None => Err(Error::Failed {
                operation: "add",
                inputs: self.work_dir.display().to_string(),
                end: plain.end,
                stderr: super::error::excerpt(&plain.stderr),
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

/// What `add` did: everything, or not everything and why; nothing if it gave up, and then it did nothing.
fn added(done: &Finished) -> Option<Option<String>> {
    match done.end {
        End::Exited(0) => Some(None),
        End::Exited(1) => Some(Some(super::error::excerpt(&done.stderr))),
        End::Exited(_) | End::Signalled(_) | End::TimedOut | End::Cancelled => None,
    }
}

/// What differs between a commit and a tree; every file of the tree without a commit.
pub(super) fn changes(incoming: &Incoming<'_>, head: Option<&Sha>, tree: &Sha) -> Result<Vec<Change>, Error> {
    let Some(head) = head else {
        let listed = incoming.call("ls-tree").args(["-r", "-z", tree.as_str()]).bytes()?;
        return Ok(listed.split(|b| *b == 0).filter_map(listed_file).collect());
    };
    let listed = incoming
        .call("diff-tree")
        .args(["-r", "-z", "--raw", "--no-renames", head.as_str(), tree.as_str(), "--"])
        .bytes()?;
    let mut fields = listed.split(|b| *b == 0);
    let mut changes = Vec::new();
    // `:<old mode> <new mode> <old object> <new object> <status>` NUL `<path>` NUL
    while let (Some(meta), Some(path)) = (fields.next(), fields.next()) {
        let mut words = meta.split(|b| *b == b' ');
        let new_mode = words.nth(1).unwrap_or_default();
        let status = words.nth(2).unwrap_or_default();
        changes.push(Change {
            path: path.to_vec(),
            is_addition: status == b"A",
            is_deletion: status == b"D",
            is_repository: new_mode == REPOSITORY_MODE,
        });
    }
    Ok(changes)
}

/// `<mode> SP <type> SP <object> TAB <path>`
fn listed_file(entry: &[u8]) -> Option<Change> {
    let tab = entry.iter().position(|b| *b == b'\t')?;
    let is_repository = entry.starts_with(REPOSITORY_MODE);
    Some(Change { path: entry[tab + 1..].to_vec(), is_addition: true, is_deletion: false, is_repository })
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
