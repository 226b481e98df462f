//! Reports of hooks while no daemon runs: one file per session, a line per report, read in order by whoever finds the
//! daemon again first.
//!
//! Writers and readers hold the file's lock. A reader removes the file while it holds the lock; a writer that waited for
//! it sees that its file has no name any more, and begins a new one. So nothing is lost between the two.
//!
//! The file belongs to the session, which can hold its lock for as long as it likes and write into it whatever it
//! likes. The daemon therefore never waits for the lock, and takes a limited number of reports at a time.

use std::fs::{File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pointsman_core::hook::Report;
use pointsman_core::workflow::WorkflowId;

use crate::paths::Paths;

const NAME: &str = "hooks.spool";
/// A daemon that is away for days must not find a full disk. The oldest reports are the ones that stay.
const LARGEST: u64 = 16 << 20;
/// A file that is removed under us again and again is somebody's game.
const TRIES: usize = 100;
/// The most lines that the daemon takes from one spool at a time. Each can cost a commit, and a session that writes its
/// spool itself is not held to the limits of the socket.
const LINES_AT_ONCE: usize = 200;
/// The lines that the daemon leaves for its next look are written here before they replace the spool.
const REST: &str = "hooks.spool.rest";

/// One session's spool.
pub(crate) struct Spool {
    path: PathBuf,
}

impl Spool {
    /// The spool of one session, among the files that it can write.
    pub(crate) fn of(paths: &Paths, id: &WorkflowId, generation: u32) -> Self {
        Self::in_dir(&paths.project(id.project()).sandbox(id).join(format!("run-{generation}")))
    }

    /// The spools that the daemon reads: that of the present session, and the place where 0.1.0 had them.
    pub(crate) fn read_by_daemon(paths: &Paths, id: &WorkflowId, generation: u32) -> [Self; 2] {
        [Self::in_dir(&paths.project(id.project()).sandbox(id)), Self::of(paths, id, generation)]
    }

    /// The spool in this directory.
    pub(crate) fn in_dir(session_files: &Path) -> Self {
        Self { path: session_files.join(NAME) }
    }

    /// Adds a report at the end. The directory must exist: a session that we never started has none.
    pub(crate) fn add(&self, report: &Report) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        for _ in 0..TRIES {
            let Some(mut file) = self.open(true)? else { continue };
            if file.metadata()?.len() + line.len() as u64 > LARGEST {
                return Err(io::Error::other("the spool is full"));
            }
            file.seek(SeekFrom::End(0))?;
            return file.write_all(&line);
        }
        Err(io::Error::other("the spool is removed again and again"))
    }

    /// Gives every report away, oldest first, and removes the file when all were taken. At the first that is not taken
    /// it stays as it is. Waits for the lock: only for processes of the session itself.
    pub(crate) fn drain(&self, take: impl FnMut(&Report) -> bool) -> io::Result<()> {
        match self.path.is_file() {
            true => match self.open(false)? {
                Some(file) => self.give(&file, usize::MAX, take),
                None => Ok(()),
            },
            false => Ok(()),
        }
    }

    /// The same for the daemon: a spool whose lock is held stays for the next look, and so do the lines beyond
    /// [`LINES_AT_ONCE`].
    pub(crate) fn drain_some(&self, take: impl FnMut(&Report) -> bool) -> io::Result<()> {
        if !self.path.is_file() {
            return Ok(());
        }
        let file = self.open_unlocked(false)?;
        match file.try_lock() {
            Ok(()) if file.metadata()?.nlink() > 0 => self.give(&file, LINES_AT_ONCE, take),
            Ok(()) => Ok(()),
            Err(TryLockError::WouldBlock) => {
                tracing::debug!(spool = %self.path.display(), "the spool is locked and stays for the next look");
                Ok(())
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn give(&self, file: &File, most: usize, mut take: impl FnMut(&Report) -> bool) -> io::Result<()> {
        let mut lines = BufReader::new(Read::take(file, LARGEST));
        let mut line = Vec::new();
        for _ in 0..most {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return std::fs::remove_file(&self.path);
            }
            match serde_json::from_slice::<Report>(&line) {
                Ok(report) => {
                    if !take(&report) {
                        return Ok(());
                    }
                }
                // Torn by a full disk, or written by somebody else: there is nothing in it to be taken.
                Err(error) => tracing::warn!(%error, "a line of a spool is no report"),
            }
        }
        self.keep(lines)
    }

    /// Replaces the spool by what is left of it. A writer that waits for the lock finds that its file has no name any
    /// more, as it does after a removal. If we are killed in between, reports come twice, and count once.
    fn keep(&self, mut rest: impl Read) -> io::Result<()> {
        let draft = self.path.with_file_name(REST);
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
        io::copy(&mut rest, &mut file)?;
        std::fs::rename(&draft, &self.path)
    }

    /// Opens and locks it; none if it lost its name while we waited.
    fn open(&self, create: bool) -> io::Result<Option<File>> {
        let file = self.open_unlocked(create)?;
        file.lock()?;
        Ok((file.metadata()?.nlink() > 0).then_some(file))
    }

    fn open_unlocked(&self, create: bool) -> io::Result<File> {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let file = File::options()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(&self.path)?;
        let meta = file.metadata()?;
        if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
            return Err(io::Error::other("the spool is not a file of ours"));
        }
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use pointsman_core::hook::{HookEvent, Report};
    use pointsman_core::time::Timestamp;

    use super::Spool;

    fn report(id: usize) -> Report {
        Report {
            id: id.to_string(),
            session: "dev-shop-1.1".into(),
            at: Timestamp(1),
            told: HookEvent::Stopped { busy: false, messages: Vec::new(), used_tokens: None, said: None },
        }
    }

    #[test]
    fn reports_come_back_in_order_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::in_dir(dir.path());
        spool.drain(|_| panic!("there is nothing")).unwrap();
        for id in 0..3 {
            spool.add(&report(id)).unwrap();
        }
        let mut seen = Vec::new();
        spool
            .drain(|r| {
                seen.push(r.id.clone());
                seen.len() < 2
            })
            .unwrap();
        assert_eq!(seen, ["0", "1"], "not taken: it stays");
        seen.clear();
        spool
            .drain(|r| {
                seen.push(r.id.clone());
                true
            })
            .unwrap();
        assert_eq!(seen, ["0", "1", "2"]);
        spool.drain(|_| panic!("twice")).unwrap();
    }

    #[test]
    fn a_torn_line_costs_itself_only() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::in_dir(dir.path());
        std::fs::write(dir.path().join(super::NAME), "{\"id\": \"to\n").unwrap();
        spool.add(&report(7)).unwrap();
        let mut seen = Vec::new();
        spool
            .drain(|r| {
                seen.push(r.id.clone());
                true
            })
            .unwrap();
        assert_eq!(seen, ["7"]);
    }

    #[test]
    fn the_daemon_does_not_wait_for_a_lock_that_somebody_holds() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::in_dir(dir.path());
        spool.add(&report(1)).unwrap();
        let held = std::fs::File::open(dir.path().join(super::NAME)).unwrap();
        held.lock().unwrap();
        spool.drain_some(|_| panic!("somebody else is at it")).unwrap();
        drop(held);
        let mut seen = Vec::new();
        spool
            .drain_some(|r| {
                seen.push(r.id.clone());
                true
            })
            .unwrap();
        assert_eq!(seen, ["1"]);
    }

    #[test]
    fn the_daemon_takes_a_limited_number_and_finds_the_rest_later() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::in_dir(dir.path());
        let all = super::LINES_AT_ONCE * 2 + 1;
        for id in 0..all {
            spool.add(&report(id)).unwrap();
        }
        let mut seen: Vec<usize> = Vec::new();
        for expected in [super::LINES_AT_ONCE, super::LINES_AT_ONCE * 2, all] {
            let take = |r: &Report| {
                seen.push(r.id.parse().unwrap());
                true
            };
            spool.drain_some(take).unwrap();
            assert_eq!(seen, (0..expected).collect::<Vec<_>>());
            if expected == super::LINES_AT_ONCE {
                std::fs::write(dir.path().join(super::REST), "left by a daemon that was killed").unwrap();
            }
        }
        assert!(!dir.path().join(super::NAME).exists() && !dir.path().join(super::REST).exists());
    }

    #[test]
    fn nothing_is_lost_between_writers_and_a_reader() {
        const EACH: usize = 200;
        let dir = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            let writers: Vec<_> = (0..3)
                .map(|writer| {
                    let spool = Spool::in_dir(dir.path());
                    scope.spawn(move || {
                        for n in 0..EACH {
                            spool.add(&report(writer * EACH + n)).unwrap();
                        }
                    })
                })
                .collect();
            let (done, seen) = (&done, &mut seen);
            let spool = Spool::in_dir(dir.path());
            scope.spawn(move || {
                loop {
                    let last = done.load(Ordering::SeqCst);
                    // Gone between the look and the opening: another reader was faster, or nothing was there.
                    let _ = spool.drain(|r| {
                        seen.push(r.id.parse::<usize>().unwrap());
                        true
                    });
                    if last {
                        break;
                    }
                }
            });
            for writer in writers {
                writer.join().unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        for writer in 0..3 {
            let own: Vec<usize> = seen.iter().copied().filter(|id| id / EACH == writer).collect();
            assert_eq!(own, (writer * EACH..(writer + 1) * EACH).collect::<Vec<_>>(), "in order");
        }
    }
}
