//! Sessions without a terminal. A small program of ours, the keeper, stays for as long as the session lives, outlives
//! the daemon, and runs the agent once per turn.
//!
//! Daemon and keeper meet in one directory per session ([`session_dir`]): the daemon puts prompts there, each under a name of
//! its own so that it comes once; the keeper says that it sits there, which process its turn is, and how it left.
//! What is run and what its output means does not belong here: the keeper itself is in the program.

pub mod session_dir;

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::driver::{AgentInput, Driver, Exit, FoundSession, NewSession, Sandbox, Sent, SessionHome};
use crate::process::{self, Run};
use crate::retry::Retry;
use session_dir::{Prompt, SessionDir, SessionSpec};

/// For the keeper to take its lock: it does nothing else before.
const SEAT_LIMIT: Duration = Duration::from_secs(20);
/// Between two looks for something that no event tells.
const LOOK: Duration = Duration::from_millis(5);
/// How much of a transcript's end is looked at for its last lines.
const TAIL_BYTES: u64 = 64 * 1024;
/// For a turn whose keeper was killed.
const ORPHAN_GRACE: Duration = Duration::from_millis(500);

/// All sessions without a terminal of one daemon.
#[derive(Debug)]
pub struct Headless {
    dir: PathBuf,
}

/// A failed operation on a session without a terminal.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that becomes part of a path is outside its character set.
    #[error("{what} {value:?} is not made of letters, digits, `-` and `_`")]
    Malformed {
        /// What the value was meant to be.
        what: &'static str,
        value: String,
    },
    /// Another session of that name is there.
    #[error("a session called {0} is there")]
    Exists(String),
    /// The keeper was started and did not take its lock.
    #[error("the keeper of {session} did not start: {log}")]
    NotSeated {
        session: String,
        /// The end of what it said.
        log: String,
    },
    /// The keeper could not be started.
    #[error("the keeper could not be started")]
    Process(#[source] process::Error),
    #[error("{what}")]
    Io {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The advice for the caller: try again, look first, or give up.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Malformed { .. } => Retry::Never,
            Self::Exists(_) | Self::Io { .. } => Retry::Later,
            Self::NotSeated { .. } => Retry::LookFirst,
            Self::Process(source) => source.retry(),
        }
    }

    /// Builds the constructor of an [`Error::Io`] for `map_err`.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// The activity of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnState {
    Nothing,
    /// A turn runs, or its prompt is there.
    Turn,
}

impl Headless {
    /// Sessions in this directory, which need not exist.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The directory of the session with this identity. Its name becomes part of a path, so it is checked first.
    pub fn session_dir(&self, identity: &str) -> Result<SessionDir, Error> {
        check("identity", identity)?;
        Ok(SessionDir::at(self.dir.join(identity)))
    }

    /// The activity of a session; none if no keeper of it is alive.
    pub fn doing(&self, identity: &str) -> Result<Option<TurnState>, Error> {
        let dir = self.session_dir(identity)?;
        if !dir.is_alive()? {
            return Ok(None);
        }
        let busy = dir.turn()?.is_some() || dir.has_waiting()?;
        Ok(Some(if busy { TurnState::Turn } else { TurnState::Nothing }))
    }

    fn make(&self, dir: &SessionDir, new: &NewSession) -> Result<(), Error> {
        match dir.opened() {
            Ok(Some(opened)) if opened.epoch == new.epoch => return Ok(()),
            // A record that nobody can read is nobody's.
            Ok(_) | Err(_) if dir.is_alive()? => return Err(Error::Exists(new.name.clone())),
            Ok(_) | Err(_) => dir.remove()?,
        }
        let opened = SessionSpec {
            epoch: new.epoch.clone(),
            spec: new.spec.clone(),
            transcript: new.transcript.clone(),
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir.prompts())
            .map_err(Error::io("make the session's directory"))?;
        dir.open(&opened)
    }
}

impl Driver for Headless {
    type Error = Error;

    /// A keeper that finds another one in its place leaves at once, so this can be repeated after any error.
    fn start(&self, new: &NewSession) -> Result<(), Error> {
        check("epoch", &new.epoch)?;
        let dir = self.session_dir(&new.name)?;
        self.make(&dir, new)?;
        let keeper = Run::new(&new.program).arg("keep").arg(dir.dir()).inherit(&["PATH"]).cwd("/");
        keeper.start_detached(&dir.log()).map_err(Error::Process)?;
        let deadline = Instant::now() + SEAT_LIMIT;
        while dir.keeper_process()?.is_none() {
            if Instant::now() >= deadline {
                let log = last_lines(&dir.log(), 5).unwrap_or_default().join("; ");
                return Err(Error::NotSeated { session: new.name.clone(), log });
            }
            std::thread::park_timeout(LOOK);
        }
        Ok(())
    }

    fn find(&self, identity: &str) -> Result<Option<FoundSession>, Error> {
        let dir = self.session_dir(identity)?;
        let Some(keeper_process) = dir.keeper_process()? else { return Ok(None) };
        // Whose record was spoilt is nobody's run: it is put away, and another one begins.
        let opened = dir.opened().ok().flatten();
        let dead = !process::is_alive(keeper_process.pid, keeper_process.start_time);
        let exit =
            if dead { dir.left()?.map(|status| Exit { status: Some(status), signal: None }) } else { None };
        Ok(Some(FoundSession {
            placed: SessionHome::Headless,
            pid: keeper_process.pid,
            start_time: Some(keeper_process.start_time),
            epoch: opened.map(|opened| opened.epoch).unwrap_or_default(),
            dead,
            exit,
        }))
    }

    fn list(&self) -> Result<Vec<(String, FoundSession)>, Error> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("look for sessions")(error)),
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            let Some(identity) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if check("identity", &identity).is_ok()
                && let Some(running) = self.find(&identity)?
            {
                found.push((identity, running));
            }
        }
        Ok(found)
    }

    /// The prompt of the next turn, however long the present one takes.
    fn say(
        &self,
        identity: &str,
        _seat: &FoundSession,
        epoch: &str,
        words: &AgentInput<'_>,
    ) -> Result<Sent, Error> {
        check("operation", words.operation)?;
        let dir = self.session_dir(identity)?;
        match dir.opened()? {
            Some(opened) if opened.epoch == epoch => {}
            Some(_) => return Ok(Sent::StaleEpoch),
            None => return Ok(Sent::Dead),
        }
        let prompt = Prompt { text: words.text.to_owned(), last: words.last };
        if dir.has_prompt(words.operation) {
            return Ok(Sent::Duplicate);
        }
        if !dir.is_alive()? {
            return Ok(Sent::Dead);
        }
        Ok(if dir.put(words.operation, &prompt)? { Sent::Sent } else { Sent::Duplicate })
    }

    fn tail(&self, identity: &str, _seat: &FoundSession, lines: usize) -> Result<Vec<String>, Error> {
        match self.session_dir(identity)?.opened()? {
            Some(opened) => last_lines(&opened.transcript, lines).map_err(Error::io("read a transcript")),
            None => Ok(Vec::new()),
        }
    }

    fn wait_for_exit(&self, identity: &str, limit: Duration) -> Result<Option<FoundSession>, Error> {
        let deadline = Instant::now() + limit;
        loop {
            match self.find(identity)? {
                Some(running) if !running.dead && Instant::now() < deadline => {
                    std::thread::park_timeout(LOOK)
                }
                found => return Ok(found),
            }
        }
    }

    /// The keeper ends its turn before it goes. One that was killed has left its turn behind.
    fn end(&self, identity: &str, _seat: &FoundSession, grace: Duration) -> Result<(), Error> {
        let dir = self.session_dir(identity)?;
        let sandbox = dir.turn()?.map(|turn| Sandbox::behind(turn.pid));
        if let Some(keeper_process) = dir.keeper_process()? {
            process::end_group(keeper_process.pid, keeper_process.start_time, grace);
        }
        if let Some(turn) = dir.turn()? {
            process::end_group(turn.pid, turn.start_time, ORPHAN_GRACE);
        }
        if let Some(sandbox) = sandbox {
            sandbox.end();
        }
        dir.remove()
    }
}

/// Names become parts of paths.
fn check(what: &'static str, value: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if value.is_empty() || value.len() > 200 || !value.chars().all(plain) {
        return Err(Error::Malformed { what, value: value.to_owned() });
    }
    Ok(())
}

fn last_lines(path: &Path, lines: usize) -> io::Result<Vec<String>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    Ok(all[all.len().saturating_sub(lines)..].iter().map(|line| (*line).to_owned()).collect())
}
