//! Turns a checkout into a project. It looks at everything first and writes afterwards.
//!
//! [`plan`] looks and writes nothing; [`Plan::carry_out`] writes, and takes everything back if a step fails. The core
//! detects how the project is tested (`test_command`). The command line talks to people.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::{BranchName, Git, Version};
use pointsman_adapters::process::find_program;
use pointsman_adapters::tmux;
use pointsman_core::config::{self, Config, ForgeKind, TemplateCi};
use pointsman_core::ids::ProjectName;
use pointsman_core::origin::Origin;
use pointsman_core::test_command::{self, Detected, TestCommand, Tree};
use pointsman_core::text::clean_line;
use pointsman_core::words;

use crate::paths::Paths;
use crate::project::FILE_NAME;

/// The remote that is added to the checkout.
pub const REMOTE: &str = "pointsman";
/// Where projections for people and hooks are written; not for anyone to commit.
pub(crate) const PROJECTIONS: &str = ".claude/state/";

/// The caller's wishes for a new project.
#[derive(Clone, Debug, Default)]
pub struct InitOptions {
    /// The project's name, instead of the directory's.
    pub name: Option<String>,
    /// The branch that work lands on, instead of the one that is found.
    pub branch: Option<String>,
    /// The command that tests a commit, instead of the one that is guessed.
    pub ci: Option<Vec<String>>,
    /// The agent's command, instead of the default one.
    pub agent: Option<Vec<String>>,
    /// Where issues and pull requests are.
    pub forge: WantedForge,
    /// The directories in which CI will look for programs.
    pub search_path: Option<OsString>,
}

/// The wanted home of issues and pull requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WantedForge {
    /// Nobody said: here, and the server that `origin` names is offered.
    #[default]
    Unsaid,
    Here,
    /// Where `origin` is, on a server of the kind that its name tells.
    Origin,
    /// Where `origin` is, on a server of this kind.
    OriginAs(ForgeKind),
}

/// Everything was looked at and is fine; this is what will be written.
#[derive(Debug)]
pub struct Plan {
    root: PathBuf,
    pub config: Config,
    pub text: String,
    /// The commands that test the project, and what gave them away.
    pub detected: Detected,
    /// A server that could be used instead of this machine, and was not asked for.
    pub offer: Option<(ForgeKind, Origin)>,
    /// What people should know beforehand.
    pub notes: Vec<String>,
}

/// A reason why no project can be made here.
#[derive(Debug, thiserror::Error)]
pub enum Obstacle {
    /// Git is missing or too old.
    #[error("{0}")]
    Git(String),
    /// This is not a git repository.
    #[error("{} is not in a git repository", .0.display())]
    NotARepository(PathBuf),
    /// It has no working tree.
    #[error("{} is a bare repository: there is no checkout to work from", .0.display())]
    Bare(PathBuf),
    /// It has no commit.
    #[error("the repository has no commit yet")]
    NoCommit,
    /// No branch can be told to be the primary one.
    #[error("it is not clear which branch work should land on")]
    NoBranch,
    /// There is no such branch.
    #[error("there is no branch `{0}` with a commit")]
    MissingBranch(String),
    /// There is a configuration already.
    #[error("{} exists already", .0.display())]
    Configured(PathBuf),
    /// The directory's name, or the wish, makes no name.
    #[error("`{0}` is not a project name: it must be like [a-z0-9][a-z0-9-]{{0,62}}")]
    BadName(String),
    /// Another checkout has the name.
    #[error("a project called {name} is registered for {}", path.display())]
    NameTaken { name: ProjectName, path: PathBuf },
    /// The remote's name is used for something else.
    #[error("the checkout has a remote called `{REMOTE}` already: {0}")]
    RemoteTaken(String),
    /// `origin` is not on a server.
    #[error("the remote `origin` names no repository on a server")]
    NoOrigin,
    /// The address does not tell what kind of server it is.
    #[error("{0} does not tell by its name what kind of forge it is")]
    UnknownForge(String),
    /// The command that tests a commit makes no configuration.
    #[error(transparent)]
    Config(#[from] config::Error),
    /// Something could not be looked at.
    #[error("{0:#}")]
    Failed(#[from] anyhow::Error),
}

impl Obstacle {
    /// The next step for the person who meets this obstacle.
    pub fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Git(_) => Some("install a newer git (on Debian: apt install git)"),
            Self::NotARepository(_) => Some("git init && git add . && git commit -m \"First commit\""),
            Self::Bare(_) => Some("clone it, and run this in the clone"),
            Self::NoCommit => Some("git add . && git commit -m \"First commit\""),
            Self::NoBranch => Some("name it: pointsman init --branch main"),
            Self::MissingBranch(_) => Some("git branch shows those there are"),
            Self::Configured(_) => Some(
                "this repository is set up: run `pointsman up`. To set it up again, remove pointsman.toml first",
            ),
            Self::BadName(_) => Some("name it: pointsman init --name my-project"),
            Self::NameTaken { .. } => Some("choose another: pointsman init --name other-name"),
            Self::RemoteTaken(_) => Some("git remote rename pointsman something-else"),
            Self::NoOrigin => Some("git remote add origin https://…, or leave out --forge"),
            Self::UnknownForge(_) => Some("name it: pointsman init --forge forgejo, or --forge github"),
            Self::Config(_) | Self::Failed(_) => None,
        }
    }
}

/// Looks at everything and writes nothing. `registered` are the projects there are, with their configurations.
pub fn plan(
    paths: &Paths,
    dir: &Path,
    wishes: InitOptions,
    registered: &[(ProjectName, PathBuf)],
) -> Result<Plan, Obstacle> {
    // Git wants a configuration of ours; nothing may be left behind if we fail.
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let git = Git::open(scratch.path()).map_err(anyhow::Error::from)?;
    check_git(&git)?;
    let checkout = match LocalCheckout::find(&git, dir).map_err(anyhow::Error::from)? {
        Found::Checkout(checkout) => checkout,
        Found::Bare => return Err(Obstacle::Bare(dir.to_owned())),
        Found::Nothing => return Err(Obstacle::NotARepository(dir.to_owned())),
    };
    let file = checkout.root().join(FILE_NAME);
    if file.symlink_metadata().is_ok() {
        return Err(Obstacle::Configured(file));
    }
    if checkout.head().map_err(anyhow::Error::from)?.is_none() {
        return Err(Obstacle::NoCommit);
    }
    let branch = primary_branch(&checkout, wishes.branch)?;
    let origin = checkout.remote("origin").map_err(anyhow::Error::from)?;
    let origin = origin.as_deref().and_then(Origin::parse);
    let name = project_name(&checkout, origin.as_ref(), wishes.name, registered)?;
    let forge = on_server(wishes.forge, origin.as_ref())?;
    let repository = paths.project(&name).forge_repository();
    match checkout.remote(REMOTE).map_err(anyhow::Error::from)? {
        Some(url) if Path::new(&url) != repository => {
            return Err(Obstacle::RemoteTaken(clean_line(&url, 200)));
        }
        Some(_) | None => {}
    }
    let mut notes = notes(&checkout, &branch)?;
    let offer = match (wishes.forge, origin.clone()) {
        (WantedForge::Unsaid, Some(origin)) => origin.kind.map(|kind| (kind, origin)),
        (WantedForge::Unsaid | WantedForge::Here | WantedForge::Origin | WantedForge::OriginAs(_), _) => None,
    };
    let detected = detect(&checkout, &branch).map_err(anyhow::Error::from)?;
    let command = wishes.ci.clone().or_else(|| detected.argv());
    let ci = match &command {
        // The forge runs them anyway, on every push.
        _ if forge.is_some() && detected.forge_ci.is_some() && wishes.ci.is_none() => TemplateCi::Forge,
        Some(command) => TemplateCi::Command(command),
        None => TemplateCi::Off,
    };
    if wishes.ci.is_none() && matches!(ci, TemplateCi::Command(_)) {
        notes.extend(
            detected.used.iter().filter_map(|test| missing_program(test, wishes.search_path.as_deref())),
        );
    }
    let text = config::template(&name, branch.as_str(), forge, ci, wishes.agent.as_deref());
    let config = Config::parse(&text, FILE_NAME)?;
    if !config.ci.kind.tests_commits() {
        notes.push(words::ci::off(&config));
    }
    Ok(Plan { root: checkout.root().to_owned(), config, text, detected, offer, notes })
}

fn detect(checkout: &LocalCheckout, branch: &BranchName) -> Result<Detected, pointsman_adapters::git::Error> {
    let files = checkout.files(branch)?;
    let texts = test_command::wanted(&files)
        .into_iter()
        .map(|path| checkout.file(branch, &path).map(|text| (path, text)))
        .collect::<Result<_, _>>()?;
    Ok(test_command::detect(&Tree { files, texts }))
}

/// A note if the program of a command that was detected is not on this machine.
fn missing_program(command: &TestCommand, search_path: Option<&OsStr>) -> Option<String> {
    let line = command.line.trim_start_matches('(');
    let line =
        line.strip_prefix("cd ").map_or(line, |rest| rest.split_once("&& ").map_or(rest, |(_, own)| own));
    let program = line.split(' ').next().filter(|program| !program.contains('/'))?;
    match find_program(program, search_path, Path::new("/")) {
        Some(_) => None,
        None => Some(format!(
            "`{program}` is not installed on this machine, so CI (`{}`) will fail until it is.",
            command.line
        )),
    }
}

impl Plan {
    /// The root of the checkout that becomes a project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of the configuration that will be written.
    pub fn file(&self) -> PathBuf {
        self.root().join(FILE_NAME)
    }

    /// Makes the forge if it is ours, writes the configuration, adds the remote, and has the project registered. If a
    /// step fails, what the steps before it made is taken away again. Answers the embedded forge's repository.
    pub fn carry_out<E: From<anyhow::Error>>(
        &self,
        paths: &Paths,
        register: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Option<PathBuf>, E> {
        let mut undo = Undo::new(paths, &self.config.name);
        let repository = self.write(paths, &mut undo)?;
        register(&self.file())?;
        undo.keep();
        Ok(repository)
    }

    fn write(&self, paths: &Paths, undo: &mut Undo) -> anyhow::Result<Option<PathBuf>> {
        paths.create()?;
        let repository = match self.config.forge.kind.is_embedded() {
            true => Some(crate::embedded_forge::create(paths, &self.config, self.root())?),
            false => None,
        };
        let file = self.file();
        write_new(&file, &self.text).with_context(|| format!("cannot write {}", file.display()))?;
        undo.file = Some(file);
        let git = Git::open(paths.state())?;
        let Found::Checkout(checkout) = LocalCheckout::find(&git, self.root())? else {
            anyhow::bail!("{} is no checkout any more", self.root().display());
        };
        if let Some(repository) = &repository
            && checkout.remote(REMOTE)?.is_none()
        {
            checkout.add_remote(REMOTE, repository)?;
            undo.remote = Some(checkout.clone());
        }
        checkout.exclude(PROJECTIONS)?;
        Ok(repository)
    }
}

/// What has to be taken away again unless everything succeeds.
struct Undo {
    kept: bool,
    file: Option<PathBuf>,
    remote: Option<LocalCheckout>,
    /// Directories that were not there before.
    dirs: Vec<PathBuf>,
    /// Somebody else may be using the state directory by now if this is there.
    database: PathBuf,
}

impl Undo {
    fn new(paths: &Paths, name: &ProjectName) -> Self {
        let dirs = [paths.project(name).root().to_owned(), paths.state().to_owned()];
        let dirs = dirs.into_iter().filter(|dir| dir.symlink_metadata().is_err()).collect();
        Self { kept: false, file: None, remote: None, dirs, database: paths.database() }
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Undo {
    // The error that led here is what people must read: one of the way back would only hide it.
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Some(checkout) = &self.remote {
            let _ = checkout.remove_remote(REMOTE);
        }
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
        for dir in self.dirs.iter().filter(|dir| !self.database.starts_with(dir) || !self.database.exists()) {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// The server that is wanted, if one is.
fn on_server(wanted: WantedForge, origin: Option<&Origin>) -> Result<Option<(ForgeKind, &Origin)>, Obstacle> {
    let named = match wanted {
        WantedForge::Unsaid | WantedForge::Here => return Ok(None),
        WantedForge::Origin => None,
        WantedForge::OriginAs(kind) => Some(kind),
    };
    let origin = origin.ok_or(Obstacle::NoOrigin)?;
    let kind = named.or(origin.kind).ok_or_else(|| Obstacle::UnknownForge(clean_line(&origin.url, 200)))?;
    Ok(Some((kind, origin)))
}

/// The version of a git that is new enough, or what is wrong with it.
pub fn check_git(git: &Git) -> Result<String, Obstacle> {
    let version = git
        .version()
        .map_err(|error| Obstacle::Git(format!("git cannot be run: {:#}", anyhow::Error::new(error))))?;
    let text = &version.text;
    if !version.is_supported() {
        let (major, minor) = Version::OLDEST;
        return Err(Obstacle::Git(format!("git {text} is too old: {major}.{minor} or newer is needed")));
    }
    Ok(text.clone())
}

fn primary_branch(checkout: &LocalCheckout, wish: Option<String>) -> Result<BranchName, Obstacle> {
    let exists = |name: &str| -> Result<Option<BranchName>, Obstacle> {
        let Some(branch) = BranchName::new(name) else { return Ok(None) };
        Ok(checkout.branch(&branch).map_err(anyhow::Error::from)?.map(|_| branch))
    };
    if let Some(name) = wish {
        return exists(&name)?.ok_or(Obstacle::MissingBranch(name));
    }
    let origin = checkout.origin_head().map_err(anyhow::Error::from)?;
    let current = checkout.current_branch().map_err(anyhow::Error::from)?;
    let usual = ["main", "master", "trunk"].map(|name| Some(name.to_owned()));
    for name in [origin].into_iter().chain(usual).chain([current]).flatten() {
        if let Some(branch) = exists(&name)? {
            return Ok(branch);
        }
    }
    Err(Obstacle::NoBranch)
}

/// The name that is wished for; else the repository's on its server, or the directory's if that is taken or there is no
/// server.
fn project_name(
    checkout: &LocalCheckout,
    origin: Option<&Origin>,
    wish: Option<String>,
    registered: &[(ProjectName, PathBuf)],
) -> Result<ProjectName, Obstacle> {
    let holder = |name: &ProjectName| registered.iter().find(|(taken, path)| taken == name && path.is_file());
    let directory = checkout.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let repository = origin.and_then(|origin| origin.repo.rsplit_once('/')).and_then(|(_, name)| fit(name));
    let name = match wish {
        Some(name) => ProjectName::new(&name).ok_or(Obstacle::BadName(name))?,
        None => match repository.filter(|name| holder(name).is_none()) {
            Some(name) => name,
            None => fit(&directory).ok_or(Obstacle::BadName(directory))?,
        },
    };
    match holder(&name) {
        Some((name, path)) => Err(Obstacle::NameTaken { name: name.clone(), path: path.clone() }),
        None => Ok(name),
    }
}

/// The project name that is most like this one.
fn fit(name: &str) -> Option<ProjectName> {
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' };
    let name: String = name.to_lowercase().chars().map(plain).collect();
    let name: String = name.trim_matches('-').chars().take(63).collect();
    ProjectName::new(&name)
}

fn notes(checkout: &LocalCheckout, branch: &BranchName) -> Result<Vec<String>, Obstacle> {
    let mut notes = Vec::new();
    let changed = checkout.changed_files().map_err(anyhow::Error::from)?;
    if changed > 0 {
        let files = if changed == 1 { "1 file is".to_owned() } else { format!("{changed} files are") };
        notes.push(format!("{files} not committed. Agents only see what is committed."));
    }
    if checkout.has_submodules(branch).map_err(anyhow::Error::from)? {
        notes.push(
            "This repository has submodules. Agents and CI get trees in which they are not checked out: begin the agent's \
             program and the CI command with `git submodule update --init`."
                .to_owned(),
        );
    }
    match tmux::version() {
        Ok(version) if version.is_supported() => {}
        Ok(version) => {
            notes.push(format!("tmux {} is too old: 3.2 or newer is needed to run agents.", version.text))
        }
        Err(_) => notes
            .push("tmux is missing: it is needed to run agents (on Debian: apt install tmux).".to_owned()),
    }
    Ok(notes)
}

fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}
