//! Lock files that a killed git left behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Error, files};

/// Removes the lock files of a repository of ours and answers which. A killed git leaves them now and then, and every
/// later write to that reference fails until they are gone.
///
/// Call it only while no git of ours works on the repository: at start, before anything else.
pub fn clear_stale_locks(git_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut cleared = Vec::new();
    for name in
        ["HEAD.lock", "config.lock", "config.worktree.lock", "index.lock", "packed-refs.lock", "shallow.lock"]
    {
        clear(&git_dir.join(name), &mut cleared)?;
    }
    // No reference can be called `*.lock`.
    clear_below(&git_dir.join("refs"), &mut cleared)?;
    Ok(cleared)
}

fn clear_below(dir: &Path, cleared: &mut Vec<PathBuf>) -> Result<(), Error> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(files::error("list", dir)(e)),
    };
    for entry in entries {
        let entry = entry.map_err(files::error("list", dir))?;
        let kind = entry.file_type().map_err(files::error("look at", dir))?;
        let path = entry.path();
        if kind.is_dir() {
            clear_below(&path, cleared)?;
        } else if path.extension().is_some_and(|e| e == "lock") {
            clear(&path, cleared)?;
        }
    }
    Ok(())
}

fn clear(lock: &Path, cleared: &mut Vec<PathBuf>) -> Result<(), Error> {
    match fs::remove_file(lock) {
        Ok(()) => {
            tracing::warn!(lock = %lock.display(), "removed a lock that a killed git left");
            cleared.push(lock.to_owned());
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(files::error("remove", lock)(e)),
    }
}
