//! One daemon per state directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Held as long as this value lives. The operating system gives the lock up when the process dies,
/// however it dies; there is nothing to clean up and no pid to mistake.
#[derive(Debug)]
pub struct DaemonLock {
    // Closed on exec, so an agent or a tmux server that outlives us does not keep the lock.
    file: File,
}

/// The reasons why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} is held by another daemon", path.display())]
    Held {
        path: PathBuf,
        /// Who says to hold it; a hint for people, never something to signal.
        pid_hint: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
}

impl DaemonLock {
    /// Takes the lock without waiting. The file stays when the lock goes: removing it could pull it
    /// from under a process that just took it.
    pub fn acquire(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Held { path: path.to_owned(), pid_hint: read_hint(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut lock = Self { file };
        // Only a hint: a full disk must not stop the daemon from holding the lock.
        let _ = lock.write_hint();
        Ok(lock)
    }

    fn write_hint(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        writeln!(self.file, "{}", std::process::id())
    }
}

impl Drop for DaemonLock {
    fn drop(&mut self) {
        // A stale hint would name an innocent process later.
        let _ = self.file.set_len(0);
    }
}

fn read_hint(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{DaemonLock, Error};

    #[test]
    fn only_one_holds_it_and_the_next_gets_it_after_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.lock");
        let first = DaemonLock::acquire(&path).unwrap();
        match DaemonLock::acquire(&path) {
            Err(Error::Held { pid_hint, .. }) => assert_eq!(pid_hint, Some(std::process::id())),
            other => panic!("{other:?}"),
        }
        drop(first);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "");
        DaemonLock::acquire(&path).unwrap();
    }

    #[test]
    fn rubbish_left_in_the_file_is_no_obstacle() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("daemon.lock");
        std::fs::write(&path, "99999999999999999999 not a pid").unwrap();
        let lock = DaemonLock::acquire(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), std::process::id().to_string());
        drop(lock);
    }

    #[test]
    fn a_path_that_cannot_be_opened_is_an_error_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(DaemonLock::acquire(directory.path()), Err(Error::File { .. })));
    }
}
