//! The leftovers of demos that were killed, and their removal by the next one.
//!
//! A demo holds a lock on a file in its directory for as long as it lives. Whoever gets that lock knows that the owner is
//! gone. A directory that is kept on purpose has no such file.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use pointsman_adapters::tmux::Server;
use rustix::fs::{FlockOperation, flock};

use crate::cli::down;
use crate::control::client;
use crate::control::protocol::Request;
use crate::paths::Paths;

/// The beginning of the names of a demo's directories.
pub(crate) const PREFIX: &str = "pointsman-demo-";
const LOCK: &str = "lock";
/// Where the sockets are.
const RUN: &str = "run";

/// The lock of a living demo.
pub(crate) struct Owner {
    file: PathBuf,
    _held: File,
}

impl Owner {
    /// Marks a demo's directory as in use.
    pub(crate) fn of(root: &Path, run: &Path) -> io::Result<Self> {
        fs::write(root.join(RUN), run.as_os_str().as_encoded_bytes())?;
        // Held before it has its name: nobody finds it unlocked.
        let (draft, file) = (root.join("lock.new"), root.join(LOCK));
        let held = File::create(&draft)?;
        flock(&held, FlockOperation::NonBlockingLockExclusive)?;
        fs::rename(&draft, &file)?;
        Ok(Self { file, _held: held })
    }

    /// Leaves the directory to people: no demo removes it.
    pub(crate) fn release(self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Stops and removes what killed demos left in this directory.
pub(crate) fn sweep(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for root in entries.flatten().map(|entry| entry.path()) {
        let named = root.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
        if !named || fs::symlink_metadata(&root).map_or(true, |meta| !meta.is_dir()) {
            continue;
        }
        let Ok(lock) = File::open(root.join(LOCK)) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&root);
        }
    }
}

fn remove(root: &Path) {
    let run = fs::read_to_string(root.join(RUN)).ok().map(PathBuf::from);
    if let Some(run) = run.filter(|run| is_ours(run)) {
        let paths = Paths::new(root.join("state"), run.clone());
        // A daemon whose demo is gone still works, and writes until it has stopped.
        if client::ask(&paths.control_socket(), &Request::Down).is_ok() {
            let _ = down::wait_until_stopped(&paths);
        }
        end_sessions(&paths);
        super::stage::remove(&run);
    }
    super::stage::remove(root);
}

/// Only a directory that a demo made is removed, whatever the file says.
fn is_ours(run: &Path) -> bool {
    let named = run.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    named && run.parent() == Some(Path::new("/tmp"))
}

/// Ends our tmux server, and with it the sessions and whatever runs in them.
pub(crate) fn end_sessions(paths: &Paths) {
    if paths.tmux_socket().exists()
        && let Ok(server) = Server::new(paths.tmux_socket(), paths.tmux_config())
    {
        let _ = server.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Owner, sweep};

    #[test]
    fn only_the_directory_of_a_demo_that_is_gone_is_removed() {
        let cache = tempfile::tempdir().unwrap();
        let dir = |name: &str| {
            let dir = cache.path().join(name);
            fs::create_dir(&dir).unwrap();
            dir
        };
        let names = ["pointsman-demo-alive", "pointsman-demo-kept", "pointsman-demo-gone", "other"];
        let [alive, kept, gone, other] = names.map(dir);
        let nowhere = cache.path().join("nowhere");
        let owner = Owner::of(&alive, &nowhere).unwrap();
        Owner::of(&kept, &nowhere).unwrap().release();
        drop(Owner::of(&gone, &nowhere).unwrap());
        drop(Owner::of(&other, &nowhere).unwrap());
        sweep(cache.path());
        assert!(alive.exists() && kept.exists() && !gone.exists() && other.exists());
        drop(owner);
        sweep(cache.path());
        assert!(!alive.exists() && kept.exists());
    }
}
