//! Processes that end, told within milliseconds and without looking at any of them in between.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::wake::Wake;
use crate::process::start_time;

/// How many ends are collected in one go; more are told in the next.
const BATCH: usize = 64;

/// The token of the descriptor that ends the thread; watched processes count from 1.
const WAKE_TOKEN: u64 = 0;

/// A watched process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exited {
    /// The name it was watched under.
    pub key: String,
    /// Its pid, which may be another process by now.
    pub pid: u32,
}

/// A reason why a process cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// That process has ended already; the pid is free or belongs to another one.
    #[error("process {pid} is gone already")]
    AlreadyGone {
        /// The pid that was asked for.
        pid: u32,
    },
    /// The kernel is too old: pidfds came with Linux 5.3.
    #[error("this kernel cannot watch processes (pidfd_open is missing; Linux 5.3 or newer is needed)")]
    Unsupported,
    #[error("cannot watch process {pid}")]
    Os {
        /// The pid that was asked for.
        pid: u32,
        #[source]
        source: io::Error,
    },
}

/// Watches any number of processes from one thread. Dropping it ends the thread.
#[derive(Debug)]
pub struct ExitWatch {
    shared: Arc<Shared>,
    wake: Wake,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    epoll: OwnedFd,
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    last_token: u64,
    by_token: HashMap<u64, (Exited, OwnedFd)>,
    by_key: HashMap<String, u64>,
}

impl ExitWatch {
    /// Starts the thread; it calls `on_exit` for each process that ends.
    pub fn start(mut on_exit: impl FnMut(Exited) + Send + 'static) -> io::Result<ExitWatch> {
        let wake = Wake::new()?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE_TOKEN), EventFlags::IN)?;
        let shared = Arc::new(Shared { epoll, watched: Mutex::default() });
        let theirs = Arc::clone(&shared);
        let run = move || theirs.run(&mut on_exit);
        let thread = std::thread::Builder::new().name("exit-watch".to_owned()).spawn(run)?;
        Ok(ExitWatch { shared, wake, thread: Some(thread) })
    }

    /// Watches the process that has this pid and started at this time, under a name; an earlier watch of that name
    /// is forgotten. If the process ends at any moment after this returned, its end is told.
    pub fn watch(&self, key: impl Into<String>, pid: u32, started: u64) -> Result<(), Error> {
        let key = key.into();
        let os = |source: Errno| Error::Os { pid, source: source.into() };
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(Error::AlreadyGone { pid })?;
        let pidfd = pidfd_open(raw, PidfdFlags::empty()).map_err(|errno| match errno {
            Errno::SRCH => Error::AlreadyGone { pid },
            Errno::NOSYS => Error::Unsupported,
            other => os(other),
        })?;
        // Compared after the descriptor is open: it names one process for good, so if the time is right now, it was
        // the right process then.
        if start_time(pid) != Some(started) {
            return Err(Error::AlreadyGone { pid });
        }
        let mut watched = self.shared.lock();
        watched.forget(&key);
        watched.last_token += 1;
        let token = watched.last_token;
        // A descriptor that is readable already is told as soon as the lock is free, and finds its entry then.
        epoll::add(&self.shared.epoll, &pidfd, EventData::new_u64(token), EventFlags::IN).map_err(os)?;
        watched.by_key.insert(key.clone(), token);
        watched.by_token.insert(token, (Exited { key, pid }, pidfd));
        Ok(())
    }

    /// Stops watching; the end of that process is not told any more, unless it is being told right now.
    pub fn forget(&self, key: &str) {
        self.shared.lock().forget(key);
    }

    /// The number of watched processes.
    pub fn len(&self) -> usize {
        self.shared.lock().by_token.len()
    }

    /// Whether no process is watched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for ExitWatch {
    fn drop(&mut self) {
        self.wake.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, on_exit: &mut impl FnMut(Exited)) {
        let mut events: Vec<Event> = Vec::with_capacity(BATCH);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "process ends are not noticed any more");
                    return;
                }
            }
            for event in &events {
                let token = event.data.u64();
                if token == WAKE_TOKEN {
                    return;
                }
                let exited = self.lock().take(token);
                if let Some(exited) = exited {
                    on_exit(exited);
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        // No code that can panic runs between two steps of an update.
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Closing the last descriptor also takes it out of the epoll set.
    fn take(&mut self, token: u64) -> Option<Exited> {
        let (exited, _pidfd) = self.by_token.remove(&token)?;
        self.by_key.remove(&exited.key);
        Some(exited)
    }

    fn forget(&mut self, key: &str) {
        if let Some(token) = self.by_key.get(key).copied() {
            self.take(token);
        }
    }
}
