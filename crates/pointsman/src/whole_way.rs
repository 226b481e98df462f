//! A throw-away copy of a project, in which a task goes its whole way: `doctor` and `agent check` look at it.
//!
//! The copy has a state directory, a daemon and an embedded forge of its own, and main as the project's forge has it. It
//! takes from the project's settings in force whatever decides how trees are made, how sessions and CI run, and what they may
//! reach. Reviews, notices, schedules and servers stay out. The project itself is not touched.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use pointsman_adapters::process::{self, JobEnd, JobKiller, Run};
use pointsman_core::agent::Agent;
use pointsman_core::config::Config;
use pointsman_core::ids::{Number, ProjectName, TaskKey};
use pointsman_core::task::Task;
use pointsman_core::words;
use pointsman_store::{MessageRow, SessionRow, SessionScope, Store};
use pointsman_view::forge::Issue;
use pointsman_view::project::Named;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::control::client;
use crate::control::protocol::Request;
use crate::demo::{Interrupt, Owner, PREFIX, cache_dir, end_sessions, remove, sweep};
use crate::paths::Paths;
use crate::project::Project;

/// The name of the project in the copy.
const NAME: &str = "check";
/// For one command.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// For the daemon to say `ready`.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// The daemon outlives the command in no case.
const DAEMON_LIMIT: Duration = Duration::from_secs(60 * 60);
/// For the daemon to stop when it is asked to.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
/// Tables of the project's settings that hold in the copy as well.
const KEPT: [&str; 4] = ["ci.", "sandbox.", "tree.", "agent."];
/// Single settings of the same kind.
const KEPT_KEYS: [&str; 2] = ["timing.ci_timeout", "timing.setup_timeout"];
/// Variables that would lead the copy's commands back to the project, or make them think they are inside a session.
const LEFT_OUT: [&str; 4] =
    ["POINTSMAN_CONFIG", "POINTSMAN_SESSION", "POINTSMAN_STATE_DIR", "POINTSMAN_RUNTIME_DIR"];

/// The program that works in the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worker {
    /// One that follows a script and costs nothing.
    Script,
    /// The project's agent.
    Agent,
    /// An agent of this kind instead.
    Kind(Agent),
}

/// The copy. It goes away when it is dropped.
pub(crate) struct Copy {
    program: PathBuf,
    root: Option<TempDir>,
    run: Option<TempDir>,
    /// Held until everything is removed: after a kill the next one clears up.
    _owner: Owner,
    paths: Paths,
    checkout: PathBuf,
    environment: Vec<(OsString, OsString)>,
    /// Ctrl-C removes the copy before the command ends.
    interrupt: Interrupt,
    daemon: Option<(JobKiller, thread::JoinHandle<Result<JobEnd, process::Error>>)>,
}

/// The task of the copy as it is now.
pub(crate) struct Seen {
    pub(crate) task: Option<Task>,
    pub(crate) sessions: Vec<SessionRow>,
    pub(crate) messages: Vec<MessageRow>,
}

impl Copy {
    /// Makes the directories, and main as the project's forge has it.
    #[allow(clippy::disallowed_methods, reason = "the copy's programs find what the project's would find")]
    pub(crate) fn build(paths: &Paths, project: &Project, worker: Worker) -> anyhow::Result<Self> {
        let cache = cache_dir()?;
        fs::create_dir_all(&cache).with_context(|| format!("cannot make {}", cache.display()))?;
        sweep(&cache);
        let root = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&cache)?;
        let run = tempfile::Builder::new().prefix(PREFIX).tempdir_in("/tmp")?;
        let owner = Owner::of(root.path(), run.path())?;
        let base = root.path().canonicalize()?;
        let environment = std::env::vars_os()
            .filter(|(name, _)| !LEFT_OUT.iter().any(|left_out| name == left_out))
            .collect();
        let copy = Self {
            program: std::env::current_exe().context("cannot find my own program")?,
            paths: Paths::new(base.join("state"), run.path().to_owned()),
            checkout: base.join(NAME),
            root: Some(root),
            run: Some(run),
            _owner: owner,
            environment,
            interrupt: Interrupt::listen()?,
            daemon: None,
        };
        copy.take_main(paths, project)?;
        copy.paths.create()?;
        for (from, to) in
            [(paths.dotenv(), copy.paths.dotenv()), (paths.claude_login(), copy.paths.claude_login())]
        {
            if worker != Worker::Script && from.is_file() {
                fs::copy(&from, &to).with_context(|| format!("cannot read {}", from.display()))?;
            }
        }
        let phases = base.join("phases");
        fs::create_dir(&phases)?;
        let settings = settings(&project.config, worker, &copy.program, &phases)?;
        fs::write(copy.checkout.join("pointsman.toml"), settings)?;
        Ok(copy)
    }

    /// The tree of main, as a session's tree begins.
    pub(crate) fn tree(&self) -> &Path {
        &self.checkout
    }

    /// Clones main: from the embedded forge, or where that is a server, as the checkout last saw it there.
    fn take_main(&self, paths: &Paths, project: &Project) -> anyhow::Result<()> {
        let config = &project.config;
        let branch = config.primary_branch.as_str();
        let clone = |from: &Path, branch: &str| {
            let (from, to) = (word(from)?, word(&self.checkout)?);
            self.git(&[
                "clone",
                "--quiet",
                "--shared",
                "--single-branch",
                "--no-tags",
                "--branch",
                branch,
                "--",
                &from,
                &to,
            ])
        };
        if config.forge.kind.is_embedded() {
            return clone(&paths.project(&config.name).forge_repository(), branch);
        }
        clone(project.checkout(), branch)?;
        let (checkout, from) = (word(&self.checkout)?, word(project.checkout())?);
        let seen = format!("refs/remotes/origin/{branch}");
        if self.git(&["-C", &checkout, "fetch", "--quiet", "--", &from, &seen]).is_ok() {
            self.git(&["-C", &checkout, "checkout", "--quiet", "-B", branch, "FETCH_HEAD"])?;
        }
        Ok(())
    }

    /// Registers the project of the copy and starts its daemon.
    pub(crate) fn start(&mut self) -> anyhow::Result<()> {
        let place = word(&self.checkout)?;
        self.pointsman::<Named>(&["project", "add", "--yes", &place])?;
        let log = self.log();
        let job = self.product(&["--no-color", "up"]).start_job(&log)?;
        let killer = job.killer();
        let supervisor = thread::spawn(move || job.wait(DAEMON_LIMIT));
        let (_, supervisor) = self.daemon.insert((killer, supervisor));
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            self.interrupt.check()?;
            let ended = supervisor.is_finished();
            let text = fs::read_to_string(&log).unwrap_or_default();
            if text.lines().any(|line| line.trim() == "ready") {
                return Ok(());
            }
            if ended || Instant::now() >= deadline {
                bail!(words::doctor::copy_not_ready(text.lines().last().unwrap_or_default()));
            }
            pause();
        }
    }

    /// Files an issue that is worked on at once.
    pub(crate) fn file_issue(&self, title: &str, body: &str) -> anyhow::Result<Number> {
        let args = ["forge", "issue", "create", "--label", "backlog", "--title", title, "--body", body];
        Ok(self.pointsman::<Issue>(&args)?.number)
    }

    /// The task of an issue, with its sessions and messages.
    pub(crate) fn look(&self, issue: Number) -> anyhow::Result<Seen> {
        self.interrupt.check()?;
        let project = ProjectName::new(NAME).context("the copy has a name")?;
        let store = Store::open_read_only(&self.paths.database())?;
        let key = TaskKey { project: project.clone(), issue };
        Ok(Seen {
            task: store.task(&key)?,
            sessions: store.sessions(Some(&project), SessionScope::All)?,
            messages: store.messages(&key.into())?,
        })
    }

    /// Whether the daemon has ended by itself.
    pub(crate) fn daemon_is_gone(&self) -> bool {
        self.daemon.as_ref().is_none_or(|(_, supervisor)| supervisor.is_finished())
    }

    /// Runs a command of ours as a person would, and reads its JSON.
    pub(crate) fn pointsman<V: DeserializeOwned>(&self, args: &[&str]) -> anyhow::Result<V> {
        let done = self.product(&["--json"]).args(args).time_limit(COMMAND_LIMIT).finish()?;
        if !done.end.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            bail!("pointsman {}: {}", args.join(" "), said.trim());
        }
        serde_json::from_slice(&done.stdout)
            .with_context(|| format!("pointsman {} --json printed something else", args.join(" ")))
    }

    /// The last line that a command prints; nothing if it fails.
    pub(crate) fn last_line(&self, args: &[&str]) -> Option<String> {
        let done = self.product(args).time_limit(COMMAND_LIMIT).finish().ok()?;
        let text = String::from_utf8_lossy(&done.stdout);
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }

    fn git(&self, args: &[&str]) -> anyhow::Result<()> {
        let done =
            self.with_environment(Run::new("git")).args(args).cwd("/").time_limit(COMMAND_LIMIT).finish()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.end.success(), "git {}: {}", args.join(" "), said.trim());
        Ok(())
    }

    fn product(&self, args: &[&str]) -> Run {
        self.with_environment(Run::new(&self.program))
            .args(args)
            .cwd(&self.checkout)
            .env("POINTSMAN_STATE_DIR", self.paths.state())
            .env("POINTSMAN_RUNTIME_DIR", self.paths.runtime())
            .env("POINTSMAN_WEB_LISTEN", "")
    }

    fn with_environment(&self, run: Run) -> Run {
        self.environment.iter().fold(run, |run, (name, value)| run.env(name, value))
    }

    fn log(&self) -> PathBuf {
        self.paths.state().join("up.log")
    }

    /// Asks the daemon to stop, and ends it if it does not.
    fn stop(&mut self) {
        if let Some((killer, supervisor)) = self.daemon.take() {
            let _ = client::ask(&self.paths.control_socket(), &Request::Down);
            let deadline = Instant::now() + STOP_LIMIT;
            while !supervisor.is_finished() && Instant::now() < deadline {
                pause();
            }
            killer.kill();
            let _ = supervisor.join();
        }
        end_sessions(&self.paths);
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        self.stop();
        for dir in [self.root.take(), self.run.take()].into_iter().flatten() {
            remove(&dir.keep());
        }
    }
}

/// Waits a moment between two looks at the copy.
#[allow(clippy::disallowed_methods, reason = "looks until a deadline: there is nobody to be woken by")]
pub(crate) fn pause() {
    thread::sleep(LOOK);
}

/// The `pointsman.toml` of the copy.
fn settings(config: &Config, worker: Worker, program: &Path, phases: &Path) -> anyhow::Result<String> {
    let scripted = worker == Worker::Script;
    // A check of an agent is none of the project's tests.
    let runs_here = scripted && config.ci.kind.runs_here() && config.ci.command.is_some();
    let kept = |key: &str| {
        let dev = key.strip_prefix("roles.dev.");
        let of_agent = key.strip_prefix("agent.").or(dev);
        match (of_agent, worker) {
            (Some(_), Worker::Agent) => true,
            (Some(rest), Worker::Script | Worker::Kind(_)) => rest == "runtime" || rest == "pass_env",
            (None, _) if key.starts_with("ci.") => {
                runs_here && matches!(key, "ci.kind" | "ci.command" | "ci.pass_env")
            }
            (None, _) => KEPT.iter().any(|table| key.starts_with(table)) || KEPT_KEYS.contains(&key),
        }
    };
    let mut lines = vec![format!("name = \"{NAME}\"")];
    let mut put = |key: &str, value: toml::Value| lines.push(format!("{key} = {value}"));
    put("primary_branch", config.primary_branch.as_str().into());
    put("forge.kind", "local".into());
    if !runs_here {
        // The agent is to hear of a CI all the same.
        put("ci.kind", "command".into());
        put("ci.command", vec!["true"].into());
    }
    put("merge.gate", vec!["true"].into());
    // An agent that is stopped and resumed waits for a review in between.
    put("review.mode", if scripted { "none" } else { "human" }.into());
    put("dev.phase_dir", word(phases)?.into());
    put("timing.forge_poll", "200ms".into());
    put("limits.restarts", 1.into());
    if scripted {
        put("agent.command", vec![word(program)?, "rehearsal-agent".to_owned()].into());
    }
    if let Worker::Kind(kind) = worker {
        put("agent.kind", kind.as_str().into());
        put("agent.command", vec![kind.as_str()].into());
    }
    let entries = config.entries().into_iter().filter(|(key, _)| kept(key));
    lines.extend(entries.map(|(key, value)| format!("{key} = {value}")));
    Ok(lines.join("\n") + "\n")
}

fn word(path: &Path) -> anyhow::Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pointsman_core::agent::Agent;
    use pointsman_core::config::Config;

    use super::{Worker, settings};

    #[test]
    fn the_copy_keeps_what_decides_how_things_run_and_nothing_that_reaches_people() {
        let text = "name = \"shop\"\n[ci]\ncommand = [\"make\", \"test\"]\n[agent]\ncommand = [\"./agent.sh\"]\nruntime = \"headless\"\n\
                    [sandbox]\nhosts = [\"agent\", \"example.org\"]\n[tree]\nsetup = [\"npm\", \"ci\"]\n[review]\nmode = \"human\"\n\
                    [merge]\ngate = [\"./gate.sh\"]\n";
        let config = Config::parse(text, "pointsman.toml").unwrap();
        let copy = |worker| {
            let text = settings(&config, worker, Path::new("/bin/pointsman"), Path::new("/p")).unwrap();
            Config::parse(&text, "pointsman.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
        };
        let scripted = copy(Worker::Script);
        assert_eq!(scripted.name.as_str(), "check");
        assert_eq!(scripted.ci.command.as_deref().unwrap(), ["make", "test"]);
        assert_eq!(scripted.tree.setup, config.tree.setup);
        assert_eq!(scripted.sandbox.hosts, config.sandbox.hosts);
        assert_eq!(scripted.agent.runtime, config.agent.runtime);
        assert_eq!(*scripted.agent.command, ["/bin/pointsman", "rehearsal-agent"]);
        assert_eq!(scripted.merge.gate.as_deref().unwrap(), ["true"], "CI runs once");
        assert_eq!(*copy(Worker::Agent).agent.command, ["./agent.sh"]);
        assert_eq!(copy(Worker::Kind(Agent::Claude)).agent.kind, Agent::Claude);
    }

    #[test]
    fn a_project_without_ci_of_its_own_hears_of_one_in_the_copy() {
        let config = Config::parse("name = \"shop\"\n[ci]\nkind = \"none\"\n", "pointsman.toml").unwrap();
        let text = settings(&config, Worker::Script, Path::new("/bin/pointsman"), Path::new("/p")).unwrap();
        let copy = Config::parse(&text, "pointsman.toml").unwrap();
        assert_eq!(copy.ci.command.as_deref().unwrap(), ["true"]);
    }
}
