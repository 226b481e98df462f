//! Files that are written, replaced or removed, told by name.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use inotify::{EventMask, Inotify, WatchDescriptor, WatchMask, Watches};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::wake::Wake;

/// Room for a few hundred events with names of usual length.
const BUFFER: usize = 16 * 1024;

/// What is asked of the kernel. A file counts as written when its writer closes it or moves it into place, so a write
/// in progress wakes nobody; one that disappears is told as well.
fn mask() -> WatchMask {
    WatchMask::CLOSE_WRITE
        | WatchMask::MOVED_TO
        | WatchMask::MOVED_FROM
        | WatchMask::DELETE
        | WatchMask::DELETE_SELF
        | WatchMask::MOVE_SELF
        | WatchMask::ONLYDIR
}

/// A change among the watched files. It carries no content: whoever receives it reads the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileEvent {
    /// A registered file was written, replaced or removed: look at it.
    Changed(PathBuf),
    /// The kernel dropped events: look at everything.
    Overflow,
    /// A watched directory is missing now; watch it again once it exists.
    Gone(PathBuf),
}

/// Watches directories from one thread for the files that are registered. Dropping it ends the thread.
#[derive(Debug)]
pub struct FileWatch {
    shared: Arc<Mutex<Registered>>,
    watches: Mutex<Watches>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Registered {
    directories: HashMap<WatchDescriptor, PathBuf>,
    files: HashSet<PathBuf>,
}

impl FileWatch {
    /// Starts the thread; it calls `on_event` for everything that happens to registered files.
    pub fn start(on_event: impl FnMut(FileEvent) + Send + 'static) -> io::Result<FileWatch> {
        let inotify = Inotify::init()?;
        let wake = Wake::new()?;
        let shared = Arc::new(Mutex::new(Registered::default()));
        let watches = Mutex::new(inotify.watches());
        let reader = Reader { inotify, wake: wake.clone(), shared: Arc::clone(&shared), on_event };
        let thread = std::thread::Builder::new().name("file-watch".to_owned()).spawn(move || reader.run())?;
        Ok(FileWatch { shared, watches, wake, thread: Some(thread) })
    }

    /// Watches a directory; again is fine. Files in it are told under the path given here.
    pub fn watch_dir(&self, path: impl Into<PathBuf>) -> io::Result<()> {
        let path = path.into();
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        // Held while the kernel is asked, so that no event can arrive before its directory is known.
        let mut registered = lock(&self.shared);
        let descriptor = watches.add(&path, mask())?;
        registered.directories.insert(descriptor, path);
        Ok(())
    }

    /// From now on this file is told about. A change just before may be missed: register, then read.
    pub fn register(&self, path: impl Into<PathBuf>) {
        lock(&self.shared).files.insert(path.into());
    }

    /// This file is of no interest any more.
    pub fn unregister(&self, path: &Path) {
        lock(&self.shared).files.remove(path);
    }
}

impl Drop for FileWatch {
    fn drop(&mut self) {
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Reader<F> {
    inotify: Inotify,
    wake: Wake,
    shared: Arc<Mutex<Registered>>,
    on_event: F,
}

impl<F: FnMut(FileEvent)> Reader<F> {
    fn run(mut self) {
        let mut buffer = [0; BUFFER];
        while self.wait() {
            let events = match self.inotify.read_events(&mut buffer) {
                Ok(events) => events,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => {
                    tracing::error!(%error, "file changes are not noticed any more");
                    return (self.on_event)(FileEvent::Overflow);
                }
            };
            for event in events {
                let told = lock(&self.shared).event(&event.wd, event.mask, event.name);
                if let Some(told) = told {
                    (self.on_event)(told);
                }
            }
        }
    }

    /// Sleeps until there is something to read; false when the watch is to end.
    fn wait(&self) -> bool {
        loop {
            let mut fds = [PollFd::new(&self.inotify, PollFlags::IN), PollFd::new(&self.wake, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => return fds[1].revents().is_empty(),
                Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "file changes are not noticed any more");
                    return false;
                }
            }
        }
    }
}

impl Registered {
    fn event(
        &mut self,
        descriptor: &WatchDescriptor,
        mask: EventMask,
        name: Option<&OsStr>,
    ) -> Option<FileEvent> {
        if mask.contains(EventMask::Q_OVERFLOW) {
            return Some(FileEvent::Overflow);
        }
        // A directory that goes is told once: whichever of these comes first takes it out of the table.
        if mask.intersects(
            EventMask::DELETE_SELF | EventMask::MOVE_SELF | EventMask::IGNORED | EventMask::UNMOUNT,
        ) {
            return self.directories.remove(descriptor).map(FileEvent::Gone);
        }
        let path = self.directories.get(descriptor)?.join(name?);
        self.files.contains(&path).then_some(FileEvent::Changed(path))
    }
}

fn lock(registered: &Mutex<Registered>) -> MutexGuard<'_, Registered> {
    // No code that can panic runs between two steps of an update.
    registered.lock().unwrap_or_else(PoisonError::into_inner)
}
