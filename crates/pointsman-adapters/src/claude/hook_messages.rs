//! Messages for a session's own hooks: a file each, given away once.
//!
//! A message is offered as `<name>.offered`. Whoever renames it has it: a hook that hands it to the model (`.taken`), or
//! the sender who wants it back (`.withdrawn`). The rename decides between them, whoever dies next, and what became of a
//! message stays to be seen. A message that went another way leaves a `.given`.
//!
//! The hook that waits beside an idle session holds the lock of `waiter`, which ends with the process that has it.
//!
//! The directory is among the files that the session can change. So the daemon works on the directory itself, not on its path: a link
//! in its place leads nowhere.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use inotify::{Inotify, WatchMask};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, RenameFlags, openat, renameat_with};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use crate::phase_file;

/// A message is one line of ours.
const LETTER_BYTES: u64 = 16 * 1024;
/// More messages than this are not handed over at once; the rest follow.
const LETTERS: usize = 32;
/// A look whether somebody waits takes the lock for a moment: one who wants to wait tries this often.
const LOCK_TRIES: usize = 5;
/// Between two of these tries.
const LOCK_PAUSE: Duration = Duration::from_millis(20);
/// Room for a few dozen file events.
const EVENT_BYTES: usize = 4096;

const OFFERED: &str = "offered";
const TAKEN: &str = "taken";
const WITHDRAWN: &str = "withdrawn";
const GIVEN: &str = "given";
const WAITER: &str = "waiter";

/// The progress of a message between the daemon, which offers it, and the hook that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMessageStatus {
    Offered,
    Taken,
    /// Its sender has it back.
    Withdrawn,
    Given,
}

/// The messages of one session.
#[derive(Clone, Debug)]
pub struct HookMessages {
    dir: PathBuf,
}

impl HookMessages {
    /// The messages in this directory, which may not be there yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Makes the directory, for us alone.
    pub fn create(&self) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)
    }

    /// Offers a message, unless one of this name was offered or given before; says where it is.
    pub fn offer(&self, name: &str, line: &str) -> io::Result<HookMessageStatus> {
        let held = self.held()?;
        match held.message_status(name) {
            Some(message_status) => Ok(message_status),
            None => {
                phase_file::write_state_file(&held.path(name, OFFERED), line.as_bytes())?;
                Ok(HookMessageStatus::Offered)
            }
        }
    }

    /// Takes a message back. False if a hook was faster, or it is not there.
    pub fn withdraw(&self, name: &str) -> io::Result<bool> {
        match self.held() {
            Ok(held) => held.claim(name, WITHDRAWN),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes down that a message goes another way, before it does. False if that was written before.
    pub fn give(&self, name: &str) -> io::Result<bool> {
        match phase_file::create_exclusive(&self.held()?.path(name, GIVEN)) {
            Ok(()) => Ok(true),
            Err(phase_file::Refusal::Exists) => Ok(false),
            Err(refusal) => Err(io::Error::other(refusal.to_string())),
        }
    }

    /// The progress of a message; none if there never was one of this name.
    pub fn message_status(&self, name: &str) -> Option<HookMessageStatus> {
        self.held().ok()?.message_status(name)
    }

    /// Takes what is offered, oldest first. The model has to be told: nobody else will.
    pub fn take(&self) -> Vec<String> {
        let Ok(held) = self.held() else { return Vec::new() };
        let mut names: Vec<(Vec<u64>, String)> = fs::read_dir(&held.path)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let name = name.strip_suffix(OFFERED)?.strip_suffix('.')?.to_owned();
                Some((numbers(&name), name))
            })
            .collect();
        names.sort();
        names.truncate(LETTERS);
        let mine = names.into_iter().filter(|(_, name)| held.claim(name, TAKEN).unwrap_or(false));
        mine.filter_map(|(_, name)| {
            let bytes = phase_file::read_result_file(&held.path(&name, TAKEN), LETTER_BYTES).ok()??;
            Some(String::from_utf8_lossy(&bytes).trim().to_owned())
        })
        .filter(|line| !line.is_empty())
        .collect()
    }

    /// Whether a hook waits beside the session.
    pub fn has_waiter(&self) -> bool {
        // A pipe would keep us waiting.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let open = |held: Held| File::options().read(true).custom_flags(flags).open(held.path.join(WAITER));
        let Ok(file) = self.held().and_then(open) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Waits for messages, as the only one who does, until some come, the limit has passed, or the process that started
    /// us is gone. Nothing at once if somebody waits already, or there is no such directory.
    pub fn wait(&self, limit: Duration) -> io::Result<Vec<String>> {
        let parent = getppid().filter(|pid| *pid != Pid::INIT);
        let Some(parent) = parent.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return Ok(Vec::new());
        };
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let waiter = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags)
            .open(self.dir.join(WAITER))?;
        let mut tries = 0;
        while let Err(error) = waiter.try_lock() {
            tries += 1;
            match error {
                TryLockError::WouldBlock if tries < LOCK_TRIES => std::thread::park_timeout(LOCK_PAUSE),
                TryLockError::WouldBlock => return Ok(Vec::new()),
                TryLockError::Error(error) => return Err(error),
            }
        }
        // Watched before the first look: what is offered in between is told.
        let mut inotify = Inotify::init()?;
        let mask = WatchMask::MOVED_TO | WatchMask::DELETE | WatchMask::ONLYDIR;
        inotify.watches().add(&self.dir, mask)?;
        let deadline = Instant::now() + limit;
        let mut buffer = [0; EVENT_BYTES];
        loop {
            let letters = self.take();
            let left = deadline.saturating_duration_since(Instant::now());
            // A session's files go when its task does.
            let cleared_away = waiter.metadata()?.nlink() == 0;
            if !letters.is_empty() || left.is_zero() || cleared_away {
                return Ok(letters);
            }
            let mut fds = [PollFd::new(&inotify, PollFlags::IN), PollFd::new(&parent, PollFlags::IN)];
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Ok(_) if !fds[1].revents().is_empty() => return Ok(Vec::new()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            match inotify.read_events(&mut buffer) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn held(&self) -> io::Result<Held> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::PATH;
        let dir = openat(CWD, &self.dir, flags, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_raw_fd()));
        Ok(Held { _dir: dir, path })
    }
}

/// The directory itself, whatever its path leads to by now.
struct Held {
    _dir: OwnedFd,
    /// Leads to it as long as it is held.
    path: PathBuf,
}

impl Held {
    fn path(&self, name: &str, end: &str) -> PathBuf {
        self.path.join(format!("{name}.{end}"))
    }

    fn message_status(&self, name: &str) -> Option<HookMessageStatus> {
        let there = |end: &str| fs::symlink_metadata(self.path(name, end)).is_ok();
        [
            (GIVEN, HookMessageStatus::Given),
            (TAKEN, HookMessageStatus::Taken),
            (WITHDRAWN, HookMessageStatus::Withdrawn),
            (OFFERED, HookMessageStatus::Offered),
        ]
        .into_iter()
        .find_map(|(end, message_status)| there(end).then_some(message_status))
    }

    /// Renames an offered message, unless that name is taken; says whether it was us.
    fn claim(&self, name: &str, end: &str) -> io::Result<bool> {
        let (from, to): (&Path, &Path) = (&self.path(name, OFFERED), &self.path(name, end));
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT | Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// The numbers in a name, so that `m-9-1` comes before `m-10-1`.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}
