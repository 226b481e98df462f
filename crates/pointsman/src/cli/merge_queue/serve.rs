//! A merge queue for any git repository, with a state directory of its own.

use std::path::{Path, PathBuf};

use clap::Args;
use pointsman_adapters::git::local_checkout::{Found, LocalCheckout};
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::{self, BranchName, Git};
use pointsman_core::config::{Config, MergeStrategy, MergeStyle, SandboxMode};
use pointsman_core::ids::ProjectName;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::super::context::Context;
use super::super::failure::Failure;
use crate::control::client;
use crate::daemon;
use crate::paths::Paths;
use crate::project::FILE_NAME;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  pointsman merge-queue serve --repo ../shop.git --gate \"cargo test\"
  pointsman merge-queue add --repo ../shop.git fix-login
  pointsman merge-queue status --repo ../shop.git --watch

It runs in the foreground, prints `ready`, and ends with Ctrl-C; the merge queue stays and goes on with the next `serve`.")]
pub(crate) struct Arguments {
    /// The repository: a path, or a URL that git can push to
    #[arg(long, value_name = "PATH_OR_URL")]
    repo: String,
    /// The shell command that a candidate must pass, run in a clean checkout of it
    #[arg(long, value_name = "COMMAND")]
    gate: String,
    /// The branch that the others land on
    #[arg(long, default_value = "main")]
    branch: String,
    /// sequential, batch or speculative
    #[arg(long, value_parser = word::<MergeStrategy>, default_value = "sequential")]
    strategy: MergeStrategy,
    /// rebase, merge or squash
    #[arg(long, value_parser = word::<MergeStyle>, default_value = "rebase")]
    style: MergeStyle,
    /// The most branches tested together (strategy batch)
    #[arg(long, default_value_t = 8)]
    batch_size: u32,
    /// The most candidates tested at once (strategy speculative)
    #[arg(long, default_value_t = 4)]
    depth: u32,
    /// The time limit of the gate
    #[arg(long, default_value = "30m")]
    gate_timeout: String,
    /// Pass this environment variable to the gate; may be repeated
    #[arg(long, value_name = "NAME")]
    pass_env: Vec<String>,
    /// The sandbox around the gate: auto, require or off
    #[arg(long, value_name = "MODE", value_parser = word::<SandboxMode>, default_value = "auto")]
    sandbox: SandboxMode,
    /// Run this shell command whenever a branch lands or is removed; POINTSMAN_BRANCH, POINTSMAN_STATUS,
    /// POINTSMAN_REASON, POINTSMAN_COMMIT and POINTSMAN_LOG describe the outcome
    #[arg(long, value_name = "COMMAND")]
    on_outcome: Option<String>,
    /// How often to check whether somebody else moved the branch
    #[arg(long, default_value = "30s")]
    poll: String,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("running a merge queue")?;
        let home = Home::of(context, &self.repo)?;
        if client::answers(&home.paths.control_socket()) {
            return Err(Failure::refused("a merge queue for this repository is already running")
                .hint(format!("pointsman merge-queue status --repo {}", self.repo)));
        }
        home.paths.create()?;
        self.check(&home)?;
        let config = self.config(&home)?;
        let served = home.context(context);
        std::fs::write(home.config_path(), config)?;
        // The file is one that this command has just written.
        served.register(&crate::project::Project::load(&home.config_path())?, None)?;
        super::super::up::log_to_stderr(context.verbose, "info");
        let outcomes = Some(daemon::Outcomes { command: self.on_outcome.clone() });
        Ok(daemon::run(&home.paths, daemon::Options { no_sessions: true, only_queue: None, outcomes })?)
    }

    /// A repository that cannot be served is refused before anybody waits for it: without the branch, without the right to
    /// push, or if a push would leave it with a working tree that lies.
    fn check(&self, home: &Home) -> Result<(), Failure> {
        let Some(branch) = BranchName::new(&self.branch) else {
            return Err(Failure::refused(format!("git does not accept `{}` as a branch name", self.branch)));
        };
        let git = Git::open(home.paths.state()).map_err(|error| Failure::failed(format!("{error:#}")))?;
        self.check_checkout(&git, home, &branch)?;
        // Everything that would only fail at the first landing is tried now, and nothing is written.
        let refused = |what: &str, error: git::Error| {
            Failure::refused(format!(
                "{} {what}: {}",
                home.repo,
                anyhow::Error::from(error).chain().map(ToString::to_string).collect::<Vec<_>>().join(": ")
            ))
        };
        let mirror = home.paths.project(&home.name).mirror();
        let mirror = Mirror::open_or_create_like_remote(&git, &mirror, &home.repo)
            .map_err(|error| refused("cannot be read", error))?;
        mirror.fetch_branches(&[&branch]).map_err(|error| refused("cannot be read", error))?;
        let head = mirror.remote_head(&branch).map_err(|error| refused("cannot be read", error))?;
        if head.is_none() {
            return Err(Failure::refused(format!("{} has no branch {branch}", home.repo))
                .hint("name the branch that others land on with --branch"));
        }
        mirror.may_push(&branch).map_err(|error| refused("does not let you push", error))
    }

    fn check_checkout(&self, git: &Git, home: &Home, branch: &BranchName) -> Result<(), Failure> {
        let path = Path::new(&home.repo);
        if !path.is_absolute() {
            return Ok(());
        }
        let found = LocalCheckout::find(git, path).map_err(|error| Failure::failed(error.to_string()))?;
        match found {
            Found::Bare => Ok(()),
            Found::Nothing => Err(Failure::not_found(format!("{} is not a git repository", path.display()))),
            Found::Checkout(checkout) => {
                let current =
                    checkout.current_branch().map_err(|error| Failure::failed(error.to_string()))?;
                if current.as_deref() != Some(branch.as_str()) {
                    return Ok(());
                }
                Err(Failure::refused(format!(
                    "{} has {branch} checked out; its files would not follow what lands there",
                    path.display()
                ))
                .hint(format!("git clone --bare {0} {0}.git, and serve that one", path.display()))
                .hint(format!("or detach the checkout: git -C {} switch --detach", path.display())))
            }
        }
    }

    fn config(&self, home: &Home) -> Result<String, Failure> {
        let text = |value: &str| Value::from(value).to_string();
        let config = format!(
            "name = {}\nprimary_branch = {}\n\n[forge]\nkind = \"git\"\nurl = {}\n\n[merge]\nstrategy = {}\nstyle = {}\n\
             gate = [\"sh\", \"-c\", {}]\nbatch_size = {}\ndepth = {}\n\n[ci]\npass_env = {}\n\n[timing]\nci_timeout = {}\nforge_poll = {}\n\n\
             [sandbox]\nmode = {}\n\n[roles.dev]\nenabled = false\n",
            text(home.name.as_str()),
            text(&self.branch),
            text(&home.repo),
            text(self.strategy.as_str()),
            text(self.style.as_str()),
            text(&self.gate),
            self.batch_size,
            self.depth,
            Value::from(self.pass_env.clone()),
            text(&self.gate_timeout),
            text(&self.poll),
            text(self.sandbox.as_str()),
        );
        Config::parse(&config, "merge-queue serve")?;
        Ok(config)
    }
}

/// The queue of this repository, served or not.
pub(super) fn context_of(context: &Context, repo: &str) -> Result<Context, Failure> {
    let home = Home::of(context, repo)?;
    if !home.config_path().is_file() {
        return Err(Failure::not_found(format!("no merge queue has ever served {repo}"))
            .hint(format!("pointsman merge-queue serve --repo {repo} --gate COMMAND")));
    }
    Ok(home.context(context))
}

/// Where the queue of one repository lives.
struct Home {
    paths: Paths,
    name: ProjectName,
    /// As git takes it: an absolute path or an address.
    repo: String,
}

impl Home {
    fn of(context: &Context, repo: &str) -> Result<Self, Failure> {
        let repo = match Path::new(repo).canonicalize() {
            Ok(path) => path
                .to_str()
                .map(str::to_owned)
                .ok_or_else(|| Failure::refused(format!("{} is not UTF-8 text", path.display())))?,
            Err(_) if repo.contains(':') => repo.to_owned(),
            Err(error) => return Err(Failure::not_found(format!("{repo}: {error}"))),
        };
        let digest = Sha256::digest(repo.as_bytes());
        let hash: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let last = repo.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let plain: String = last
            .trim_end_matches(".git")
            .to_ascii_lowercase()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(40)
            .collect();
        let name = ProjectName::try_from(plain.trim_matches('-').to_owned())
            .or_else(|_| ProjectName::try_from(format!("q{hash}")))
            .map_err(Failure::failed)?;
        let state = context.paths.state().join("serve").join(&hash);
        let paths = Paths::new(state, context.paths.runtime().join(format!("q-{hash}")));
        Ok(Self { paths, name, repo })
    }

    fn config_path(&self) -> PathBuf {
        self.paths.state().join(FILE_NAME)
    }

    fn context(&self, context: &Context) -> Context {
        Context { paths: self.paths.clone(), wanted: Some(self.name.clone()), ..context.clone() }
    }
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::from(text)).map_err(|error| error.to_string())
}
