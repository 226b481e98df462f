//! Objects on their way into the mirror: made in a directory of their own, synced together, then moved in.
//!
//! Git with full fsync waits for the disk once per object. Syncing all of them at the end, at the same time, promises
//! exactly as much (nothing refers to an object before it is safe) and waits about once. What is not kept in the end
//! leaves nothing behind in the mirror.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::mirror::Mirror;
use super::{Call, Error, files};

/// How many files are synced at the same time; they share what the disk does for each.
const SYNC_THREADS: usize = 32;

/// How the names of scratch directories begin. A killed process leaves its own; they are removed at the next start.
pub(super) const PREFIX: &str = "pointsman-capture-";

/// Attributes that take everything back that says how a file's bytes become an object.
const AS_IT_IS: &str = "* !text !crlf !eol !working-tree-encoding !ident !filter\n";

/// A scratch directory in the mirror that takes new objects until they are kept.
pub(super) struct Incoming<'a> {
    mirror: &'a Mirror,
    scratch: TempDir,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(mirror: &'a Mirror) -> Result<Self, Error> {
        let scratch = tempfile::Builder::new()
            .prefix(PREFIX)
            .tempdir_in(mirror.dir())
            .map_err(files::error("make a directory in", mirror.dir()))?;
        let info = scratch.path().join("objects/info");
        files::create_dir_all(&info)?;
        let mut line = mirror.objects().as_os_str().as_bytes().to_vec();
        line.push(b'\n');
        let alternates = info.join("alternates");
        // Not synced: nobody needs it after a power cut.
        fs::write(&alternates, line).map_err(files::error("write", &alternates))?;
        Ok(Self { mirror, scratch })
    }

    /// Where other things of the same short life may be put.
    pub(super) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// A call of git on the mirror that sees all of its objects and writes new ones here.
    pub(super) fn call(&self, operation: &'static str) -> Call {
        self.mirror
            .call(operation)
            .config("core.fsync", "none")
            .env("GIT_OBJECT_DIRECTORY", self.objects().as_os_str())
    }

    /// The sandbox for a call of ours that opens files of a working tree: it sees the objects, and writes here and to `write`.
    pub(super) fn reading(
        &self,
        operation: &'static str,
        work_dir: &Path,
        write: &[&Path],
    ) -> Result<Vec<OsString>, Error> {
        let mut read = vec![work_dir, self.mirror.dir()];
        read.extend(self.mirror.lender());
        let write: Vec<&Path> = write.iter().copied().chain([self.scratch.path()]).collect();
        self.mirror.git.reading(operation, &read, &write, work_dir)
    }

    /// A repository like the mirror, for a call on a working tree whose files are to be taken as they are: its own
    /// attributes are stronger than those of the tree. (`GIT_ATTR_SOURCE` does the same, since git 2.41.)
    pub(super) fn without_attributes(&self) -> Result<PathBuf, Error> {
        let dir = self.scratch.path().join("without-attributes");
        for part in ["refs", "info"] {
            files::create_dir_all(&dir.join(part))?;
        }
        for part in ["HEAD", "config"] {
            let from = self.mirror.dir().join(part);
            fs::copy(&from, dir.join(part)).map_err(files::error("copy", &from))?;
        }
        self.mirror.lend_shallow(&dir)?;
        let attributes = dir.join("info/attributes");
        fs::write(&attributes, AS_IT_IS).map_err(files::error("write", &attributes))?;
        Ok(dir)
    }

    /// Makes everything durable and part of the mirror.
    pub(super) fn keep(&self) -> Result<(), Error> {
        let mut new = self.list()?;
        sync(&new)?;
        // A pack counts from the moment its index is there.
        new.sort_by_key(|file| file.extension() == Some(OsStr::new("idx")));
        let mut touched = BTreeSet::new();
        for file in &new {
            let relative = file.strip_prefix(self.objects()).expect("it was listed there");
            let place = self.mirror.objects().join(relative);
            let dir = place.parent().expect("an object lies in a directory").to_owned();
            if touched.insert(dir.clone()) && !dir.is_dir() {
                files::create_dir_all(&dir)?;
                touched.insert(self.mirror.objects());
            }
            fs::rename(file, &place).map_err(files::error("move into place", &place))?;
        }
        sync(&touched.into_iter().collect::<Vec<_>>())
    }

    fn objects(&self) -> PathBuf {
        self.scratch.path().join("objects")
    }

    /// Loose objects and packs. A file that git was still writing when it was ended is neither.
    fn list(&self) -> Result<Vec<PathBuf>, Error> {
        let mut found = Vec::new();
        for dir in entries(&self.objects())? {
            if dir.file_name() == Some(OsStr::new("info")) || !dir.is_dir() {
                continue;
            }
            let whole =
                |file: &PathBuf| file.file_name().is_some_and(|name| !name.as_bytes().starts_with(b"tmp_"));
            found.extend(entries(&dir)?.into_iter().filter(whole));
        }
        Ok(found)
    }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = fs::read_dir(dir).map_err(files::error("list", dir))?;
    listed.map(|entry| entry.map(|e| e.path()).map_err(files::error("list", dir))).collect()
}

/// Waits until the disk has all of these files and directories.
fn sync(paths: &[PathBuf]) -> Result<(), Error> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<(), Error> {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            File::open(path).and_then(|file| file.sync_all()).map_err(files::error("sync", path))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..paths.len().min(SYNC_THREADS)).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().try_for_each(join)
    })
}
