//! The sandbox around sessions and around what a branch brings, as the daemon and the commands build it.
//!
//! The core decides what is shown and whether something runs inside; the adapter knows bubblewrap. Here both meet the paths
//! of a project.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anyhow::Context as _;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::phase_file;
use pointsman_adapters::process::{self, Members, Program, signals};
use pointsman_adapters::proxy::{self, ProxyDir, Refused, RefusedCount};
use pointsman_adapters::sandbox::{self, Bubblewrap, LayeredCheckout, Lifetime, Reading};
use pointsman_adapters::secret::Secret;
use pointsman_core::config::{Config, MachineConfig, MachineWeb, SandboxSettings, Worktree};
use pointsman_core::ids::Sha;
use pointsman_core::notifier::DigestTime;
use pointsman_core::people::People;
use pointsman_core::relay::ModelAccess;
use pointsman_core::sandbox::network::registries::{
    self, HOME_SETTINGS, REGISTRY_FILES, REGISTRY_VARIABLES, Rank, Registry,
};
use pointsman_core::sandbox::network::{Policy, Refusal, expand};
use pointsman_core::sandbox::{
    Beneath, CheckoutPaths, Enclosed, Limits, MachineFacts, Network, Outside, Place, Plan, SessionPaths,
    TOOL_VARIABLES, decide, plan,
};
use pointsman_core::task::Task;
use pointsman_core::words;
use serde::{Deserialize, Serialize};

use crate::daemon::LaunchSandbox;
use crate::model_login::{self, Login};
use crate::paths::{Paths, ProjectPaths};
use crate::remote::Environment;

/// Where a sandbox finds the socket of the proxy.
const PROXY_INSIDE: &str = "/run/pointsman-proxy";
/// The most of a lock file that is read.
const LOCK_FILE_CAP: usize = 16 << 20;

/// Whether bubblewrap works does not change while a program runs. A probe that said nothing is not kept.
static BUBBLEWRAP: OnceLock<Result<Bubblewrap, Outside>> = OnceLock::new();

/// The means to enclose programs.
#[derive(Clone, Debug)]
pub(crate) struct Enclosure {
    environment: Environment,
    /// This program, which is the first inside.
    program: PathBuf,
    /// What the operator of this machine allows.
    machine: MachineConfig,
    proxy: ProxyDir,
    paths: Paths,
    /// The credential that the relay was told last.
    told: Arc<Mutex<Option<Login>>>,
}

impl Enclosure {
    /// With the environment of the process that starts programs.
    pub(crate) fn new(environment: Environment, paths: &Paths) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context(words::daemon::process::own_program_unknown())?;
        let machine = machine_config(environment)?;
        let proxy = ProxyDir::at(paths.proxy());
        Ok(Self { environment, program, machine, proxy, paths: paths.clone(), told: Arc::default() })
    }

    /// The credential for the model's API, if there is any.
    pub(crate) fn login(&self) -> anyhow::Result<Option<Login>> {
        model_login::find(&self.paths, self.environment)
    }

    /// Whether sessions of a project need that credential: those that work on tasks ask the relay.
    pub(crate) fn needs_login(&self, config: &Config) -> bool {
        let settings = config.sandbox(Task::ROLE);
        let is_inside = self.place(&settings, config.dev.worktree) == Place::Inside;
        is_inside && model_login::is_relayed(config.agent_kind(Task::ROLE), &settings, &config.agent.pass_env)
    }

    /// The warning that nobody is logged in, where that keeps sessions from starting.
    pub(crate) fn login_warning(&self, config: &Config) -> Option<String> {
        let is_missing = self.needs_login(config) && self.login().is_ok_and(|login| login.is_none());
        is_missing.then(words::relay::login_warning)
    }

    /// The address of the model's API.
    pub(crate) fn model_address(&self) -> String {
        model_login::address(self.environment)
    }

    /// Everybody whose word counts, with their accounts.
    pub(crate) fn people(&self) -> &People {
        &self.machine.people
    }

    /// The time of the day at which people are told how things stand.
    pub(crate) fn digest(&self) -> DigestTime {
        self.machine.digest.at
    }

    /// The number of daily backups that are kept.
    pub(crate) fn kept_backups(&self) -> u32 {
        self.machine.backup.keep
    }

    /// The destinations behind these words of a configuration. `agent` are the hosts of the session's own agent.
    pub(crate) fn policy(&self, words: &[String], agent: &[String], paths: &ProjectPaths) -> Policy {
        let packages: Packages = fs::read(paths.packages())
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        // A project's settings count before those of this machine's tools, and these before what lock files only remember.
        let of_rank = |rank: Rank| {
            let named = packages.registries.iter().flatten().filter(move |(at, _)| *at == rank);
            named.map(|(_, registry)| registry.clone())
        };
        let mut found = Vec::new();
        registries::add(&mut found, of_rank(Rank::Setting));
        registries::add(&mut found, self.operator_registries());
        registries::add(&mut found, of_rank(Rank::Lock));
        let (hosts, registries) = expand(words, agent, &found);
        let private_hosts = self.machine.sandbox.private_hosts.clone();
        Policy { hosts, private_hosts, learning: false, registries }
    }

    /// The registries that the tools of this machine are set to, for those that its sandboxes do not see the settings of.
    fn operator_registries(&self) -> Vec<Registry> {
        let named = REGISTRY_VARIABLES.into_iter().filter_map(|(name, tool)| {
            registries::variable_registry(tool, (self.environment)(name)?.to_str()?)
        });
        let mut found: Vec<Registry> = named.collect();
        let home = (self.environment)("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        for (file, like) in home.iter().flat_map(|_| HOME_SETTINGS) {
            let path = home.as_deref().unwrap_or(Path::new("/")).join(file);
            let text = fs::read(path).unwrap_or_default();
            let more = registries::operator_registries(like, &String::from_utf8_lossy(&text));
            registries::add(&mut found, more);
        }
        found
    }

    /// Opens the way to the network for one sandbox. Answers the directory of its socket, and where it is shown.
    pub(crate) fn open_network(
        &self,
        name: &str,
        policy: &Policy,
        model: Option<&(ModelAccess, Secret)>,
    ) -> anyhow::Result<(PathBuf, PathBuf)> {
        let model = model.map(|(access, secret)| (access, secret));
        let opened = self.proxy.open(&self.program, name, policy, model);
        let opened = opened.with_context(words::daemon::process::no_proxy)?;
        Ok((opened.shown(), PathBuf::from(PROXY_INSIDE)))
    }

    /// Starts the proxy again if it is gone and any sandbox needs it, and tells it the credential if it may not know it.
    pub(crate) fn keep_network(&self) {
        if !self.proxy.is_used() {
            return;
        }
        let is_new = match proxy::ensure_running(&self.proxy, &self.program) {
            Ok(is_new) => is_new,
            Err(error) => return tracing::error!(%error, "sandboxes have no network"),
        };
        let login = self.login().unwrap_or_else(|error| {
            tracing::warn!(error = format!("{error:#}"), "the login for the model's API cannot be read");
            None
        });
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_new && *told == login {
            return;
        }
        let result = match (&login, &*told) {
            (Some(login), _) => self.proxy.learn(login.name, Some(&login.secret)),
            (None, Some(before)) => self.proxy.learn(before.name, None),
            (None, None) => Ok(()),
        };
        match result {
            Ok(()) => *told = login,
            Err(error) => tracing::warn!(%error, "the relay was not told the login for the model's API"),
        }
    }

    /// The directory of the proxy.
    pub(crate) fn proxy(&self) -> &ProxyDir {
        &self.proxy
    }

    /// The destinations that a sandbox asked for in vain, a sentence each.
    pub(crate) fn refused(&self, name: &str) -> Vec<String> {
        lines(&self.proxy.sandbox(name).map(|sandbox| sandbox.refused()).unwrap_or_default())
    }

    /// The same for a session, which may have ended.
    pub(crate) fn refused_session(&self, session: &str, paths: &ProjectPaths) -> Vec<String> {
        let running = self.refused(&Paths::proxy_name(session));
        if running.is_empty() { lines(&Refused::kept(&paths.refused(session))) } else { running }
    }

    /// The destinations that a sandbox asked for and that nobody listed, and the package registries that were not there.
    pub(crate) fn unlisted(&self, name: &str) -> Vec<String> {
        let refused = self.proxy.sandbox(name).map(|sandbox| sandbox.refused()).unwrap_or_default();
        let is_listed = |to: &str, found: &RefusedCount| match found.why {
            Refusal::NotListed | Refusal::Port => false,
            // Nobody who writes commits can mend a registry.
            Refusal::PrivateAddress | Refusal::Unresolvable | Refusal::Unreachable => {
                Registry::parse(to).is_none()
            }
            Refusal::Malformed | Refusal::AddressLiteral | Refusal::NotPassed | Refusal::ReadOnly => true,
        };
        refused.0.into_iter().filter(|(to, found)| !is_listed(to, found)).map(|(to, _)| to).collect()
    }

    /// The programs that asked for these destinations in vain.
    pub(crate) fn askers(&self, name: &str, destinations: &[String]) -> Vec<String> {
        let refused = self.proxy.sandbox(name).map(|sandbox| sandbox.refused()).unwrap_or_default();
        let asked = destinations.iter().filter_map(|to| refused.0.get(to)?.program.clone());
        asked.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Closes the way to the network of a program in a checkout.
    pub(crate) fn close_network(&self, name: &str) {
        self.proxy.close(name);
    }

    fn through_proxy(&self, mut plan: Plan, policy: &Policy, services: BTreeMap<String, String>) -> Plan {
        plan.network = Network::Proxy {
            socket: Path::new(PROXY_INSIDE).join(proxy::SOCKET),
            through: policy.on_loopback(),
            services,
            registries: policy.registries.clone(),
        };
        plan
    }

    fn machine_facts(&self) -> MachineFacts {
        let mut operator = self.machine.sandbox.clone();
        // bubblewrap would refuse to start for a path that is not there.
        operator.read.retain(|path| path.exists());
        operator.write.retain(|path| path.exists());
        MachineFacts { operator, ours: self.own_directories(), ..sandbox::look(self.environment) }
    }

    /// The machine for a command that runs in `dir`, and the places of that command.
    fn machine_for(
        &self,
        program: Option<&Path>,
        command: &[String],
        dir: &Path,
    ) -> (MachineFacts, Vec<PathBuf>) {
        let mut machine = self.machine_facts();
        let places = sandbox::places_of(&machine, program, command, dir);
        machine.credentials.extend(places.iter().flat_map(|place| sandbox::credentials_below(place)));
        (machine, places)
    }

    /// The sandbox of this machine, or the reason why there is none.
    pub(crate) fn bubblewrap(&self) -> Result<&'static Bubblewrap, Outside> {
        if BUBBLEWRAP.get().is_none() {
            match Bubblewrap::probe((self.environment)("PATH").as_deref()) {
                Err(why) if why.passes() => return Err(why),
                // Another thread may have been first, with the same answer.
                probed => drop(BUBBLEWRAP.set(probed)),
            }
        }
        let unclear = || Outside::Unclear { why: String::new() };
        BUBBLEWRAP.get().ok_or_else(unclear)?.as_ref().map_err(Clone::clone)
    }

    /// The sandbox in which git reads what agents write. It is there wherever bubblewrap works, whatever the settings say.
    pub(crate) fn reading(&self) -> impl Fn() -> Result<Option<Reading>, String> + Send + Sync + 'static {
        let (enclosure, found) = (self.clone(), OnceLock::new());
        move || match enclosure.bubblewrap() {
            Ok(bubblewrap) => {
                let path = (enclosure.environment)("PATH");
                let reading = || Reading::new(bubblewrap, path.as_deref(), &enclosure.own_directories());
                Ok(Some(found.get_or_init(reading).clone()))
            }
            Err(why) if why.passes() => Err(words::sandbox::outside(&why)),
            Err(_) => Ok(None),
        }
    }

    fn own_directories(&self) -> Vec<PathBuf> {
        let dirs = [self.paths.state(), self.paths.runtime()];
        dirs.into_iter().filter_map(|dir| dir.canonicalize().ok()).collect()
    }

    /// Whether the filter of system calls holds inside.
    pub(crate) fn filters(&self) -> bool {
        self.bubblewrap().is_ok_and(|bubblewrap| bubblewrap.filters)
    }

    /// The side on which something runs by these settings.
    pub(crate) fn place(&self, settings: &SandboxSettings, worktree: Worktree) -> Place {
        decide(settings, worktree, self.bubblewrap().map(drop).as_ref().copied())
    }

    /// The words before a program of the project that is run in a checkout: CI, gate, reviewer. None if nothing is around it.
    pub(crate) fn around_checkout(
        &self,
        config: &Config,
        paths: &ProjectPaths,
        checkout: &Checkout<'_>,
    ) -> anyhow::Result<Option<Vec<OsString>>> {
        let members = paths.members_in(checkout.dir);
        let sandbox = self.sandbox_around_checkout(config, paths, checkout)?;
        if sandbox.is_none() && members.cgroup.is_none() {
            return Ok(None);
        }
        let mut words: Vec<OsString> = vec![self.program.clone().into(), "confine".into()];
        words.push(serde_json::to_string(&members)?.into());
        words.extend(sandbox.is_some().then(|| "--sandbox".into()));
        let filters = sandbox.is_some() && self.filters();
        words.extend(filters.then(|| "--filter".into()));
        if let Some(layers) = checkout.layers {
            words.extend(["--layers".into(), serde_json::to_string(layers)?.into()]);
        }
        words.push("--".into());
        words.extend(sandbox.into_iter().flatten());
        Ok(Some(words))
    }

    fn sandbox_around_checkout(
        &self,
        config: &Config,
        paths: &ProjectPaths,
        checkout: &Checkout<'_>,
    ) -> anyhow::Result<Option<Vec<OsString>>> {
        // A checkout is never linked.
        match self.place(&config.sandbox, Worktree::Private) {
            Place::Inside => {}
            Place::Outside(_) => return Ok(None),
            Place::Nowhere(why) => anyhow::bail!(words::sandbox::required(&why)),
        }
        let Ok(bubblewrap) = self.bubblewrap() else { return Ok(None) };
        let (Some(program), path) = (checkout.command.first(), (self.environment)("PATH")) else {
            return Ok(None);
        };
        // Nothing that a branch brings is started outside, even if it looks as if it could not be started: only the kernel
        // knows how it reads the first line of a script.
        let found = match checkout.look_for_program(program, path.as_deref()) {
            Program::Found(path) | Program::NoInterpreter { path, .. } => path,
            Program::Missing => anyhow::bail!(cannot_start(program, ErrorKind::NotFound)),
            Program::NotExecutable(_) => anyhow::bail!(cannot_start(program, ErrorKind::PermissionDenied)),
        };
        let mirror = paths.mirror();
        let limits = Limits::of(&config.sandbox);
        let policy =
            Policy { learning: checkout.learning, ..self.policy(&config.sandbox.ci_hosts, &[], paths) };
        let network = self.open_network(&ProjectPaths::proxy_name_in(checkout.dir), &policy, None)?;
        let enclosed = Enclosed::Checkout(CheckoutPaths {
            checkout: checkout.dir.to_owned(),
            objects: mirror.join("objects"),
            origin: origin_of(config, &mirror),
            result: checkout.answer.map(Path::to_owned),
            program: self.program.clone(),
            network: Some(network),
        });
        let (machine, agent) = self.machine_for(Some(&found), checkout.command, checkout.dir);
        let plan = self.through_proxy(plan(&machine, &enclosed, &agent, limits), &policy, BTreeMap::new());
        let mut words = bubblewrap.command(&plan, checkout.dir, Lifetime::ProcessGroup);
        words.extend([self.program.clone().into_os_string(), "enter".into()]);
        if sandbox::has_limits(&limits) {
            words.push(serde_json::to_string(&limits)?.into());
        }
        words.extend(["--network".into(), serde_json::to_string(&plan.network)?.into()]);
        words.extend(["--rights".into(), serde_json::to_string(&plan.rights())?.into()]);
        words.push("--".into());
        Ok(Some(words))
    }
}

impl Enclosure {
    /// The sandbox of one session, if it runs inside. An error if it must and cannot.
    pub(crate) fn around_session(
        &self,
        settings: &SandboxSettings,
        worktree: Worktree,
        session: SessionPaths,
        command: &[String],
        policy: &Policy,
        services: BTreeMap<String, String>,
    ) -> Result<Option<LaunchSandbox>, String> {
        match self.place(settings, worktree) {
            Place::Inside => {}
            Place::Outside(_) => return Ok(None),
            Place::Nowhere(why) => return Err(words::sandbox::required(&why)),
        }
        let Ok(bubblewrap) = self.bubblewrap() else { return Ok(None) };
        let path = (self.environment)("PATH");
        let program =
            command.first().and_then(|name| process::find_program(name, path.as_deref(), &session.tree));
        let (machine, agent) = self.machine_for(program.as_deref(), command, &session.tree);
        let runtime = session.socket.1.to_string_lossy().into_owned();
        let program = session.program.clone();
        let plan = plan(&machine, &Enclosed::Session(Box::new(session)), &agent, Limits::of(settings));
        let plan = self.through_proxy(plan, policy, services);
        let mut env = BTreeMap::from([("POINTSMAN_RUNTIME_DIR".to_owned(), runtime)]);
        let tool = |name: &str| Some((name.to_owned(), (self.environment)(name)?.into_string().ok()?));
        env.extend(TOOL_VARIABLES.into_iter().filter_map(tool));
        let filters = bubblewrap.filters;
        Ok(Some(LaunchSandbox { bubblewrap: bubblewrap.program().to_owned(), filters, program, plan, env }))
    }
}

/// Whether layers can be mounted does not change while a program runs.
static LAYERS: OnceLock<bool> = OnceLock::new();

impl Enclosure {
    /// Whether a checkout can be shown in layers: only a sandbox sees the mount.
    pub(crate) fn has_layers(&self, config: &Config) -> bool {
        let is_inside = self.place(&config.sandbox, Worktree::Private) == Place::Inside;
        let Ok(bubblewrap) = self.bubblewrap() else { return false };
        is_inside && *LAYERS.get_or_init(|| bubblewrap.probe_layers(&self.program, self.paths.state()))
    }
}

impl Checkout<'_> {
    /// A program by its name, or a file of the checkout, which layers have elsewhere.
    fn look_for_program(&self, program: &str, path: Option<&OsStr>) -> Program {
        let found = process::look_for_program(program, path, self.dir);
        let (Some(layered), Program::Missing, true) = (self.layers, &found, program.contains('/')) else {
            return found;
        };
        let Some(file) = layered.layers.file(Path::new(program)) else { return found };
        match process::look_for_program(&file.to_string_lossy(), path, self.dir) {
            Program::Found(_) | Program::NoInterpreter { .. } => Program::Found(self.dir.join(program)),
            other @ (Program::Missing | Program::NotExecutable(_)) => other,
        }
    }
}

/// A program in a checkout.
pub(crate) struct Checkout<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) command: &'a [String],
    /// The directory for its answer, if it gives one.
    pub(crate) answer: Option<&'a Path>,
    /// Whether it reaches any host of the internet, so that people see which ones it needs.
    pub(crate) learning: bool,
    /// The layers that are seen at the directory, if it is empty itself.
    pub(crate) layers: Option<&'a LayeredCheckout>,
}

fn cannot_start(program: &str, why: ErrorKind) -> String {
    words::daemon::session::cannot_start(program, why)
}

fn lines(refused: &Refused) -> Vec<String> {
    let line = |(to, found): (&String, &RefusedCount)| {
        words::sandbox::refused_line(to, found.count, found.why, found.program.as_deref())
    };
    refused.0.iter().map(line).collect()
}

/// The repository that `origin` of a checkout names, if it lies on this machine.
fn origin_of(config: &Config, mirror: &Path) -> Option<PathBuf> {
    if config.forge.kind.is_embedded() {
        return Some(mirror.to_owned());
    }
    let url = config.forge.url.as_deref()?;
    let path = Path::new(url.strip_prefix("file://").unwrap_or(url));
    (path.is_absolute() && path.is_dir()).then(|| path.to_owned())
}

/// The first program inside: takes limits and rights on, opens the way to the network and becomes the command. Each is JSON.
pub(crate) fn enter(
    limits: Option<&str>,
    rights: Option<&str>,
    network: Option<&str>,
    command: &[OsString],
    environment: Environment,
) -> anyhow::Result<Infallible> {
    if let Some(limits) = limits {
        sandbox::apply(&serde_json::from_str(limits)?)?;
    }
    if let Some(rights) = rights {
        let rights: Vec<Beneath> = serde_json::from_str(rights)?;
        sandbox::restrict(&rights).with_context(words::daemon::process::no_rights)?;
    }
    signals::unshield_this_thread()?;
    let network: Network = network.map(serde_json::from_str).transpose()?.unwrap_or_default();
    let env = forwarded(&network, &std::env::current_exe()?, environment)?;
    let (program, args) = command.split_first().context(words::daemon::session::no_program())?;
    let error = become_program(program, args, &env);
    anyhow::bail!(words::daemon::session::cannot_start(&program.to_string_lossy(), error))
}

/// The first program of a job: moves into its control group, mounts the layers of its checkout and becomes the command. A sandbox
/// writes down its first process.
pub(crate) fn confine(
    members: &str,
    layers: Option<&str>,
    is_sandbox: bool,
    is_filtered: bool,
    mut command: Vec<OsString>,
) -> anyhow::Result<Infallible> {
    let members: Members = serde_json::from_str(members)?;
    members.join();
    if let Some(layers) = layers {
        let layers: LayeredCheckout = serde_json::from_str(layers)?;
        sandbox::mount_layers(&layers).with_context(words::daemon::process::no_layers)?;
    }
    let record = if is_sandbox { members.open_record()? } else { None };
    command = sandbox::recorded(command, record.as_ref());
    let filter = if is_filtered { sandbox::open_filter()? } else { None };
    command = sandbox::filtered(command, filter.as_ref());
    let (command, _files) = if is_sandbox { sandbox::with_copies(command) } else { (command, Vec::new()) };
    if !is_sandbox {
        signals::unshield_this_thread()?;
    }
    let (program, args) = command.split_first().context(words::daemon::session::no_program())?;
    let error = become_program(program, args, &[]);
    anyhow::bail!(words::daemon::session::cannot_start(&program.to_string_lossy(), error))
}

/// Starts the forwarder inside a sandbox; answers the variables that lead to it.
pub(crate) fn forwarded(
    network: &Network,
    program: &Path,
    environment: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Vec<(String, String)>> {
    match network {
        Network::Shared => Ok(Vec::new()),
        Network::Proxy { socket, through, services, registries } => {
            let home = |name: &str| environment(name).map(PathBuf::from).filter(|home| home.is_absolute());
            let cargo = home("CARGO_HOME").or_else(|| Some(home("HOME")?.join(".cargo")));
            proxy::forwarder::start(program, socket, through, services, registries, cargo)
                .with_context(words::daemon::process::no_forwarder)
        }
    }
}

/// The registries that a project names, with the commit of main that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Packages {
    pub(crate) main: String,
    /// None if an earlier release looked, which knew hosts only.
    #[serde(default)]
    pub(crate) registries: Option<Vec<(Rank, Registry)>>,
}

/// Looks at the landed main branch, unless it is still where it was.
pub(crate) fn note_packages(mirror: &Mirror, main: &Sha, paths: &ProjectPaths) -> anyhow::Result<()> {
    let known: Option<Packages> =
        fs::read(paths.packages()).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if known.is_some_and(|known| known.main == main.as_str() && known.registries.is_some()) {
        return Ok(());
    }
    let mut found = Vec::new();
    for file in mirror.present(main, &REGISTRY_FILES)? {
        // One that is too large or no file names nothing.
        if let Ok(Some(text)) = mirror.read_file_at(main, &file, LOCK_FILE_CAP) {
            found.extend(registries::registries(&file, &String::from_utf8_lossy(&text)));
        }
    }
    let packages = Packages { main: main.as_str().to_owned(), registries: Some(found) };
    Ok(phase_file::write_state_file(&paths.packages(), &serde_json::to_vec(&packages)?)?)
}

/// Everybody whose word counts, as the machine's file names them.
pub(crate) fn people(environment: Environment) -> anyhow::Result<People> {
    Ok(machine_config(environment)?.people)
}

/// The settings of the web, as the machine's file has them.
pub(crate) fn web(environment: Environment) -> anyhow::Result<MachineWeb> {
    Ok(machine_config(environment)?.web)
}

/// The machine's file; one that is not there sets nothing.
fn machine_config(environment: Environment) -> anyhow::Result<MachineConfig> {
    let named = |name: &str| environment(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let path = named("POINTSMAN_MACHINE_CONFIG").or_else(|| {
        let config = named("XDG_CONFIG_HOME").or_else(|| Some(named("HOME")?.join(".config")))?;
        Some(config.join("pointsman/config.toml"))
    });
    let Some(path) = path else { return Ok(MachineConfig::default()) };
    match fs::read_to_string(&path) {
        Ok(text) => MachineConfig::parse(&text, &path.to_string_lossy()).map_err(anyhow::Error::msg),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(MachineConfig::default()),
        Err(error) => {
            anyhow::bail!(words::sandbox::machine_file(&path.to_string_lossy(), &error.to_string()))
        }
    }
}

/// Not a child: this process itself goes on as the command.
#[allow(clippy::disallowed_methods, reason = "exec replaces this process; nothing is spawned")]
fn become_program(program: &OsString, args: &[OsString], env: &[(String, String)]) -> std::io::Error {
    std::process::Command::new(program).args(args).envs(env.iter().map(|(name, value)| (name, value))).exec()
}
