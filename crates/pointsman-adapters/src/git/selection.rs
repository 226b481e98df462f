//! A few files of a working tree as one commit on top of another, whatever else was done in that tree.
//!
//! The tree is somebody else's: it is read as a [`snapshot`](super::snapshot), and its own commits and configuration
//! count for nothing. Which files are picked is decided elsewhere.

use std::collections::BTreeMap;
use std::path::Path;

use pointsman_core::hand_in::{Change, Kind};
use pointsman_core::ids::Sha;

use super::Error;
use super::commit::Commit;
use super::incoming::Incoming;
use super::inspect::shown;
use super::mirror::Mirror;
use super::snapshot::snapshot;

/// A path in which a working tree differs from a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// What is known of it.
    pub change: Change,
    path: Vec<u8>,
    mode: String,
    /// Its content now; nothing if it is gone.
    pub blob: Option<Sha>,
}

/// The files of a working tree that differ from `base`, committed or not. Ignored files are not looked at.
///
/// All of its files become objects of `mirror`; see [`Mirror::captures`].
pub fn differences(mirror: &Mirror, work_dir: &Path, base: &Sha) -> Result<Vec<Changed>, Error> {
    let taken = snapshot(mirror, work_dir, None)?;
    taken.keep()?;
    let listed = mirror
        .call("diff-tree")
        .args(["-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--end-of-options"])
        .args([base.as_str(), taken.tree.as_str()])
        .bytes()?;
    let mut found = parse(&listed).ok_or_else(|| Error::Unexpected {
        operation: "diff-tree",
        inputs: format!("{base} {}", taken.tree),
        what: "a list that cannot be read",
    })?;
    let sizes = mirror.sizes(found.iter().filter(|one| one.is_file()).filter_map(|one| one.blob.as_ref()))?;
    for changed in &mut found {
        changed.change.size =
            changed.blob.as_ref().and_then(|blob| sizes.get(blob)).copied().unwrap_or_default();
    }
    Ok(found)
}

/// The contents of paths, in their order. None of them may be gone.
pub fn contents(mirror: &Mirror, picked: &[&Changed]) -> Result<Vec<Vec<u8>>, Error> {
    let blobs: Vec<Sha> = picked.iter().filter_map(|one| one.blob.clone()).collect();
    mirror.read_blobs(&blobs)
}

/// Makes the one commit on top of `base` in which these paths, and no others, are as they are in the tree they were found
/// in. The same of the same is the same commit.
pub fn commit(
    mirror: &Mirror,
    base: &Sha,
    picked: &[&Changed],
    message: &str,
    seconds: i64,
) -> Result<Sha, Error> {
    let incoming = Incoming::new(mirror)?;
    let index = incoming.scratch().join("index");
    let call = |operation| incoming.call(operation).env("GIT_INDEX_FILE", index.as_os_str());
    call("read-tree").arg(base.as_str()).ok()?;
    let mut lines = Vec::new();
    for changed in picked {
        let Some(blob) = &changed.blob else { continue };
        lines.extend(format!("{} {blob}\t", changed.mode).into_bytes());
        lines.extend(&changed.path);
        lines.push(0);
    }
    call("update-index").args(["-z", "--index-info"]).stdin(lines).ok()?;
    let tree = call("write-tree").sha()?;
    let made = Commit::ours(&tree, base, seconds, message).write(incoming.call("hash-object"))?;
    incoming.keep()?;
    Ok(made)
}

impl Changed {
    fn is_file(&self) -> bool {
        matches!(self.change.after, Some(Kind::Regular | Kind::Executable))
    }
}

/// `:<old mode> <new mode> <old object> <new object> <status>` NUL `<path>` NUL
fn parse(listed: &[u8]) -> Option<Vec<Changed>> {
    let mut fields = listed.split(|b| *b == 0);
    let mut found = Vec::new();
    while let Some(meta) = fields.next().filter(|meta| !meta.is_empty()) {
        let path = fields.next()?.to_vec();
        let meta = std::str::from_utf8(meta).ok()?.strip_prefix(':')?;
        let [before, mode, _, blob, _] = meta.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let change =
            Change { path: shown(&path), before: Kind::of_mode(before), after: Kind::of_mode(mode), size: 0 };
        let blob = change.after.and_then(|_| Sha::new(blob));
        found.push(Changed { change, path, mode: mode.to_owned(), blob });
    }
    Some(found)
}

impl Mirror {
    /// How large objects are.
    fn sizes<'s>(&self, objects: impl Iterator<Item = &'s Sha>) -> Result<BTreeMap<Sha, u64>, Error> {
        let input: String = objects.map(|sha| format!("{sha}\n")).collect();
        let listed =
            self.call("cat-file").args(["--batch-check=%(objectname) %(objectsize)"]).stdin(input).text()?;
        let sizes = listed.lines().filter_map(|line| {
            let (sha, size) = line.split_once(' ')?;
            Some((Sha::new(sha)?, size.parse().ok()?))
        });
        Ok(sizes.collect())
    }
}
