//! The sandbox around sessions and around what a branch brings, as the daemon and the commands build it.
//!
//! The core decides what is shown and whether something runs inside; the adapter knows bubblewrap. Here both meet the paths
//! of a project.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::Context as _;
use pointsman_adapters::process::{self, Members, Program, signals};
use pointsman_adapters::sandbox::{self, Bubblewrap, Lifetime};
use pointsman_core::config::{Config, SandboxSettings, Worktree};
use pointsman_core::sandbox::{
    CheckoutPaths, Enclosed, Limits, Outside, Place, SessionPaths, TOOL_VARIABLES, decide, plan,
};
use pointsman_core::words;

use crate::daemon::LaunchSandbox;
use crate::paths::ProjectPaths;
use crate::remote::Environment;

/// Whether bubblewrap works does not change while a program runs.
static BUBBLEWRAP: OnceLock<Result<Bubblewrap, Outside>> = OnceLock::new();

/// The means to enclose programs.
#[derive(Clone, Debug)]
pub(crate) struct Enclosure {
    environment: Environment,
    /// This program, which is the first inside.
    program: PathBuf,
}

impl Enclosure {
    /// With the environment of the process that starts programs.
    pub(crate) fn new(environment: Environment) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context(words::daemon::process::own_program_unknown())?;
        Ok(Self { environment, program })
    }

    /// The sandbox of this machine, or the reason why there is none.
    pub(crate) fn bubblewrap(&self) -> Result<&'static Bubblewrap, &'static Outside> {
        let path = (self.environment)("PATH");
        BUBBLEWRAP.get_or_init(|| Bubblewrap::probe(path.as_deref())).as_ref()
    }

    /// The side on which something runs by these settings.
    pub(crate) fn place(&self, settings: &SandboxSettings, worktree: Worktree) -> Place {
        decide(settings.mode, worktree, self.bubblewrap().map(|_| ()))
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
        // One that cannot be started at all is started outside, where the error names it.
        let Program::Found(found) = process::look_for_program(program, path.as_deref(), checkout.dir) else {
            return Ok(None);
        };
        let mirror = paths.mirror();
        let limits = Limits::of(&config.sandbox);
        let enclosed = Enclosed::Checkout(CheckoutPaths {
            checkout: checkout.dir.to_owned(),
            objects: mirror.join("objects"),
            origin: origin_of(config, &mirror),
            result: checkout.answer.map(Path::to_owned),
            program: self.program.clone(),
        });
        let agent = sandbox::places_of(Some(&found), checkout.command);
        let plan = plan(&sandbox::look(self.environment), &enclosed, &agent, limits);
        let mut words = bubblewrap.command(&plan, checkout.dir, Lifetime::ProcessGroup);
        words.extend([self.program.clone().into_os_string(), "enter".into()]);
        if sandbox::has_limits(&limits) {
            words.push(serde_json::to_string(&limits)?.into());
        }
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
        let agent = sandbox::places_of(program.as_deref(), command);
        let runtime = session.socket.1.to_string_lossy().into_owned();
        let program = session.program.clone();
        let plan = plan(
            &sandbox::look(self.environment),
            &Enclosed::Session(Box::new(session)),
            &agent,
            Limits::of(settings),
        );
        let mut env = BTreeMap::from([("POINTSMAN_RUNTIME_DIR".to_owned(), runtime)]);
        let tool = |name: &str| Some((name.to_owned(), (self.environment)(name)?.into_string().ok()?));
        env.extend(TOOL_VARIABLES.into_iter().filter_map(tool));
        Ok(Some(LaunchSandbox { bubblewrap: bubblewrap.program().to_owned(), program, plan, env }))
    }
}

/// A program in a checkout.
pub(crate) struct Checkout<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) command: &'a [String],
    /// The directory for its answer, if it gives one.
    pub(crate) answer: Option<&'a Path>,
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

/// The first program inside: takes the limits on and becomes the command.
pub(crate) fn enter(limits: Option<&str>, command: &[OsString]) -> anyhow::Result<Infallible> {
    if let Some(limits) = limits {
        sandbox::apply(&serde_json::from_str(limits)?)?;
    }
    signals::unshield_this_thread()?;
    let (program, args) = command.split_first().context(words::daemon::session::no_program())?;
    let error = become_program(program, args);
    anyhow::bail!(words::daemon::session::cannot_start(&program.to_string_lossy(), error))
}

/// The first program of a job: moves into its control group and becomes the command. A sandbox writes down its first process.
pub(crate) fn confine(
    members: &str,
    is_sandbox: bool,
    mut command: Vec<OsString>,
) -> anyhow::Result<Infallible> {
    let members: Members = serde_json::from_str(members)?;
    members.join();
    let record = if is_sandbox { members.open_record()? } else { None };
    command = sandbox::recorded(command, record.as_ref());
    if !is_sandbox {
        signals::unshield_this_thread()?;
    }
    let (program, args) = command.split_first().context(words::daemon::session::no_program())?;
    let error = become_program(program, args);
    anyhow::bail!(words::daemon::session::cannot_start(&program.to_string_lossy(), error))
}

/// Not a child: this process itself goes on as the command.
#[allow(clippy::disallowed_methods, reason = "exec replaces this process; nothing is spawned")]
fn become_program(program: &OsString, args: &[OsString]) -> std::io::Error {
    std::process::Command::new(program).args(args).exec()
}
