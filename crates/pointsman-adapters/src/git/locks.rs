//! Lock files that a killed git left behind. A lock is the file that a git at work has made for itself; nothing in it
//! says who made it, so it is cleared only in repositories of ours, and only when its maker is proven dead.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::mirror::Mirror;
use super::{Error, files};
use crate::process::census;

/// Locks outside of `refs`, where any name may be locked.
const TOP_LOCKS: [&str; 6] =
    ["HEAD.lock", "config.lock", "config.worktree.lock", "index.lock", "packed-refs.lock", "shallow.lock"];
/// Directories that a killed process of ours, or the receiving end of a killed push, leaves.
const LEFTOVERS: [(&str, &str); 2] = [("", super::incoming::PREFIX), ("objects", "tmp_objdir-")];

/// The result of a search for locks that dead processes left in a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locks {
    None,
    /// These were left by processes that are dead, and are gone now.
    Cleared(Vec<PathBuf>),
    /// Somebody works on the repository, so they were left alone.
    InUse {
        locks: Vec<PathBuf>,
        by: Vec<u32>,
    },
}

/// Removes what a killed git left in a repository of ours and answers what it was. Every later write to a reference
/// fails until its lock is gone.
///
/// Call it only while no git of ours works on the repository: at start, before anything else.
pub fn clear_stale_locks(git_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut cleared = Vec::new();
    for lock in list_locks(git_dir)? {
        if was_there(&lock, fs::remove_file(&lock))? {
            tracing::warn!(lock = %lock.display(), "removed a lock that a killed git left");
            cleared.push(lock);
        }
    }
    for (part, prefix) in LEFTOVERS {
        for entry in entries(&git_dir.join(part))? {
            let is_leftover =
                entry.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
            if is_leftover && was_there(&entry, fs::remove_dir_all(&entry))? {
                cleared.push(entry);
            }
        }
    }
    Ok(cleared)
}

/// Removes the locks of a repository of ours whose makers are dead, while other work goes on.
///
/// The proof: a lock that was there before nobody worked on the repository, and is the same one after, has no living
/// maker. Nobody else can take its place meanwhile: a lock is made only where none is. Processes count as working on
/// the repository if they are in it, have a file of it open, or were told its path.
pub fn clear_dead_locks(git_dir: &Path) -> Result<Locks, Error> {
    let git_dir = git_dir.canonicalize().map_err(files::error("find", git_dir))?;
    let found: Vec<(PathBuf, Identity)> =
        list_locks(&git_dir)?.into_iter().filter_map(|lock| identity(&lock).map(|id| (lock, id))).collect();
    if found.is_empty() {
        return Ok(Locks::None);
    }
    let by = others_working_on(&git_dir);
    if !by.is_empty() {
        return Ok(Locks::InUse { locks: found.into_iter().map(|(lock, _)| lock).collect(), by });
    }
    let mut cleared = Vec::new();
    for (lock, id) in found {
        if identity(&lock) == Some(id) && was_there(&lock, fs::remove_file(&lock))? {
            tracing::warn!(lock = %lock.display(), "removed a lock whose git is dead");
            cleared.push(lock);
        }
    }
    Ok(if cleared.is_empty() { Locks::None } else { Locks::Cleared(cleared) })
}

/// Moves locks of somebody else's repository aside whose makers are dead, into a directory beside `refs`.
///
/// The proof is that of [`clear_dead_locks`], and holds only for processes that we can see: a lock of another user, on
/// a file system that other machines use too, or made a moment ago is left alone.
pub fn move_dead_locks(git_dir: &Path) -> Result<Locks, Error> {
    let git_dir = git_dir.canonicalize().map_err(files::error("find", git_dir))?;
    let found: Vec<(PathBuf, Identity)> =
        list_locks(&git_dir)?.into_iter().filter_map(|lock| identity(&lock).map(|id| (lock, id))).collect();
    if found.is_empty() {
        return Ok(Locks::None);
    }
    let in_use = |by| Locks::InUse { locks: found.iter().map(|(lock, _)| lock.clone()).collect(), by };
    if is_shared(&git_dir) || !found.iter().all(|(lock, _)| is_ours_and_old(lock)) {
        return Ok(in_use(Vec::new()));
    }
    let by = others_working_on(&git_dir);
    if !by.is_empty() {
        return Ok(in_use(by));
    }
    let aside = git_dir.join(MOVED);
    files::create_dir_all(&aside)?;
    let mut moved = Vec::new();
    for (lock, id) in found {
        if identity(&lock) != Some(id) {
            continue;
        }
        let name = lock.strip_prefix(&git_dir).unwrap_or(&lock).to_string_lossy().replace('/', "-");
        let place = aside.join(format!("{}-{name}", id.1));
        if was_there(&lock, fs::rename(&lock, &place))? {
            moved.push(place);
        }
    }
    Ok(if moved.is_empty() { Locks::None } else { Locks::Cleared(moved) })
}

/// The processes that work on a repository, without those of this program: a command that was told the path holds no lock, and a git
/// that it runs is a process of its own.
fn others_working_on(git_dir: &Path) -> Vec<u32> {
    let program = |pid: &str| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = program("self");
    let mut by = census::working_on(git_dir);
    by.retain(|pid| own.is_none() || program(&pid.to_string()) != own);
    by
}

/// Where locks of other repositories are moved to.
const MOVED: &str = "pointsman-moved-locks";
/// Git holds a lock for moments.
const OLD: Duration = Duration::from_secs(10);

fn is_ours_and_old(lock: &Path) -> bool {
    let Ok(meta) = lock.symlink_metadata() else { return false };
    let us = rustix::process::geteuid();
    let old = meta.modified().ok().and_then(|at| at.elapsed().ok()).is_some_and(|age| age >= OLD);
    old && (us.is_root() || meta.uid() == us.as_raw())
}

/// Whether other machines may work in the directory. What cannot be told counts as shared.
fn is_shared(dir: &Path) -> bool {
    // NFS, SMB, CIFS, FUSE, 9P, AFS, Ceph: the magic numbers of statfs(2).
    const SHARED: [u64; 7] =
        [0x6969, 0xFE53_4D42, 0xFF53_4D42, 0x6573_5546, 0x0102_1997, 0x5346_414F, 0x00C3_6400];
    let Ok(kind) = rustix::fs::statfs(dir).map(|stat| stat.f_type) else { return true };
    // The kernel's type differs between machines; the numbers have 32 bits.
    SHARED.contains(&(u64::try_from(kind).unwrap_or_default() & 0xFFFF_FFFF))
}

/// The locks of a repository, sorted. Looks, and touches nothing.
pub fn list_locks(git_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let top = TOP_LOCKS.iter().map(|name| git_dir.join(name));
    let mut found: Vec<PathBuf> = top.filter(|lock| lock.symlink_metadata().is_ok()).collect();
    // No reference can be called `*.lock`.
    list_below(&git_dir.join("refs"), &mut found)?;
    found.sort();
    Ok(found)
}

fn list_below(dir: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    for path in entries(dir)? {
        let is_dir = path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_dir {
            list_below(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "lock") {
            found.push(path);
        }
    }
    Ok(())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    match fs::read_dir(dir) {
        Ok(entries) => {
            entries.map(|entry| entry.map(|e| e.path()).map_err(files::error("list", dir))).collect()
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(files::error("list", dir)(e)),
    }
}

/// Whether what was removed had been there.
fn was_there(path: &Path, removed: io::Result<()>) -> Result<bool, Error> {
    match removed {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(files::error("remove", path)(e)),
    }
}

/// Tells a file from another one that took its name, and its place on the disk, later.
type Identity = (u64, u64, i64, i64);

fn identity(path: &Path) -> Option<Identity> {
    let meta = path.symlink_metadata().ok()?;
    Some((meta.dev(), meta.ino(), meta.ctime(), meta.ctime_nsec()))
}

impl Mirror {
    /// Removes what a killed git left; see [`clear_stale_locks`].
    pub fn clear_stale_locks(&self) -> Result<Vec<PathBuf>, Error> {
        clear_stale_locks(self.dir())
    }

    /// Moves locks aside in the remote, if it is a repository on this machine and their makers are proven dead. It may
    /// not be ours, so nothing is deleted; see [`move_dead_locks`].
    pub fn move_dead_remote_locks(&self) -> Result<Locks, Error> {
        let Some(remote) = self.remote_path() else { return Ok(Locks::None) };
        let inner = remote.join(".git");
        move_dead_locks(if inner.is_dir() { &inner } else { remote })
    }
}
