//! A daemon of the built program in a world of its own: its home, its directories, a project with a CI, a tmux server.
//!
//! [`Setup`] says what the world is like, [`TestDaemon`] is it, running. What people do there is in `people`, waiting
//! in `wait`, ending processes in `violence`. Everything goes through the program's own commands and files, as for any user; nothing of the
//! daemon is called from here. It all goes away when the value is dropped.

mod people;
mod setup;
mod violence;
mod wait;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

pub use people::Answer;
pub use setup::Setup;

use crate::deadline::eventually;

/// Far beyond what anything takes on a loaded machine; only a failing test waits so long.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A running daemon and its world.
#[derive(Debug)]
pub struct TestDaemon {
    setup: Setup,
    // Held for their drop. Sockets need a short path, which that of the other one may not be.
    _root_dir: TempDir,
    _runtime_dir: TempDir,
    root: PathBuf,
    runtime: PathBuf,
    child: Mutex<Option<Child>>,
}

/// A key that no service knows, too short to be taken for a secret: agents outside the sandbox may come across it.
const MADE_UP_KEY: &str = "made-up";

impl TestDaemon {
    fn build(setup: Setup) -> Self {
        let root_dir = tempfile::Builder::new().prefix("pointsman-e2e-").tempdir();
        let root_dir = root_dir.expect("tests need a temporary directory");
        let runtime_dir = tempfile::Builder::new().prefix("pm").tempdir_in("/tmp");
        let runtime_dir = runtime_dir.expect("tests need a temporary directory with a short path");
        let daemon = Self {
            root: root_dir.path().canonicalize().expect("it was just made"),
            runtime: runtime_dir.path().to_owned(),
            _root_dir: root_dir,
            _runtime_dir: runtime_dir,
            setup,
            child: Mutex::default(),
        };
        for dir in ["home", "phases"] {
            fs::create_dir(daemon.path(dir)).expect("a test's own directory can be written");
        }
        daemon.setup.write(&daemon);
        if daemon.setup.registered {
            daemon.register();
        }
        daemon
    }

    /// Starts the daemon and waits until it is ready.
    pub fn start(&self) {
        self.start_with(&[]);
    }

    /// The same, with further variables in the daemon's environment.
    pub fn start_with(&self, env: &[(&str, &str)]) {
        self.start_command(&["up"], env);
    }

    /// The operator accepts the settings as they are: nothing of a file is used before that.
    fn register(&self) {
        let _ = self.run(&["project", "add", &self.checkout().to_string_lossy()]);
    }

    /// Starts another command that says `ready` and stays, in the daemon's place.
    pub fn start_command(&self, arguments: &[&str], env: &[(&str, &str)]) {
        // The operator accepts the settings as they are. What is wrong with them is told by the daemon.
        if arguments.first() == Some(&"up") {
            self.register();
        }
        let mut command = self.command(&[&["--no-color"], arguments].concat());
        // Without any login no session of Claude Code starts.
        command.env("ANTHROPIC_API_KEY", MADE_UP_KEY);
        for (name, value) in self.setup.daemon_env.iter().map(|(n, v)| (n.as_str(), v.as_str())) {
            command.env(name, value);
        }
        let log = File::options().append(true).create(true).open(self.log_file());
        let log = log.expect("a test's own directory can be written");
        command.envs(env.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let written = fs::metadata(self.log_file()).map_or(0, |m| usize::try_from(m.len()).unwrap_or(0));
        let child = command.spawn().expect("the program is built");
        *self.child() = Some(child);
        eventually("the daemon to be ready", PATIENCE, || {
            let text = fs::read(self.log_file()).unwrap_or_default();
            let ready =
                text.get(written..).is_some_and(|new| new.split(|b| *b == b'\n').any(|l| l == b"ready"));
            // One that was told to die early may never be ready.
            (ready || self.has_ended()).then_some(())
        });
    }

    /// Whether the daemon is gone.
    pub fn has_ended(&self) -> bool {
        match self.child().as_mut() {
            Some(child) => !matches!(child.try_wait(), Ok(None)),
            None => true,
        }
    }

    /// The daemon's process.
    pub fn pid(&self) -> u32 {
        self.child().as_ref().map(Child::id).expect("the daemon was started")
    }

    /// A file or directory of this world.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// The user's checkout.
    pub fn checkout(&self) -> PathBuf {
        self.path(&self.setup.name)
    }

    /// Where the protocol's files are.
    pub fn phases(&self) -> PathBuf {
        self.path("phases")
    }

    /// The phase file of an issue.
    pub fn phase_file(&self, issue: u64) -> PathBuf {
        self.phases().join(format!("dev-session-{}-{issue}.phase", self.setup.name))
    }

    /// The names of the protocol's files that are there.
    pub fn phase_files(&self) -> Vec<String> {
        names(&self.phases())
    }

    /// The daemon's state directory.
    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// All that an issue's sessions may touch.
    pub fn session_files(&self, issue: u64) -> PathBuf {
        let name = &self.setup.name;
        self.state().join("projects").join(name).join("sessions").join(format!("dev-{name}-{issue}"))
    }

    /// The working tree of an issue.
    pub fn tree(&self, issue: u64) -> PathBuf {
        self.session_files(issue).join("tree")
    }

    /// Everything the daemon has logged.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_file()).unwrap_or_default()).into_owned()
    }

    /// The lines of the daemon's log that hold this; none if there are none.
    pub fn log_lines(&self, text: &str) -> Option<Vec<String>> {
        let log = self.log();
        let lines: Vec<String> = log.lines().filter(|line| line.contains(text)).map(str::to_owned).collect();
        (!lines.is_empty()).then_some(lines)
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_file(&self) -> PathBuf {
        self.path("daemon.log")
    }

    /// Where the daemon listens.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime.join("control.sock")
    }

    fn tmux_socket(&self) -> PathBuf {
        self.runtime.join("tmux.sock")
    }

    /// The program, in the checkout, with nothing of the test's own environment but the path to other programs.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.setup.program);
        command.args(arguments).current_dir(self.checkout());
        self.clean(&mut command);
        command.env("POINTSMAN_STATE_DIR", self.state()).env("POINTSMAN_RUNTIME_DIR", &self.runtime);
        if self.setup.staged {
            command.env("POINTSMAN_STAGE", self.path("stage.json"));
        }
        command
    }

    /// Pretends from now on, for the daemon and all commands: how far the clock is ahead, the machine's figures.
    pub fn stage(&self, pretended: &Value) {
        assert!(self.setup.staged, "only a world that was set up so is pretended");
        // Whole or not at all: it may be read at any time.
        let (file, new) = (self.path("stage.json"), self.path("stage.new"));
        fs::write(&new, pretended.to_string()).expect("a test's own directory can be written");
        fs::rename(&new, &file).expect("a test's own directory can be written");
    }

    fn clean(&self, command: &mut Command) {
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
            .env("HOME", self.path("home"))
            .env("USER", "ann")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("LANG", "C.UTF-8");
        // Two daemons cannot have one port, and a person's may run here.
        if !self.setup.names_the_web() {
            command.env("POINTSMAN_WEB_LISTEN", "");
        }
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        // First the daemon, which would start sessions again.
        self.kill_daemon();
        self.end_tmux();
        self.end_keepers();
        self.end_programs();
    }
}

/// The names in a directory, sorted.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
