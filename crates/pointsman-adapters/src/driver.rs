//! Drivers run sessions: in a terminal of a private tmux server, or without one. Both are one [`Driver`], and nobody
//! outside needs to know which it is, except to start one.
//!
//! A session is found by its name wherever it is: what the configuration says may have changed since it was started.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pointsman_core::config::Runtime;

use crate::headless::{self, Headless};
use crate::process::{self, Process};
use crate::retry::Retry;
use crate::tmux::{self, PaneId, PaneInfo, Server, Target};
use crate::watch::terminal::sandbox_init;

pub use crate::tmux::{PaneExit as Exit, Sent};

/// The terminal an agent gets.
const COLUMNS: u16 = 200;
const ROWS: u16 = 50;
/// For the kernel to end all processes of a sandbox.
const SANDBOX_END_LIMIT: Duration = Duration::from_secs(10);
/// How often a session that was told to go is looked at until it is gone.
const GONE_LOOK: Duration = Duration::from_millis(20);

/// The order to start a session, the same for every driver.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The session's name, `[a-z0-9-]`: one of that name is there at a time.
    pub name: String,
    /// Names this run; messages for another run of the same session are refused. `[A-Za-z0-9_-]`.
    pub epoch: String,
    /// This program, which becomes the agent or its keeper.
    pub program: PathBuf,
    /// The file that says what is to be run.
    pub spec: PathBuf,
    /// Where everything that the agent shows is appended.
    pub transcript: PathBuf,
}

/// A session that is there, or was until just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSession {
    pub placed: SessionHome,
    pub pid: u32,
    /// When that process started; nothing if it is not known any more.
    pub start_time: Option<u64>,
    pub epoch: String,
    pub dead: bool,
    /// How it ended, as far as anybody saw.
    pub exit: Option<Exit>,
}

/// The home of a session: a pane of the tmux server, or a directory if it has no terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionHome {
    Pane(PaneId),
    Headless,
}

impl FoundSession {
    /// Its pane, if it has one.
    pub fn pane(&self) -> Option<&PaneId> {
        match &self.placed {
            SessionHome::Pane(pane) => Some(pane),
            SessionHome::Headless => None,
        }
    }
}

impl From<PaneInfo> for FoundSession {
    fn from(pane: PaneInfo) -> Self {
        let PaneInfo { pane_id, pid, start_time, dead, exit, epoch } = pane;
        Self { placed: SessionHome::Pane(pane_id), pid, start_time, epoch, dead, exit }
    }
}

/// Something to be said to an agent, once.
#[derive(Clone, Copy, Debug)]
pub struct AgentInput<'w> {
    /// Names the saying: a second one of the same name is not said. `[A-Za-z0-9_-]`.
    pub operation: &'w str,
    pub text: &'w str,
    /// It asks the agent to go; a session that cannot go by itself is over when the agent has dealt with it.
    pub last: bool,
}

/// One way to run sessions.
pub trait Driver {
    /// What can go wrong.
    type Error;

    /// Starts a session; one of the same epoch that is there already is fine, another one is not.
    fn start(&self, new: &NewSession) -> Result<(), Self::Error>;

    /// The session of this name, alive or dead.
    fn find(&self, identity: &str) -> Result<Option<FoundSession>, Self::Error>;

    /// All sessions.
    fn list(&self) -> Result<Vec<(String, FoundSession)>, Self::Error>;

    /// Says something to the agent, exactly once; how soon it reads it is its own business.
    fn say(
        &self,
        identity: &str,
        running: &FoundSession,
        epoch: &str,
        words: &AgentInput<'_>,
    ) -> Result<Sent, Self::Error>;

    /// The last lines that the agent showed.
    fn tail(&self, identity: &str, running: &FoundSession, lines: usize) -> Result<Vec<String>, Self::Error>;

    /// The session once it has ended, and how; as it is when the time is up.
    fn wait_for_exit(&self, identity: &str, limit: Duration) -> Result<Option<FoundSession>, Self::Error>;

    /// Ends the session and everything of it; by force after the grace.
    fn end(&self, identity: &str, running: &FoundSession, grace: Duration) -> Result<(), Self::Error>;
}

impl Driver for Server {
    type Error = tmux::Error;

    fn start(&self, new: &NewSession) -> Result<(), tmux::Error> {
        self.ensure_running()?;
        let word = |path: &PathBuf| path.to_string_lossy().into_owned();
        Server::start(
            self,
            &tmux::NewSession {
                name: new.name.clone(),
                argv: vec![word(&new.program), "launch".to_owned(), word(&new.spec)],
                width: COLUMNS,
                height: ROWS,
                transcript: Some(new.transcript.clone()),
                epoch: new.epoch.clone(),
            },
        )?;
        Ok(())
    }

    fn find(&self, identity: &str) -> Result<Option<FoundSession>, tmux::Error> {
        match Server::find(self, identity) {
            Ok(pane) => Ok(pane.map(FoundSession::from)),
            // The whole server is gone, and every session with it.
            Err(tmux::Error::NotRunning { .. } | tmux::Error::NoTmux) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn list(&self) -> Result<Vec<(String, FoundSession)>, tmux::Error> {
        match Server::list(self) {
            Ok(panes) => Ok(panes.into_iter().map(|(name, pane)| (name, pane.into())).collect()),
            Err(tmux::Error::NotRunning { .. } | tmux::Error::NoTmux) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    fn say(
        &self,
        _: &str,
        running: &FoundSession,
        epoch: &str,
        words: &AgentInput<'_>,
    ) -> Result<Sent, tmux::Error> {
        let Some(pane) = running.pane() else { return Ok(Sent::Dead) };
        self.send_message(pane, epoch, words.operation, words.text)
    }

    fn tail(&self, _: &str, running: &FoundSession, lines: usize) -> Result<Vec<String>, tmux::Error> {
        let Some(pane) = running.pane() else { return Ok(Vec::new()) };
        self.capture_tail(Target::Pane(pane), lines)
    }

    fn wait_for_exit(&self, identity: &str, limit: Duration) -> Result<Option<FoundSession>, tmux::Error> {
        match Server::wait_for_exit(self, identity, limit) {
            Ok(pane) => Ok(pane.map(FoundSession::from)),
            Err(tmux::Error::NotRunning { .. } | tmux::Error::NoTmux) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// tmux has no event for "the process of a killed pane is gone": it is looked at until it is.
    fn end(&self, identity: &str, running: &FoundSession, grace: Duration) -> Result<(), tmux::Error> {
        let sandbox = Sandbox::behind(running.pid);
        self.kill(identity)?;
        let Some(start_time) = running.start_time else { return Ok(()) };
        let deadline = Instant::now() + grace;
        while process::is_alive(running.pid, start_time) {
            if Instant::now() >= deadline {
                // It ignores the hang-up.
                process::kill_leftover_group(running.pid, start_time);
                break;
            }
            std::thread::park_timeout(GONE_LOOK);
        }
        sandbox.end();
        Ok(())
    }
}

/// The sandbox of a session, by its first process. With that one, every process inside ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sandbox(Option<Process>);

impl Sandbox {
    /// The sandbox that this process stands in front of, if there is one.
    pub(crate) fn behind(pid: u32) -> Self {
        Self(sandbox_init(pid).and_then(Process::of))
    }

    /// Ends whatever is left inside, and waits until nothing is: a successor uses the same tree. The sandbox ends with the
    /// process in front of it; this is for the moment in between, and for one that was taken away from it.
    pub(crate) fn end(self) {
        let Some(init) = self.0 else { return };
        let deadline = Instant::now() + SANDBOX_END_LIMIT;
        while init.is_alive() && Instant::now() < deadline {
            init.kill();
            std::thread::park_timeout(GONE_LOOK);
        }
    }
}

/// A failure of one of the drivers.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Tmux(#[from] tmux::Error),
    /// Without a terminal.
    #[error(transparent)]
    Headless(#[from] headless::Error),
}

impl Error {
    /// The advice for the caller: try again, look first, or give up.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Tmux(error) => error.retry(),
            Self::Headless(error) => error.retry(),
        }
    }
}

/// The two drivers behind one interface. A session belongs to the driver that has it, so callers need not know which
/// it is.
#[derive(Debug)]
pub struct Drivers {
    pub tmux: Arc<Server>,
    pub headless: Headless,
}

impl Drivers {
    /// Starts a session in this way.
    pub fn start(&self, runtime: Runtime, new: &NewSession) -> Result<(), Error> {
        match runtime {
            Runtime::Tmux => Ok(Driver::start(&*self.tmux, new)?),
            Runtime::Headless => Ok(self.headless.start(new)?),
        }
    }

    /// The session of this name, wherever it is. A dead one counts only if there is no living one.
    pub fn find(&self, identity: &str) -> Result<Option<FoundSession>, Error> {
        let headless = self.headless.find(identity)?;
        match headless {
            Some(running) if !running.dead => Ok(Some(running)),
            dead => Ok(Driver::find(&*self.tmux, identity)?.or(dead)),
        }
    }

    /// Every session that either driver has, with its identity.
    pub fn list(&self) -> Result<Vec<(String, FoundSession)>, Error> {
        let mut all = self.headless.list()?;
        all.extend(Driver::list(&*self.tmux)?);
        Ok(all)
    }

    /// Delivers words to the terminal that a session had when it was last looked for. The server looks itself whether it is
    /// still that session's: [`Sent::StaleEpoch`] says that it has to be looked for.
    pub fn say_in(&self, pane: &str, epoch: &str, words: &AgentInput<'_>) -> Result<Sent, Error> {
        let pane = pane.parse()?;
        Ok(self.tmux.send_message(&pane, epoch, words.operation, words.text)?)
    }

    /// Delivers words to the session through its own driver, as [`Driver::say`] does.
    pub fn say(
        &self,
        identity: &str,
        running: &FoundSession,
        epoch: &str,
        words: &AgentInput<'_>,
    ) -> Result<Sent, Error> {
        match running.placed {
            SessionHome::Pane(_) => Ok(self.tmux.say(identity, running, epoch, words)?),
            SessionHome::Headless => Ok(self.headless.say(identity, running, epoch, words)?),
        }
    }

    /// Reads the last lines from the session's own driver, as [`Driver::tail`] does.
    pub fn tail(&self, identity: &str, running: &FoundSession, lines: usize) -> Result<Vec<String>, Error> {
        match running.placed {
            SessionHome::Pane(_) => Ok(self.tmux.tail(identity, running, lines)?),
            SessionHome::Headless => Ok(self.headless.tail(identity, running, lines)?),
        }
    }

    /// Waits for the end of the session in its own driver, as [`Driver::wait_for_exit`] does.
    pub fn wait_for_exit(&self, identity: &str, limit: Duration) -> Result<Option<FoundSession>, Error> {
        match self.find(identity)?.map(|running| running.placed) {
            Some(SessionHome::Headless) => Ok(self.headless.wait_for_exit(identity, limit)?),
            Some(SessionHome::Pane(_)) => Ok(Driver::wait_for_exit(&*self.tmux, identity, limit)?),
            None => Ok(None),
        }
    }

    /// Ends the session through its own driver, as [`Driver::end`] does.
    pub fn end(&self, identity: &str, running: &FoundSession, grace: Duration) -> Result<(), Error> {
        match running.placed {
            SessionHome::Pane(_) => Ok(self.tmux.end(identity, running, grace)?),
            SessionHome::Headless => Ok(self.headless.end(identity, running, grace)?),
        }
    }
}
