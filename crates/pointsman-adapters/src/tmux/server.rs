//! The server itself: starting it, and everything that asks about sessions.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use pointsman_core::time::Timestamp;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::{Pid, Signal, kill_process};

use super::client::{self, Client, Version};
use super::control::{Control, Failure};
use super::pane::{Listed, PaneId, PaneInfo};
use super::script::Script;
use super::{Error, config, message};
use crate::process::{Process, lineage};

/// Bytes of a path that fit into a Unix socket address with its closing zero.
pub const SOCKET_PATH_LIMIT: usize = 107;

/// How long the server may take to answer one command. It answers in well under a millisecond; a loaded machine and
/// a server that is being started get the rest.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Between two looks at a server that has been told to end.
const END_LOOK: Duration = Duration::from_millis(5);

/// The session that keeps the control client attached. Its name is outside the rule for session names, so no
/// project can have a session that collides with it.
const KEEPER: &str = "_keeper";

/// A private tmux server. Share it behind an `Arc`: commands from several threads take turns.
#[derive(Debug)]
pub struct Server {
    client: Client,
    control: Mutex<Option<Arc<Control>>>,
    /// Read while a session is started, written while the server is replaced.
    pub(super) replacing: RwLock<()>,
    /// The last process that was found to be marked. It stays so.
    marked: Mutex<Option<Process>>,
}

/// The pane that a call is about.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// The session of exactly this name.
    Session(&'a str),
    Pane(&'a PaneId),
}

impl Server {
    /// Describes the server on this socket; nothing is started yet. Both paths must be absolute.
    pub fn new(socket_path: impl Into<PathBuf>, config_path: impl Into<PathBuf>) -> Result<Server, Error> {
        let (socket, config) = (socket_path.into(), config_path.into());
        let len = socket.as_os_str().as_bytes().len();
        if len > SOCKET_PATH_LIMIT {
            return Err(Error::SocketTooLong { path: socket, len });
        }
        for path in [&socket, &config] {
            if !path.is_absolute() {
                let value = path.display().to_string();
                return Err(Error::Malformed { what: "tmux path", value, allowed: "an absolute path" });
            }
        }
        let client = Client { socket, config };
        Ok(Server {
            client,
            control: Mutex::default(),
            replacing: RwLock::default(),
            marked: Mutex::default(),
        })
    }

    /// The socket this server listens on.
    pub fn socket(&self) -> &Path {
        &self.client.socket
    }

    /// The server's process, as the kernel names whoever listens on the socket: a server that does not answer has one
    /// too. None if nobody listens.
    pub fn process(&self) -> Option<Process> {
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        );
        let socket = socket.ok()?;
        connect(&socket, &SocketAddrUnix::new(&self.client.socket).ok()?).ok()?;
        let listener = sockopt::socket_peercred(&socket).ok()?;
        Process::of(listener.pid.as_raw_nonzero().get().unsigned_abs())
    }

    /// Whether the server carries the mark of programs that are not trusted; none if there is no server, or if it
    /// cannot be looked at. A server that 0.1.0 started carries none, and whatever a session has it start passes for a
    /// person's.
    pub fn is_marked(&self) -> Option<bool> {
        let mut known = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_some_and(Process::is_alive) {
            return Some(true);
        }
        let process = self.process()?;
        let marked = lineage::is_marked(process.pid).ok()?;
        *known = Some(process).filter(|_| marked);
        Some(marked)
    }

    /// Replaces a server that carries no mark, if no session of ours is left in it.
    pub fn replace_unmarked(&self) -> Result<(), Error> {
        if self.is_marked() != Some(false) {
            return Ok(());
        }
        let _alone = self.replacing.write().unwrap_or_else(PoisonError::into_inner);
        // Only ours count: a session could keep the server for ever by starting another one in it.
        let used = self.list()?.iter().any(|(_, pane)| !pane.epoch.is_empty());
        let Some(process) = self.process().filter(|_| !used) else { return Ok(()) };
        tracing::info!(pid = process.pid, "replacing the tmux server of an earlier release");
        self.shut_down()?;
        let deadline = Instant::now() + COMMAND_LIMIT;
        while process.is_alive() && Instant::now() < deadline {
            std::thread::park_timeout(END_LOOK);
        }
        self.start_server()
    }

    /// The release of the installed tmux.
    pub fn version(&self) -> Result<Version, Error> {
        client::version()
    }

    /// Starts the server unless it runs. It daemonises itself into a session of its own, so neither the daemon's end
    /// nor a signal to the daemon's group reaches it. A socket without a server behind it is replaced by tmux, under
    /// tmux's own lock; anything else at that path is refused. A server without the mark is replaced if it is not used.
    pub fn ensure_running(&self) -> Result<(), Error> {
        self.check_socket()?;
        self.replace_unmarked()?;
        self.start_server()
    }

    fn start_server(&self) -> Result<(), Error> {
        let look = Script::new(["has-session", "-t"]).word(format!("={KEEPER}:"));
        if self.client.run(&look.arguments(), b"", COMMAND_LIMIT)?.success {
            return Ok(());
        }
        for path in [&self.client.socket, &self.client.config] {
            let dir = path.parent().unwrap_or(Path::new("/"));
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(Error::io("create the tmux directory"))?;
        }
        config::write(&self.client.config)?;
        let start = Script::new([
            "new-session",
            "-d",
            "-s",
            KEEPER,
            "-x",
            "80",
            "-y",
            "24",
            "--",
            "sleep",
            "infinity",
        ]);
        let started = self.client.run_starting(&start.arguments(), COMMAND_LIMIT)?;
        // Someone else may have started it at the same moment: what counts is that it runs.
        if started.success || self.client.run(&look.arguments(), b"", COMMAND_LIMIT)?.success {
            tracing::info!(socket = %self.client.socket.display(), "tmux server started");
            return Ok(());
        }
        Err(self.refused("new-session".to_owned(), started.stderr))
    }

    /// The pane of the session with exactly this name.
    pub fn find(&self, name: &str) -> Result<Option<PaneInfo>, Error> {
        let script = Script::new(["list-panes", "-s", "-F", PaneInfo::FORMAT, "-t"]).word(exact(name)?);
        match self.run_again(&script) {
            Ok(lines) => Ok(one_pane_each(&lines)?.into_iter().next().map(|(_, info)| info)),
            Err(Error::Refused { message, .. }) if message.starts_with("can't find session") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The last moment at which a person typed into the session with exactly this name, or attached to it; none if nobody
    /// ever did. What we type goes straight to the pane and does not count.
    pub fn typed_at(&self, name: &str) -> Result<Option<Timestamp>, Error> {
        const FORMAT: &str = "#{session_last_attached} #{session_activity}";
        let script = Script::new(["list-sessions", "-F", &format!("{FORMAT} #{{session_name}}")]);
        let lines = match self.run_again(&script) {
            Ok(lines) => lines,
            Err(Error::NotRunning { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let at = |line: &String| -> Option<Timestamp> {
            let (rest, of) = line.rsplit_once(' ')?;
            // Nobody ever attached if the first field is empty.
            let (attached, active) = rest.split_once(' ')?;
            attached.parse::<i64>().ok().filter(|at| of == name && *at > 0)?;
            Some(Timestamp(active.parse::<i64>().ok()? * 1000))
        };
        Ok(lines.iter().find_map(at))
    }

    /// Like [`Server::find`], for a program whose end is known already: waits until tmux has noticed it too and can
    /// tell how it ended, but not longer than the limit. A program that only closed its terminal has no exit.
    #[allow(clippy::disallowed_methods, reason = "tmux has no event for this; looks until a deadline")]
    pub fn wait_for_exit(&self, name: &str, limit: Duration) -> Result<Option<PaneInfo>, Error> {
        const PAUSE: Duration = Duration::from_millis(5);
        let deadline = Instant::now() + limit;
        loop {
            let found = self.find(name)?;
            if found.as_ref().is_none_or(|info| info.exit.is_some()) || Instant::now() >= deadline {
                return Ok(found);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// All sessions with their panes, in one call to tmux.
    pub fn list(&self) -> Result<Vec<(String, PaneInfo)>, Error> {
        let script = Script::new(["list-panes", "-a", "-F", PaneInfo::FORMAT]);
        one_pane_each(&self.run_again(&script)?)
    }

    /// Ends a session: its terminal closes and its programs get SIGHUP. One that ignores the signal lives on without
    /// a terminal; its pid is the caller's to deal with. It is not an error if there is no such session or no server.
    pub fn kill(&self, name: &str) -> Result<(), Error> {
        let script = Script::new(["kill-session", "-t"]).word(exact(name)?);
        match self.run_again(&script) {
            Ok(_) | Err(Error::NotRunning { .. }) => Ok(()),
            Err(Error::Refused { message, .. }) if message.starts_with("can't find session") => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The last lines of a pane, also of a dead one, without control characters and without blank lines at the end.
    ///
    /// This uses a client of its own: what a program prints must not be able to look like a control-mode guard.
    pub fn capture_tail(&self, target: Target<'_>, lines: usize) -> Result<Vec<String>, Error> {
        let mut tail = self.capture(target, &format!("-{lines}"))?;
        Ok(tail.split_off(tail.len().saturating_sub(lines)))
    }

    /// The lines that a pane shows at this moment, without those that have scrolled away.
    pub fn capture_screen(&self, target: Target<'_>) -> Result<Vec<String>, Error> {
        self.capture(target, "0")
    }

    fn capture(&self, target: Target<'_>, from: &str) -> Result<Vec<String>, Error> {
        let target = match target {
            Target::Session(name) => exact(name)?,
            Target::Pane(pane) => pane.to_string(),
        };
        let script = Script::new(["capture-pane", "-p", "-J", "-S", from, "-t"]).word(&target);
        let text = match self.run_program(&script, b"") {
            Err(Error::Refused { message, .. }) if message.starts_with("can't find") => {
                return Err(Error::NotFound(target));
            }
            other => other?,
        };
        let mut tail: Vec<String> =
            text.iter().map(|line| message::strip_control(line).trim_end().to_owned()).collect();
        tail.truncate(tail.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1));
        Ok(tail)
    }

    /// The command a person's terminal runs to attach; it works from inside another tmux as well.
    pub fn attach_command(&self, name: &str) -> Result<Vec<OsString>, Error> {
        let mut command: Vec<OsString> = ["env", "-u", "TMUX", "tmux", "-S"].map(OsString::from).into();
        command.push(self.client.socket.clone().into());
        command.extend(["attach-session".into(), "-t".into(), exact(name)?.into()]);
        Ok(command)
    }

    /// Ends the control clients that a killed daemon has left behind. With output still due to a reader that is gone,
    /// such a client never ends by itself, and neither does a server that waits for it (seen with 3.3a). Only for the
    /// one daemon there is, and before it connects itself.
    pub fn end_orphaned_clients(&self) -> Result<(), Error> {
        let script = Script::new(["list-clients", "-F", "#{client_control_mode} #{client_pid}"]);
        for line in self.run_program(&script, b"")? {
            let pid = line.strip_prefix("1 ").and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
            if let Some(pid) = pid {
                tracing::debug!(pid = pid.as_raw_pid(), "ending a control client that was left behind");
                // It fails only if the client has just ended.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        Ok(())
    }

    /// Ends the server and every session in it.
    pub fn shut_down(&self) -> Result<(), Error> {
        *self.lock() = None;
        match self.end_orphaned_clients() {
            Ok(()) | Err(Error::NotRunning { .. }) => {}
            Err(error) => tracing::debug!(%error, "clients that were left behind cannot be looked for"),
        }
        match self.run_program(&Script::new(["kill-server"]), b"") {
            Ok(_) | Err(Error::NotRunning { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Runs a script that may be run twice: if the connection is lost on the way, it is run again.
    pub(super) fn run_again(&self, script: &Script) -> Result<Vec<String>, Error> {
        match self.run(script) {
            Err(Error::Interrupted { .. }) => self.run_program(script, b""),
            other => other,
        }
    }

    /// Runs a script through the control client, or through a client of its own if none can be had.
    pub(super) fn run(&self, script: &Script) -> Result<Vec<String>, Error> {
        // The second round is for a client that had died since it was last used.
        for _ in 0..2 {
            let Some(connection) = self.connection() else { break };
            let failure = match connection.ask(&script.line(), COMMAND_LIMIT) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let command = script.name();
            match failure {
                Failure::Refused(message) => return Err(self.refused(command, message)),
                Failure::NotGiven => self.give_up(&connection),
                Failure::Lost => {
                    self.give_up(&connection);
                    return Err(Error::Interrupted { command });
                }
                Failure::Late => {
                    self.give_up(&connection);
                    return Err(Error::Timeout { command, seconds: COMMAND_LIMIT.as_secs() });
                }
            }
        }
        self.run_program(script, b"")
    }

    /// The control client, which may have died.
    fn connection(&self) -> Option<Arc<Control>> {
        let mut control = self.lock();
        if control.is_none() {
            *control = Control::connect(&self.client, KEEPER, COMMAND_LIMIT).ok().map(Arc::new);
        }
        control.clone()
    }

    /// Does without a connection. Somebody else may have done so, and have another one by now.
    fn give_up(&self, connection: &Arc<Control>) {
        let mut control = self.lock();
        if control.as_ref().is_some_and(|known| Arc::ptr_eq(known, connection)) {
            *control = None;
        }
    }

    /// Runs a script through a client of its own.
    pub(super) fn run_program(&self, script: &Script, stdin: &[u8]) -> Result<Vec<String>, Error> {
        let answer = self.client.run(&script.arguments(), stdin, COMMAND_LIMIT)?;
        if answer.success {
            return Ok(answer.stdout.lines().map(str::to_owned).collect());
        }
        Err(self.refused(script.name(), answer.stderr))
    }

    /// What a complaint of tmux means.
    fn refused(&self, command: String, message: String) -> Error {
        // A server that has no session at all, not even ours, is about to start or to end.
        const NOT_RUNNING: [&str; 3] = ["no server running", "error connecting to", "no current target"];
        const INTERRUPTED: [&str; 2] = ["server exited", "lost server"];
        let is_one_of = |begins: &[&str]| begins.iter().any(|begin| message.starts_with(begin));
        if is_one_of(&NOT_RUNNING) {
            Error::NotRunning { socket: self.client.socket.clone() }
        } else if is_one_of(&INTERRUPTED) {
            Error::Interrupted { command }
        } else {
            Error::Refused { command, message }
        }
    }

    fn check_socket(&self) -> Result<(), Error> {
        let path = &self.client.socket;
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::Io { what: "look at the tmux socket", source }),
            Ok(found)
                if found.file_type().is_socket() && found.uid() == rustix::process::geteuid().as_raw() =>
            {
                Ok(())
            }
            Ok(_) => Err(Error::SocketOccupied { path: path.clone() }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Control>>> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps one pane for each session: the one with an epoch, if a person has split its window.
fn one_pane_each(lines: &[String]) -> Result<Vec<(String, PaneInfo)>, Error> {
    let mut found: Vec<(String, PaneInfo)> = Vec::new();
    let mut forgetful = None;
    for line in lines {
        let Some(Listed { session, info, uncollected_by }) = PaneInfo::parse(line) else {
            return Err(Error::Unexpected { command: "list-panes".to_owned(), answer: line.clone() });
        };
        forgetful = forgetful.or(uncollected_by);
        match found.last_mut() {
            _ if session == KEEPER => {}
            Some((last, kept)) if *last == session => {
                if kept.epoch.is_empty() && !info.epoch.is_empty() {
                    *kept = info;
                }
            }
            _ => found.push((session, info)),
        }
    }
    if let Some(server) = forgetful {
        remind(server);
    }
    Ok(found)
}

/// Tells the server that a child of it has ended.
///
/// When a pane closes, libutempter takes over SIGCHLD for a moment inside tmux; a program that ends just then stays a
/// zombie and its pane without an exit for good (seen with 3.3a in one of twenty ends on a loaded machine). The
/// signal makes tmux collect all that is due, and does nothing if nothing is.
fn remind(server: u32) {
    if let Some(pid) = i32::try_from(server).ok().and_then(Pid::from_raw) {
        // It fails only if the server has just ended, and then there is nobody to remind.
        let _ = kill_process(pid, Signal::CHILD);
    }
}

/// The target of exactly this session; a bare name would match prefixes, patterns and window names.
pub(super) fn exact(name: &str) -> Result<String, Error> {
    check_name(name)?;
    Ok(format!("={name}:"))
}

pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.starts_with('-') || name.len() > 200 || !name.bytes().all(allowed) {
        return Err(Error::Malformed { what: "session name", value: name.to_owned(), allowed: "[a-z0-9-]" });
    }
    Ok(())
}

/// Checks a token (epoch, operation) that becomes part of an option's name or value.
pub(super) fn check_token(what: &'static str, token: &str) -> Result<(), Error> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if token.is_empty() || token.len() > 100 || !token.bytes().all(allowed) {
        return Err(Error::Malformed { what, value: token.to_owned(), allowed: "[A-Za-z0-9_-]" });
    }
    Ok(())
}
