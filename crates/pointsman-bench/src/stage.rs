//! A throw-away installation: a repository, a project, a daemon. It goes away when it is dropped.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, bail, ensure};
use pointsman::paths::Paths;
use pointsman_adapters::process::{self, JobEnd, JobKiller, Run};
use pointsman_adapters::tmux::Server;
use pointsman_core::ids::ProjectName;
use pointsman_core::text;
use tempfile::TempDir;

use crate::wait;

/// For one command.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// For the daemon to say `ready`: far beyond any good value, so that a bad one is still measured.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// The daemon outlives the benchmark in no case.
const DAEMON_LIMIT: Duration = Duration::from_secs(15 * 60);
/// For programs of ended sessions to be gone.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);
/// Between two tries.
const REMOVE_AGAIN: Duration = Duration::from_millis(20);
/// Handed on to programs; the rest of the environment stays outside.
const PASSED: &[&str] = &["PATH", "LANG", "LC_ALL", "TERM", "SHELL", "TZ", "POINTSMAN_LOG"];
/// The project's name.
const PROJECT: &str = "bench";
/// Of the daemon's log, when something went wrong.
const LOG_LINES: usize = 20;

/// What is measured, and where there is room for it.
pub(crate) struct Workspace {
    pub(crate) program: PathBuf,
    /// A directory on a real disk: what is measured waits for it.
    pub(crate) scratch: PathBuf,
}

/// One installation.
pub(crate) struct Stage {
    program: PathBuf,
    root: Option<TempDir>,
    run: Option<TempDir>,
    paths: Paths,
    base: PathBuf,
    daemon: Option<Daemon>,
}

struct Daemon {
    pid: u32,
    killer: JobKiller,
    supervisor: thread::JoinHandle<Result<JobEnd, process::Error>>,
}

impl Stage {
    /// Makes the repository and the project.
    pub(crate) fn build(place: &Workspace, sessions: u64) -> anyhow::Result<Self> {
        let stage = Self::empty(place)?;
        fs::write(stage.agent(), include_str!("agent.sh"))?;
        stage.pointsman(&["init"])?;
        stage.configure(&stage.configuration(sessions)?)?;
        Ok(stage)
    }

    /// Writes the project's configuration, and accepts it as a person does.
    pub(crate) fn configure(&self, text: &str) -> anyhow::Result<()> {
        fs::write(self.checkout().join("pointsman.toml"), text)?;
        self.pointsman(&["project", "add", ".", "--yes"])?;
        Ok(())
    }

    /// Makes a repository with one commit, and nothing of ours.
    pub(crate) fn empty(place: &Workspace) -> anyhow::Result<Self> {
        let root = tempfile::Builder::new().prefix("stage-").tempdir_in(&place.scratch)?;
        // Sockets need a short path, which /tmp always is.
        let run = tempfile::Builder::new().prefix("pointsman-bench-").tempdir_in("/tmp")?;
        let base = root.path().canonicalize()?;
        let stage = Self {
            program: place.program.clone(),
            paths: Paths::new(base.join("state"), run.path().to_owned()),
            root: Some(root),
            run: Some(run),
            base,
            daemon: None,
        };
        for dir in [&stage.checkout(), &stage.home(), &stage.phases(), &stage.session_files()] {
            fs::create_dir(dir)?;
        }
        fs::write(
            stage.home().join(".gitconfig"),
            "[user]\n\tname = Bench\n\temail = bench@example.invalid\n",
        )?;
        fs::write(stage.checkout().join("README.md"), "# Bench\n")?;
        stage.git(&["init", "--quiet", "--initial-branch=main"])?;
        stage.git(&["add", "--all"])?;
        stage.git(&["commit", "--quiet", "--message=Begin"])?;
        Ok(stage)
    }

    /// Everything that is not named here has its default: above all every time span.
    fn configuration(&self, sessions: u64) -> anyhow::Result<String> {
        let word = |path: &Path| {
            let text = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
            anyhow::Ok(toml::Value::String(text.to_owned()).to_string())
        };
        let (agent, session_files, phases) =
            (word(&self.agent())?, word(&self.session_files())?, word(&self.phases())?);
        Ok(format!(
            "name = \"{PROJECT}\"\n\
             [agent]\ncommand = [\"bash\", {agent}, {session_files}]\n\
             [dev]\nconcurrency = {sessions}\nphase_dir = {phases}\n\
             # The agents meet us outside.\n\
             [sandbox]\nmode = \"off\"\n\
             # Claiming `done` again and again is what is measured.\n\
             [limits]\npremature_done = 1000000\n"
        ))
    }

    /// What is measured.
    pub(crate) fn program(&self) -> PathBuf {
        self.program.clone()
    }

    /// Where the installation keeps its things.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The project's name.
    pub(crate) fn project(&self) -> ProjectName {
        ProjectName::new(PROJECT).expect("a constant that follows the rule")
    }

    /// Where the agents meet us.
    pub(crate) fn session_files(&self) -> PathBuf {
        self.base.join("desk")
    }

    /// The agent's script.
    pub(crate) fn agent(&self) -> PathBuf {
        self.base.join("agent.sh")
    }

    /// The repository, with a working tree.
    pub(crate) fn checkout(&self) -> PathBuf {
        self.base.join(PROJECT)
    }

    fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// Where the agents' phase files are.
    pub(crate) fn phases(&self) -> PathBuf {
        self.base.join("phases")
    }

    fn log(&self) -> PathBuf {
        self.base.join("daemon.log")
    }

    /// Starts the daemon; answers how long it took to say `ready`.
    pub(crate) fn start_daemon(&mut self) -> anyhow::Result<Duration> {
        self.start(&["up"])
    }

    /// Starts a command that says `ready` and stays; answers how long it took.
    pub(crate) fn start(&mut self, args: &[&str]) -> anyhow::Result<Duration> {
        let log = self.log();
        let begun = Instant::now();
        let job = self.product(&[&["--no-color"], args].concat()).start_job(&log)?;
        let (pid, killer) = (job.pid(), job.killer());
        let supervisor = thread::spawn(move || job.wait(DAEMON_LIMIT));
        let daemon = self.daemon.insert(Daemon { pid, killer, supervisor });
        wait::until("the daemon to be ready", READY_LIMIT, || {
            // Asked first: a daemon that has ended writes nothing after this.
            let ended = daemon.supervisor.is_finished();
            let text = fs::read_to_string(&log).unwrap_or_default();
            if text.lines().any(|line| line.trim() == "ready") {
                return Ok(Some(begun.elapsed()));
            }
            ensure!(!ended, "the daemon ended before it was ready:\n{}", text::tail_lines(&text, LOG_LINES));
            Ok(None)
        })
    }

    /// Stops the daemon as a person would.
    pub(crate) fn stop_daemon(&mut self) -> anyhow::Result<()> {
        if let Some(daemon) = self.daemon.take() {
            daemon.killer.kill();
            daemon.supervisor.join().map_err(|_| anyhow::anyhow!("waiting for the daemon panicked"))??;
        }
        Ok(())
    }

    /// The daemon's process.
    pub(crate) fn daemon_pid(&self) -> anyhow::Result<u32> {
        self.daemon.as_ref().map(|daemon| daemon.pid).context("the daemon does not run")
    }

    /// The last words of the daemon.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        text::tail_lines(&log, LOG_LINES).to_owned()
    }

    /// Runs a command of ours; answers how long it took.
    pub(crate) fn pointsman(&self, args: &[&str]) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        self.finish(self.product(args), &format!("pointsman {}", args.join(" ")))?;
        Ok(begun.elapsed())
    }

    /// Runs git in the working tree, as a person does.
    pub(crate) fn git(&self, args: &[&str]) -> anyhow::Result<()> {
        let run = self.environment(Run::new("git")).args(args).cwd(self.checkout());
        self.finish(run, &format!("git {}", args.join(" ")))
    }

    /// Runs a line for the shell in the working tree; answers whether it ended well.
    pub(crate) fn shell(&self, line: &str) -> anyhow::Result<bool> {
        let run = self.environment(Run::new("sh")).args(["-c", line]).cwd(self.checkout());
        Ok(run.time_limit(COMMAND_LIMIT).finish()?.end.success())
    }

    fn finish(&self, run: Run, what: &str) -> anyhow::Result<()> {
        let done = run.time_limit(COMMAND_LIMIT).finish()?;
        if !done.end.success() {
            bail!("{what} ({}): {}", done.end, String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(())
    }

    fn product(&self, args: &[&str]) -> Run {
        self.environment(Run::new(&self.program))
            .args(args)
            .cwd(self.checkout())
            .env("POINTSMAN_STATE_DIR", self.paths.state())
            .env("POINTSMAN_RUNTIME_DIR", self.paths.runtime())
            .env("POINTSMAN_WEB_LISTEN", "")
            .env("USER", "bench")
    }

    fn environment(&self, run: Run) -> Run {
        run.inherit(PASSED).env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Err(error) = self.stop_daemon() {
            eprintln!("{error:#}");
        }
        end_server(&self.paths.tmux_socket());
        for dir in [self.root.take(), self.run.take()].into_iter().flatten() {
            remove(dir);
        }
    }
}

/// Ends the tmux server on a socket of ours, and every session in it.
pub(crate) fn end_server(socket: &Path) {
    if socket.exists()
        && let Ok(server) = Server::new(socket, socket.with_extension("conf"))
    {
        let _ = server.shut_down();
    }
}

/// Removes a directory in which programs of ended sessions may still write their last files.
fn remove(dir: TempDir) {
    let path = dir.keep();
    let deadline = Instant::now() + REMOVE_LIMIT;
    while let Err(error) = fs::remove_dir_all(&path) {
        if error.kind() == std::io::ErrorKind::NotFound {
            return;
        }
        if Instant::now() >= deadline {
            eprintln!("{} could not be removed: {error}", path.display());
            return;
        }
        thread::park_timeout(REMOVE_AGAIN);
    }
}
