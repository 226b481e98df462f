//! The locations of all files: one state directory, one runtime directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pointsman_adapters::process::{Members, cgroup};
use pointsman_core::ids::ProjectName;
use pointsman_core::workflow::WorkflowId;
use sha2::{Digest, Sha256};

/// Names the messages of a session to everything that it starts. Unlike the session's name, no other daemon on this machine
/// has the same value.
const MESSAGES_VARIABLE: &str = "POINTSMAN_INBOX";
/// Names the checkout to its program and to all that it starts.
pub(crate) const CHECKOUT_VARIABLE: &str = "POINTSMAN_CHECKOUT";
/// The longest path a unix socket may have.
const SOCKET_PATH_MAX: usize = 107;

/// The directories of one Pointsman installation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    state: PathBuf,
    runtime: PathBuf,
}

impl Paths {
    /// From the environment: `POINTSMAN_STATE_DIR`, else `$XDG_STATE_HOME/pointsman`, else
    /// `~/.local/state/pointsman`; `POINTSMAN_RUNTIME_DIR`, else a directory of its own for this
    /// state directory under `$XDG_RUNTIME_DIR` or `/tmp`.
    pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<Self> {
        let set = |name: &str| var(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let state = set("POINTSMAN_STATE_DIR")
            .or_else(|| set("XDG_STATE_HOME").map(|d| d.join("pointsman")))
            .or_else(|| set("HOME").map(|d| d.join(".local/state/pointsman")))
            .ok_or_else(|| anyhow::anyhow!("neither POINTSMAN_STATE_DIR nor HOME is set"))?;
        let state = std::path::absolute(state)?;
        let runtime = match set("POINTSMAN_RUNTIME_DIR") {
            Some(dir) => std::path::absolute(dir)?,
            None => {
                let name = format!("pointsman-{}", short_hash(&state));
                let uid = rustix::process::getuid().as_raw();
                set("XDG_RUNTIME_DIR")
                    .filter(|d| d.is_dir())
                    .map_or_else(|| PathBuf::from(format!("/tmp/{name}-{uid}")), |d| d.join(&name))
            }
        };
        Ok(Self { state, runtime })
    }

    /// Both directories, as given.
    pub fn new(state: PathBuf, runtime: PathBuf) -> Self {
        Self { state, runtime }
    }

    /// Makes both directories, readable by us alone, and refuses somebody else's.
    pub fn create(&self) -> anyhow::Result<()> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        for dir in [&self.state, &self.runtime] {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(|e| anyhow::anyhow!("cannot make {}: {e}", dir.display()))?;
            let meta = std::fs::symlink_metadata(dir)?;
            let ours = meta.is_dir() && meta.uid() == rustix::process::getuid().as_raw();
            anyhow::ensure!(ours, "{} is not a directory of ours", dir.display());
        }
        for socket in [self.control_socket(), self.tmux_socket()] {
            let length = socket.as_os_str().len();
            anyhow::ensure!(
                length <= SOCKET_PATH_MAX,
                "{} is too long for a socket ({length} bytes, at most {SOCKET_PATH_MAX}): set POINTSMAN_RUNTIME_DIR to \
                 a shorter path",
                socket.display()
            );
        }
        Ok(())
    }

    /// The state directory.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The runtime directory.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// The daemon's database.
    pub fn database(&self) -> PathBuf {
        self.state.join("pointsman.db")
    }

    /// Copies of all databases.
    pub fn backups(&self) -> PathBuf {
        self.state.join("backups")
    }

    /// The number of the newest event that the store had: an older store was restored.
    pub fn newest_event(&self) -> PathBuf {
        self.state.join("newest-event")
    }

    /// The mark of databases that were restored and not compared with git and the forge yet.
    pub fn restored(&self) -> PathBuf {
        self.state.join("restored")
    }

    /// Variables of services, for those who do not set them in the environment.
    pub fn dotenv(&self) -> PathBuf {
        self.state.join(".env")
    }

    /// Held by the daemon, or by a command that acts in its place.
    pub fn lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    /// The record of the processes that the last daemon descended from.
    pub fn origin(&self) -> PathBuf {
        self.state.join("origin.json")
    }

    /// Notices to people, one JSON value per line.
    pub fn notices(&self) -> PathBuf {
        self.state.join("notices.jsonl")
    }

    /// The log of a detached daemon.
    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// The configuration that all sessions of Claude Code share.
    pub fn claude_config(&self) -> PathBuf {
        self.state.join("claude")
    }

    /// The token that `claude login` keeps.
    pub fn claude_login(&self) -> PathBuf {
        self.state.join("claude-login")
    }

    /// The log of failures in hooks, which have no other way to report them.
    pub fn hook_log(&self) -> PathBuf {
        self.state.join("hook.log")
    }

    /// The socket on which commands reach the daemon.
    pub fn control_socket(&self) -> PathBuf {
        self.runtime.join("control.sock")
    }

    /// The directory with the control socket of one session, and nothing else.
    pub fn session_socket_dir(&self, session: &str) -> PathBuf {
        self.runtime.join("s").join(short_hash(Path::new(session)))
    }

    /// The socket of the private tmux server.
    pub fn tmux_socket(&self) -> PathBuf {
        self.runtime.join("tmux.sock")
    }

    /// The directory of the proxy, through which sandboxes reach the network.
    pub fn proxy(&self) -> PathBuf {
        self.runtime.join("proxy")
    }

    /// The name of a session's sandbox at the proxy.
    pub(crate) fn proxy_name(session: &str) -> String {
        format!("s-{}", short_hash(Path::new(session)))
    }

    /// The file that is there while all work is halted.
    pub fn halted(&self) -> PathBuf {
        self.state.join("halted.json")
    }

    /// Our private tmux server's configuration.
    pub fn tmux_config(&self) -> PathBuf {
        self.runtime.join("tmux.conf")
    }

    /// The activity of each session as its hooks reported it last. It is in the runtime directory because it ends
    /// with the sessions.
    pub fn stances(&self) -> PathBuf {
        self.runtime.join("stances.json")
    }

    /// The directory of sessions without a terminal.
    pub fn headless(&self) -> PathBuf {
        self.runtime.join("headless")
    }

    /// Everything of one project.
    pub fn project(&self, project: &ProjectName) -> ProjectPaths {
        ProjectPaths { root: self.state.join("projects").join(project.as_str()) }
    }
}

/// The directory of one project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectPaths {
    root: PathBuf,
}

impl ProjectPaths {
    /// Those of a project with this directory.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The last numbers that the embedded forge gave out: an older one was restored.
    pub fn newest_on_forge(&self) -> PathBuf {
        self.root.join("newest-on-forge")
    }

    /// The database of the embedded forge.
    pub fn forge_database(&self) -> PathBuf {
        self.root.join("forge.db")
    }

    /// The embedded forge's repository: the remote.
    pub fn forge_repository(&self) -> PathBuf {
        self.root.join("forge.git")
    }

    /// The daemon's own bare repository.
    pub fn mirror(&self) -> PathBuf {
        self.root.join("mirror.git")
    }

    /// The bare repository of captures and checkpoints, which no session sees.
    pub fn captures(&self) -> PathBuf {
        self.root.join("captures.git")
    }

    /// Clean checkouts for CI, reviews and gates; emptied at start-up.
    pub fn checkouts(&self) -> PathBuf {
        self.root.join("checkouts")
    }

    /// Warm trees of the landed main branch, which nothing ever runs in.
    pub(crate) fn warm(&self) -> PathBuf {
        self.root.join("warm")
    }

    /// A checkout of the landed main branch that the next working tree is made of.
    pub(crate) fn spare(&self) -> PathBuf {
        self.root.join("spare")
    }

    /// The means to find all processes of the program in a checkout.
    pub(crate) fn members_in(&self, checkout: &Path) -> Members {
        // The tree of a task has the same name in every one.
        let name = match checkout.strip_prefix(self.sessions()) {
            Ok(tree) => tree.to_string_lossy().replace('/', "-"),
            Err(_) => checkout.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        Members {
            record: Some(self.jobs().join(format!("{name}.json"))),
            shown: Some(checkout.to_owned()),
            variable: Some((CHECKOUT_VARIABLE.to_owned(), checkout.to_string_lossy().into_owned())),
            ..self.members(&format!("job-{name}"))
        }
    }

    /// The means to find all processes of a session with these messages. Those outside a sandbox are known by a variable of theirs.
    pub(crate) fn members_of(&self, session: &str, messages: &Path, enclosed: bool) -> Members {
        let variable =
            (!enclosed).then(|| (MESSAGES_VARIABLE.to_owned(), messages.to_string_lossy().into_owned()));
        let record = enclosed.then(|| messages.with_file_name(format!("processes-{session}.json")));
        let shown = enclosed.then(|| messages.to_owned());
        Members { record, shown, variable, ..self.members(session) }
    }

    fn members(&self, name: &str) -> Members {
        Members { cgroup: cgroup::path(&short_hash(&self.root), name), ..Members::default() }
    }

    /// The name of the sandbox of a program in a checkout, at the proxy.
    pub(crate) fn proxy_name_in(checkout: &Path) -> String {
        format!("j-{}", short_hash(checkout))
    }

    /// The package registries that the landed main branch names, with its commit.
    pub(crate) fn packages(&self) -> PathBuf {
        self.root.join("packages.json")
    }

    /// The records of the processes of CI, gates and review programs.
    pub(crate) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Checkouts of `merge-queue try`, which belong to commands and not to the daemon.
    pub fn trials(&self) -> PathBuf {
        self.root.join("trials")
    }

    /// Our own indexes of working trees: they make a look at an unchanged tree cheap.
    pub fn indexes(&self) -> PathBuf {
        self.root.join("indexes")
    }

    /// Logs of CI, reviews and gates, and transcripts of ended sessions.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// Artifacts of sessions and CI, a directory for each pull request.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Actions for the vault can be put here, a file each.
    pub fn vault_pending(&self) -> PathBuf {
        self.root.join("vault/pending")
    }

    /// Files that were no actions.
    pub fn vault_rejected(&self) -> PathBuf {
        self.root.join("vault/rejected")
    }

    /// The transcript of an ended session.
    pub fn transcript(&self, session: &str) -> PathBuf {
        self.logs().join(format!("{session}.log"))
    }

    /// The log of the last set-up of a task's or a run's working tree.
    pub(crate) fn setup_log(&self, identity: &str) -> PathBuf {
        self.logs().join(format!("{identity}-setup.log"))
    }

    /// The log of the tear-down of a task's or a run's working tree.
    pub(crate) fn teardown_log(&self, identity: &str) -> PathBuf {
        self.logs().join(format!("{identity}-teardown.log"))
    }

    /// The destinations that an ended session asked its sandbox for in vain. It goes with old logs.
    pub(crate) fn refused(&self, session: &str) -> PathBuf {
        self.logs().join(format!("{session}.refused.log"))
    }

    /// All that the sessions of a workflow may touch of ours.
    pub fn sandbox(&self, id: &WorkflowId) -> PathBuf {
        self.sessions().join(id.identity())
    }

    fn sessions(&self) -> PathBuf {
        self.root.join("sessions")
    }
}

/// Twelve digits that tell names apart.
fn short_hash(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    digest.iter().take(6).map(|b| format!("{b:02x}")).collect()
}
