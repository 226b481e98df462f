//! The sandbox: what a session, or a program that a branch brings, sees of the machine.
//!
//! [`plan`] computes the list of mounts from facts about the machine and a description of what is enclosed. `machine.rs` says
//! which facts it needs and which places of a home hold programs. `landlock.rs` has the same list as rights, `syscalls.rs` the
//! system calls that are refused. The adapter (`pointsman-adapters/src/sandbox`) gathers the facts and turns the plan into
//! a command.

mod landlock;
mod machine;
pub mod network;
pub mod syscalls;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::network::registries::Registry;
use crate::config::{SandboxMode, SandboxSettings, Worktree};

pub use landlock::{Beneath, Right};
pub use machine::{
    Credential, GO_RELEASES, MachineFacts, PNPM_HOME, PNPM_WRITES, ProgramDir, ProgramLink, SystemEntry,
    TOOL_VARIABLES, holds_credentials, installation_of, is_go_release, is_hidden_among_programs,
    may_have_settings, shows_etc, system_paths, system_settings, tool_roots,
};

/// Everything that is visible inside a sandbox, parents before what is mounted on them, and its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub mounts: Vec<Mount>,
    pub limits: Limits,
    #[serde(default)]
    pub network: Network,
}

/// The network that those inside find.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// That of the machine. Earlier releases had no other.
    #[default]
    Shared,
    /// None but a socket that leads to the proxy.
    Proxy {
        /// The socket, as it is seen inside.
        socket: PathBuf,
        /// Destinations on the loopback interface of the machine, which are not inside.
        through: Vec<String>,
        /// Variables that name an address of the relay, with the path behind it.
        #[serde(default)]
        services: BTreeMap<String, String>,
        /// Package registries that have base addresses.
        #[serde(default)]
        registries: Vec<Registry>,
    },
}

/// One place inside a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// The path inside.
    pub path: PathBuf,
    pub access: Access,
    pub why: Purpose,
    /// The path outside; none if it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PathBuf>,
}

/// The content of a place, and what may be done with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Read,
    Write,
    /// A new, empty file system that ends with the sandbox.
    Empty,
    /// A symbolic link, as outside.
    Link(PathBuf),
    /// An empty file in place of one that is not for those inside.
    Hidden,
    /// An empty directory in place of one that is not for those inside.
    Covered,
}

impl Access {
    /// The word that scripts see.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Empty => "empty",
            Self::Link(_) => "link",
            // To those who read the list the two are the same.
            Self::Hidden | Self::Covered => "hidden",
        }
    }
}

/// The reason why something is visible. `words::sandbox` has the sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    System,
    Temporary,
    Home,
    Programs,
    Agent,
    ThisProgram,
    Credential,
    Ours,
    Tree,
    Gateway,
    Messages,
    RunFiles,
    PhaseDirectory,
    Socket,
    Network,
    Operator,
    AgentSettings,
    Objects,
    Mirror,
    Start,
    Checkout,
    Result,
}

/// The limits of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// None for as many as the machine allows.
    pub processes: Option<u32>,
    /// Bytes of memory of one process.
    pub memory: Option<u64>,
    /// Bytes of each temporary file system.
    pub disk: Option<u64>,
}

impl Limits {
    /// The limits of a configuration.
    pub fn of(settings: &SandboxSettings) -> Self {
        Self {
            processes: (settings.processes > 0).then_some(settings.processes),
            memory: settings.memory.map(|size| size.bytes),
            disk: settings.disk.map(|size| size.bytes),
        }
    }
}

/// The things of one session that its sandbox shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPaths {
    pub tree: PathBuf,
    /// None for a session that pushes nothing.
    pub gateway: Option<PathBuf>,
    pub messages: PathBuf,
    pub run: PathBuf,
    /// Where the protocol's files are expected.
    pub phase_dir: PathBuf,
    /// The directory of this generation that is shown there.
    pub phases: PathBuf,
    /// The directory with the control socket of this session, and where it is shown.
    pub socket: (PathBuf, PathBuf),
    pub objects: PathBuf,
    /// The description of the program to become.
    pub spec: PathBuf,
    /// Our own program.
    pub program: PathBuf,
    /// The agent's own directory of settings, if it has one.
    pub settings: Option<PathBuf>,
    /// The directory with the proxy's socket for this session, and where it is shown.
    pub network: Option<(PathBuf, PathBuf)>,
}

impl SessionPaths {
    fn mounts(&self) -> Vec<Mount> {
        let mut mounts = vec![
            read(&self.program, Purpose::ThisProgram),
            read(&self.spec, Purpose::Start),
            read(&self.objects, Purpose::Objects),
            read(&self.messages, Purpose::Messages),
            shown_at(&self.phases, &self.phase_dir, Access::Write, Purpose::PhaseDirectory),
            write(&self.tree, Purpose::Tree),
            write(&self.run, Purpose::RunFiles),
            shown_at(&self.socket.0, &self.socket.1, Access::Read, Purpose::Socket),
        ];
        mounts.extend(self.gateway.as_deref().map(|gateway| write(gateway, Purpose::Gateway)));
        mounts.extend(self.settings.as_deref().map(|dir| write(dir, Purpose::AgentSettings)));
        mounts.extend(network(self.network.as_ref()));
        mounts
    }
}

/// The things that a program of the project sees: CI, gate, reviewer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckoutPaths {
    pub checkout: PathBuf,
    pub objects: PathBuf,
    /// The repository that `origin` names, if it lies on this machine.
    pub origin: Option<PathBuf>,
    /// The file for its answer, if it gives one; it exists.
    pub result: Option<PathBuf>,
    pub program: PathBuf,
    /// The directory with the proxy's socket for it, and where it is shown.
    pub network: Option<(PathBuf, PathBuf)>,
}

impl CheckoutPaths {
    fn mounts(&self) -> Vec<Mount> {
        let mut mounts =
            vec![read(&self.program, Purpose::ThisProgram), read(&self.objects, Purpose::Objects)];
        mounts.extend(self.origin.as_deref().map(|origin| read(origin, Purpose::Mirror)));
        mounts.push(write(&self.checkout, Purpose::Checkout));
        mounts.extend(self.result.as_deref().map(|file| write(file, Purpose::Result)));
        mounts.extend(network(self.network.as_ref()));
        mounts
    }
}

/// The thing that a sandbox is around.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enclosed {
    Session(Box<SessionPaths>),
    Checkout(CheckoutPaths),
}

/// Computes what is visible inside. `agent` has the places of the program that is to be run, as far as they are not of the
/// system.
pub fn plan(machine: &MachineFacts, enclosed: &Enclosed, agent: &[PathBuf], limits: Limits) -> Plan {
    let mut places: BTreeMap<PathBuf, Mount> = BTreeMap::new();
    let mut put = |mount: Mount| places.insert(mount.path.clone(), mount);
    for entry in &machine.system {
        let access = entry.link.clone().map_or(Access::Read, Access::Link);
        put(Mount { path: entry.path.clone(), access, why: Purpose::System, source: None });
    }
    for path in ["/tmp", "/var/tmp", "/run"] {
        put(empty(Path::new(path), Purpose::Temporary));
    }
    // A home that holds the system itself cannot be emptied.
    let home = machine.home.as_deref().filter(|home| home.parent().is_some());
    if let Some(home) = home.filter(|home| !machine.system.iter().any(|entry| entry.path.starts_with(home))) {
        put(empty(home, Purpose::Home));
    }
    // A directory of the system that is also one of programs stays what it is.
    for path in machine.program_places() {
        places.entry(path.clone()).or_insert_with(|| read(&path, Purpose::Programs));
    }
    for link in machine.links.iter().filter(|link| machine.may_show(&link.path)) {
        let access = Access::Link(link.target.clone());
        let mount = Mount { path: link.path.clone(), access, why: Purpose::Programs, source: None };
        places.entry(link.path.clone()).or_insert(mount);
    }
    for path in agent.iter().filter(|path| machine.may_show(path)) {
        places.entry(path.clone()).or_insert_with(|| read(path, Purpose::Agent));
    }
    let mut put = |mount: Mount| places.insert(mount.path.clone(), mount);
    for credential in &machine.credentials {
        let access = if credential.is_dir { Access::Covered } else { Access::Hidden };
        put(Mount { path: credential.path.clone(), access, why: Purpose::Credential, source: None });
    }
    let own = match enclosed {
        Enclosed::Session(paths) => paths.mounts(),
        Enclosed::Checkout(paths) => paths.mounts(),
    };
    for path in &machine.operator.read {
        put(read(path, Purpose::Operator));
    }
    for path in &machine.operator.write {
        put(write(path, Purpose::Operator));
    }
    for path in &machine.ours {
        put(Mount { path: path.clone(), access: Access::Covered, why: Purpose::Ours, source: None });
    }
    for mount in own {
        put(mount);
    }
    Plan {
        mounts: places.values().filter(|mount| !is_shown_already(mount, &places)).cloned().collect(),
        limits,
        network: Network::Shared,
    }
}

fn network(dirs: Option<&(PathBuf, PathBuf)>) -> Option<Mount> {
    dirs.map(|(from, to)| shown_at(from, to, Access::Read, Purpose::Network))
}

/// Whether the nearest place above shows the same thing already. What is hidden is there only if its directory is shown.
fn is_shown_already(mount: &Mount, places: &BTreeMap<PathBuf, Mount>) -> bool {
    let above = mount.path.ancestors().skip(1).find_map(|path| places.get(path));
    match (&mount.access, above) {
        // Through a link the same is seen.
        (Access::Read, Some(above)) => {
            let seen = matches!(above.access, Access::Read | Access::Link(_));
            seen && above.source.is_none() && mount.source.is_none()
        }
        (Access::Hidden | Access::Covered, above) => {
            above.is_none_or(|above| !matches!(above.access, Access::Read | Access::Write))
        }
        (Access::Read | Access::Write | Access::Empty | Access::Link(_), _) => false,
    }
}

fn read(path: &Path, why: Purpose) -> Mount {
    Mount { path: path.to_owned(), access: Access::Read, why, source: None }
}

fn write(path: &Path, why: Purpose) -> Mount {
    Mount { path: path.to_owned(), access: Access::Write, why, source: None }
}

fn empty(path: &Path, why: Purpose) -> Mount {
    Mount { path: path.to_owned(), access: Access::Empty, why, source: None }
}

fn shown_at(source: &Path, path: &Path, access: Access, why: Purpose) -> Mount {
    let source = (source != path).then(|| source.to_owned());
    Mount { path: path.to_owned(), access, why, source }
}

/// The reason why something runs outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Outside {
    /// The configuration says so.
    Off,
    /// The working tree is linked to the mirror, so that the session must write there.
    Linked,
    /// The role uses containers, whose daemon starts programs outside of any sandbox.
    Containers,
    /// bubblewrap is not installed.
    Missing,
    /// AppArmor does not let ordinary programs make user namespaces.
    AppArmor,
    /// The kernel does not let this user make user namespaces.
    NoNamespaces,
    /// bubblewrap failed for another reason, in its own words.
    Broken { why: String },
    /// Whether bubblewrap works could not be found out: the probe took too long or could not be started.
    Unclear { why: String },
}

impl Outside {
    /// Whether this may be over in a moment, because it is about the load of the machine and not about its settings.
    pub fn passes(&self) -> bool {
        match self {
            Self::Unclear { .. } => true,
            Self::Off
            | Self::Linked
            | Self::Containers
            | Self::Missing
            | Self::AppArmor
            | Self::NoNamespaces
            | Self::Broken { .. } => false,
        }
    }
}

/// The side of the sandbox on which something runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Inside,
    Outside(Outside),
    /// It must not run, because it would be outside.
    Nowhere(Outside),
}

/// Decides where something runs. `works` is an error if the sandbox does not work on this machine.
pub fn decide(settings: &SandboxSettings, worktree: Worktree, works: Result<(), &Outside>) -> Place {
    let obstacle = match (worktree, works) {
        (Worktree::Linked, _) => Some(Outside::Linked),
        (Worktree::Private, _) if settings.containers => Some(Outside::Containers),
        (Worktree::Private, Err(why)) => Some(why.clone()),
        (Worktree::Private, Ok(())) => None,
    };
    match (settings.mode, obstacle) {
        (SandboxMode::Off, _) => Place::Outside(Outside::Off),
        (SandboxMode::Auto | SandboxMode::Require, None) => Place::Inside,
        (SandboxMode::Auto, Some(why)) if !why.passes() => Place::Outside(why),
        (SandboxMode::Auto | SandboxMode::Require, Some(why)) => Place::Nowhere(why),
    }
}
