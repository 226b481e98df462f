//! The throw-away surroundings: directories, a repository, a daemon; and the door to all of it, which is
//! the command line, as for any user. Whatever was made here goes away when it is dropped.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use anyhow::{Context, bail, ensure};
use pointsman_adapters::process::{self, JobEnd, JobKiller, Run};
use pointsman_core::text;
use pointsman_view::project::{Made, Named};
use rustix::process::{Pid, Signal, kill_process};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::interrupt::Interrupt;
use super::leftovers::{self, Owner, PREFIX};
use super::pace::Pace;
use super::people::Part;
use super::project;
use crate::paths::Paths;

/// For one command.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);
/// For the daemon to say `ready`.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// The daemon outlives the demo in no case.
const DAEMON_LIMIT: Duration = Duration::from_secs(15 * 60);
/// Between two looks whether the daemon is ready.
const LOOK: Duration = Duration::from_millis(20);
/// For programs of ended sessions to be gone.
const REMOVE_LIMIT: Duration = Duration::from_secs(5);
/// Of the daemon's log, when something went wrong.
const LOG_LINES: usize = 30;
/// Handed on to programs; the rest of the environment (and of the user's home) stays outside.
const PASSED: &[&str] = &["PATH", "LANG", "LC_ALL", "TERM", "SHELL", "TZ", "TMPDIR", "POINTSMAN_LOG"];

/// The world of one demo.
pub(super) struct Stage {
    program: PathBuf,
    owner: Option<Owner>,
    root: Option<TempDir>,
    run: Option<TempDir>,
    paths: Paths,
    checkout: PathBuf,
    home: PathBuf,
    phases: PathBuf,
    daemon: Option<Daemon>,
    /// How many daemons there were: each has a log of its own.
    daemons: u32,
}

struct Daemon {
    pid: u32,
    killer: JobKiller,
    supervisor: thread::JoinHandle<Result<JobEnd, process::Error>>,
}

impl Stage {
    /// Makes the directories and the projects, and removes what a killed demo left.
    pub(super) fn build(pace: Pace) -> anyhow::Result<Self> {
        let cache = cache_dir()?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        leftovers::sweep(&cache);
        // Working trees do not belong into /tmp; sockets need a short path, which /tmp always is.
        let root = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&cache)?;
        let run = tempfile::Builder::new().prefix(PREFIX).tempdir_in("/tmp")?;
        let owner = Owner::of(root.path(), run.path())?;
        // Outside of everything we know, a link in its path could hide where it really is.
        let base = root.path().canonicalize()?;
        let stage = Self {
            program: std::env::current_exe().context("cannot find my own program")?,
            paths: Paths::new(base.join("state"), run.path().to_owned()),
            checkout: base.join(project::NAME),
            home: base.join("home"),
            phases: base.join("phases"),
            owner: Some(owner),
            root: Some(root),
            run: Some(run),
            daemon: None,
            daemons: 0,
        };
        for dir in [&stage.checkout, &stage.home, &stage.phases] {
            fs::create_dir(dir)?;
        }
        fs::write(stage.home.join(".gitconfig"), project::GIT_CONFIG)?;
        project::write_files(&stage.checkout)?;
        stage.git(&["init", "--quiet", "--initial-branch=main"])?;
        stage.git(&["add", "--all"])?;
        stage.git(&["commit", "--quiet", "--message=Open the shop"])?;
        stage.pointsman::<Made>(&["init"])?;
        let configuration = project::configuration(&stage.program, &stage.phases, pace)?;
        fs::write(stage.checkout.join(project::CONFIGURATION), configuration)?;
        // A changed command counts when its owner accepts it.
        let place = stage.checkout.to_str().context("the demo's directory is not UTF-8")?;
        stage.pointsman::<Named>(&["project", "add", place])?;
        stage.build_market(pace)?;
        Ok(stage)
    }

    /// The second project, beside the first.
    fn build_market(&self, pace: Pace) -> anyhow::Result<()> {
        let checkout = self.checkout.with_file_name(project::MARKET);
        fs::create_dir(&checkout)?;
        project::write_files(&checkout)?;
        let place = checkout.to_str().context("the demo's directory is not UTF-8")?;
        for order in [&["init", "--quiet", "--initial-branch=main"][..], &["add", "--all"]] {
            self.git(&[&["-C", place], order].concat())?;
        }
        self.git(&["-C", place, "commit", "--quiet", "--message=Open the market"])?;
        let receiver = self.home.join("bell");
        fs::write(&receiver, project::BELL)?;
        fs::set_permissions(&receiver, fs::Permissions::from_mode(0o755))?;
        let configuration = project::market_configuration(&self.program, &self.phases, &receiver, pace)?;
        fs::write(checkout.join(project::CONFIGURATION), configuration)?;
        self.pointsman::<Named>(&["project", "add", place]).map(drop)
    }

    /// How often the bell was rung.
    pub(super) fn rung(&self) -> usize {
        fs::read_to_string(self.home.join("rung"))
            .unwrap_or_default()
            .lines()
            .filter(|line| !line.is_empty())
            .count()
    }

    /// The daemon's database.
    pub(super) fn database(&self) -> PathBuf {
        self.paths.database()
    }

    /// The protocol's state files of an issue that are there.
    pub(super) fn state_files(&self, part: Part) -> anyhow::Result<Vec<String>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.phases)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if project::is_state_file(&name, part.project, part.issue) {
                found.push(name);
            }
        }
        Ok(found)
    }

    /// Starts the daemon and waits until it is ready.
    #[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
    pub(super) fn start_daemon(&mut self, interrupt: &Interrupt) -> anyhow::Result<()> {
        self.daemons += 1;
        let log = self.log();
        let job = self.product(&["--no-color", "up"]).start_job(&log)?;
        let (pid, killer) = (job.pid(), job.killer());
        let supervisor = thread::spawn(move || job.wait(DAEMON_LIMIT));
        let daemon = self.daemon.insert(Daemon { pid, killer, supervisor });
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            interrupt.check()?;
            // Asked first: a daemon that has ended writes nothing after this.
            let ended = daemon.supervisor.is_finished();
            let text = fs::read_to_string(&log).unwrap_or_default();
            if text.lines().any(|line| line.trim() == "ready") {
                return Ok(());
            }
            ensure!(!ended, "the daemon ended before it was ready");
            ensure!(Instant::now() < deadline, "the daemon was not ready within {READY_LIMIT:?}");
            thread::sleep(LOOK);
        }
    }

    /// SIGKILL to the daemon; it is gone when this returns. Its sessions are not touched.
    pub(super) fn kill_daemon(&mut self) -> anyhow::Result<()> {
        let daemon = self.daemon.take().context("there is no daemon to kill")?;
        let pid =
            i32::try_from(daemon.pid).ok().and_then(Pid::from_raw).context("a pid is a small number")?;
        kill_process(pid, Signal::KILL).context("cannot kill the daemon")?;
        let _ = daemon.supervisor.join();
        Ok(())
    }

    /// Whether the daemon has ended by itself.
    pub(super) fn daemon_is_gone(&self) -> bool {
        self.daemon.as_ref().is_none_or(|d| d.supervisor.is_finished())
    }

    /// The last lines of the daemon's log.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        text::clean_block(text::tail_lines(&log, LOG_LINES), 64 << 10)
    }

    /// Runs a command of ours as a person would, and reads its JSON as a script would.
    pub(super) fn pointsman<V: DeserializeOwned>(&self, args: &[&str]) -> anyhow::Result<V> {
        let done = self.product(args).arg("--json").time_limit(COMMAND_LIMIT).finish()?;
        if !done.end.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            bail!("pointsman {} ({}): {}", args.join(" "), done.end, said.trim());
        }
        let text = String::from_utf8_lossy(&done.stdout);
        serde_json::from_str(text.trim())
            .with_context(|| format!("pointsman {} --json printed something else", args.join(" ")))
    }

    /// The same, in one of the projects.
    pub(super) fn pointsman_in<V: DeserializeOwned>(
        &self,
        project: &str,
        args: &[&str],
    ) -> anyhow::Result<V> {
        self.pointsman(&[args, &["--project", project]].concat())
    }

    /// Runs git in the checkout.
    pub(super) fn git(&self, args: &[&str]) -> anyhow::Result<String> {
        let run = self.environment(Run::new("git")).args(args).cwd(&self.checkout).time_limit(COMMAND_LIMIT);
        let done = run.finish()?;
        if !done.end.success() {
            bail!("git {} ({}): {}", args.join(" "), done.end, String::from_utf8_lossy(&done.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&done.stdout).trim_end().to_owned())
    }

    /// Stops everything and leaves the files; answers how to look at them.
    pub(super) fn keep(mut self) -> Vec<String> {
        self.stop();
        for dir in [self.root.take(), self.run.take()].into_iter().flatten() {
            let _ = dir.keep();
        }
        if let Some(owner) = self.owner.take() {
            owner.release();
        }
        self.directions()
    }

    fn directions(&self) -> Vec<String> {
        let root = self.checkout.parent().unwrap_or(&self.checkout);
        let quote = |path: &Path| shell_word(&path.to_string_lossy());
        let program = quote(&self.program);
        vec![
            format!("export POINTSMAN_STATE_DIR={}", quote(self.paths.state())),
            format!("export POINTSMAN_RUNTIME_DIR={}", quote(self.paths.runtime())),
            format!("cd {}", quote(&self.checkout)),
            format!("{program} task list                 # also: task explain N, session logs N"),
            format!("{program} forge issue list --state all"),
            "git fetch pointsman && git log --oneline --stat pointsman/main".to_owned(),
            format!("{program} up                        # goes on with it"),
            format!("rm -rf {} {}   # when you have seen enough", quote(root), quote(self.paths.runtime())),
        ]
    }

    fn log(&self) -> PathBuf {
        self.home.join(format!("daemon-{}.log", self.daemons))
    }

    fn product(&self, args: &[&str]) -> Run {
        self.environment(Run::new(&self.program))
            .args(args)
            .cwd(&self.checkout)
            .env("POINTSMAN_STATE_DIR", self.paths.state())
            .env("POINTSMAN_RUNTIME_DIR", self.paths.runtime())
            .env("POINTSMAN_WEB_LISTEN", "")
            .env("USER", "anna")
    }

    fn environment(&self, run: Run) -> Run {
        run.inherit(PASSED).env("HOME", &self.home).env("GIT_CONFIG_NOSYSTEM", "1")
    }

    /// Ends the daemon and our tmux server. Sessions, and whatever runs in them, end with it.
    fn stop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.killer.kill();
            let _ = daemon.supervisor.join();
        }
        leftovers::end_sessions(&self.paths);
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop();
        for dir in [self.root.take(), self.run.take()].into_iter().flatten() {
            remove(&dir.keep());
        }
    }
}

/// Removes a directory in which programs of ended sessions may still write their last files.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
pub(crate) fn remove(path: &Path) {
    let deadline = Instant::now() + REMOVE_LIMIT;
    while let Err(error) = fs::remove_dir_all(path) {
        if error.kind() == io::ErrorKind::NotFound {
            return;
        }
        if Instant::now() >= deadline {
            // The terminal may be gone as well.
            let _ = writeln!(io::stderr(), "cannot remove {}: {error}", path.display());
            return;
        }
        thread::sleep(LOOK);
    }
}

/// The directory for throw-away things that must not be in `/tmp`.
#[allow(clippy::disallowed_methods, reason = "a command begins here: the environment is its input")]
pub(crate) fn cache_dir() -> anyhow::Result<PathBuf> {
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    set("XDG_CACHE_HOME")
        .or_else(|| set("HOME").map(|home| home.join(".cache")))
        .context("neither XDG_CACHE_HOME nor HOME is set: there is no place for the demo's working trees")
}

/// A word that a person can paste into a shell.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::shell_word;

    #[test]
    fn what_is_printed_to_be_pasted_is_one_word() {
        assert_eq!(shell_word("/home/anna/.cache"), "/home/anna/.cache");
        assert_eq!(shell_word("/home/an na/$(id)"), "'/home/an na/$(id)'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
    }
}
