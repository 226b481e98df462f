//! Forges, CI and chat on servers: from the configuration and the tokens to something that can be asked.
//!
//! Nothing is asked of a server here: the daemon's loop must not wait for one. The forge looks at its accounts and
//! rights before it carries out the first order.

use std::ffi::OsString;
use std::sync::Arc;

use anyhow::Context;
use pointsman_adapters::ci::woodpecker::Woodpecker;
use pointsman_adapters::forge::forgejo::Forgejo;
use pointsman_adapters::forge::github::{self, AppKey, AppOpening, Github};
use pointsman_adapters::forge::gitlab::{self, Gitlab};
use pointsman_adapters::forge::{Opening, ServerForge};
use pointsman_adapters::http::{Limits, RetryWait};
use pointsman_adapters::notify::matrix::{self, Matrix};
use pointsman_adapters::notify::webhook::Webhook;
use pointsman_adapters::secret::{
    Dotenv, Secret, Source, private_text, remember, remember_login, remember_named,
};
use pointsman_core::board;
use pointsman_core::config::{Config, ForgeKind, NotifierKind};
use pointsman_core::ids::ProjectName;

use crate::daemon::clock;
use crate::daemon::webhooks::ProjectWebhooks;
use crate::model_login;
use crate::paths::Paths;

/// The login of Claude Code, in its directory of settings.
pub(crate) const CLAUDE_LOGIN: &str = ".credentials.json";

/// Looks up a variable of this process.
pub(crate) type Environment = fn(&str) -> Option<OsString>;

/// Looks up a variable as text.
pub(crate) fn look_in(environment: Environment) -> impl Fn(&str) -> Option<String> + Copy {
    move |name| environment(name).and_then(|value| value.into_string().ok())
}

/// Makes every secret of a project known, so that it can be looked for in what leaves, except those that only a program
/// prints. What cannot be read is not known; whoever needs it says why.
pub(crate) fn remember_secrets(paths: &Paths, config: &Config, environment: Environment) {
    let look = look_in(environment);
    let dotenv = Dotenv::read(&paths.dotenv()).unwrap_or_default();
    for name in config.secret_variables() {
        if let Some(value) = look(name).or_else(|| dotenv.get(name).map(str::to_owned)) {
            remember(&value);
        }
    }
    for file in config.secret_files() {
        let _ = private_text(file);
    }
    // An agent and a CI have these in their environment.
    for name in config.agent.pass_env.iter().chain(&config.ci.pass_env) {
        if let Some(value) = look(name) {
            remember_named(name, &value);
        }
    }
    remember_login(&paths.claude_config().join(CLAUDE_LOGIN));
    // The relay adds it to calls of the model. Whoever needs it says what is wrong with it.
    let _ = model_login::find(paths, environment);
}

/// The tokens of a project's forge.
pub(crate) struct Tokens {
    /// Of the account that develops.
    pub dev: Secret,
    /// Of the account that reviews; none where nobody reviews for us.
    pub review: Option<Secret>,
}

impl Tokens {
    /// Finds them. Only a review by ourselves needs the second one.
    pub(crate) fn find(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Self> {
        let dotenv = Dotenv::read(&paths.dotenv())?;
        let look = look_in(environment);
        let forge = &config.forge;
        let dev = Source {
            whose: "the forge",
            command: forge.token_command.as_deref(),
            file: forge.token_file.as_deref(),
            variable: forge.token_env(),
        };
        let review = Self::reviewer(paths, config, environment)?;
        Ok(Self { dev: dev.find(look, &dotenv)?, review })
    }

    /// The second one alone.
    fn reviewer(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Option<Secret>> {
        let dotenv = Dotenv::read(&paths.dotenv())?;
        let look = look_in(environment);
        let review = &config.review;
        let second = Source {
            whose: "the reviewer",
            command: review.token_command.as_deref(),
            file: review.token_file.as_deref(),
            variable: Some(&review.token_env),
        };
        match second.find(look, &dotenv) {
            Ok(token) => Ok(Some(token)),
            Err(error) if config.program_reviews() => Err(error.into()),
            Err(pointsman_adapters::secret::Error::Missing { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The project's forge, if it is on a server.
pub(crate) fn forge(
    paths: &Paths,
    config: &Config,
    environment: Environment,
) -> anyhow::Result<Option<Arc<dyn ServerForge>>> {
    Ok(match config.forge.kind {
        ForgeKind::Local | ForgeKind::Git => None,
        ForgeKind::Forgejo => Some(Arc::new(forgejo(paths, config, environment)?)),
        ForgeKind::Github => Some(Arc::new(github(paths, config, environment)?)),
        ForgeKind::Gitlab => Some(Arc::new(gitlab(paths, config, environment)?)),
    })
}

/// The project's repository on a Forgejo or Gitea server.
fn forgejo(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Forgejo> {
    let url = config.forge.url.as_deref().context("forge.url names no server")?;
    Ok(Forgejo::prepare(opening(paths, config, environment, url)?)?)
}

/// The project's repository on GitHub, or on the GitHub Enterprise server that `forge.url` names.
fn github(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Github> {
    let url = config.forge.url.as_deref().unwrap_or(github::PUBLIC);
    let forge = &config.forge;
    let github = match (&forge.app_id, &forge.app_key_file) {
        (Some(id), Some(file)) => {
            let key = AppKey { id, key: &private_text(file)?, installation: forge.app_installation };
            let opening = AppOpening {
                url,
                repo: forge.repo.as_deref().context("forge.repo names no repository")?,
                review_token: Tokens::reviewer(paths, config, environment)?,
                clock: clock::now,
                limits: Limits::default(),
                patience: RetryWait::default(),
            };
            Github::prepare_app(&key, opening)?
        }
        _ => Github::prepare(opening(paths, config, environment, url)?)?,
    };
    let board = config.forge.board.as_deref().and_then(board::address);
    Ok(match board {
        Some((owner, number)) => github.with_board(owner, number),
        None => github,
    })
}

/// The project on GitLab, or on the GitLab that `forge.url` names.
fn gitlab(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Gitlab> {
    let url = config.forge.url.as_deref().unwrap_or(gitlab::PUBLIC);
    Ok(Gitlab::prepare(opening(paths, config, environment, url)?)?)
}

fn opening<'a>(
    paths: &Paths,
    config: &'a Config,
    environment: Environment,
    url: &'a str,
) -> anyhow::Result<Opening<'a>> {
    let tokens = Tokens::find(paths, config, environment)?;
    Ok(Opening {
        url,
        repo: config.forge.repo.as_deref().context("forge.repo names no repository")?,
        token: tokens.dev.into(),
        review_token: tokens.review,
        clock: clock::now,
        limits: Limits::default(),
        patience: RetryWait::default(),
    })
}

/// The project's webhook address and secret, if it listens.
pub(crate) fn listening(
    paths: &Paths,
    config: &Config,
    environment: Environment,
) -> anyhow::Result<Option<ProjectWebhooks>> {
    let Some(listen) = config.webhooks.listen else { return Ok(None) };
    let source = Source {
        whose: "webhooks",
        command: config.webhooks.secret_command.as_deref(),
        file: config.webhooks.secret_file.as_deref(),
        variable: Some(&config.webhooks.secret_env),
    };
    let secret = source.find(look_in(environment), &Dotenv::read(&paths.dotenv())?)?;
    Ok(Some(ProjectWebhooks::new(listen, secret)))
}

/// The project's CI, if it is a server of its own.
pub(crate) fn ci(
    paths: &Paths,
    config: &Config,
    environment: Environment,
) -> anyhow::Result<Option<Woodpecker>> {
    // Woodpecker is the only one so far.
    match config.ci.kind.capabilities().pipelines {
        false => Ok(None),
        true => woodpecker(paths, config, environment).map(Some),
    }
}

fn woodpecker(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Woodpecker> {
    let server = &config.woodpecker;
    let source = Source {
        whose: "Woodpecker",
        command: server.token_command.as_deref(),
        file: server.token_file.as_deref(),
        variable: Some(&server.token_env),
    };
    let token = source.find(look_in(environment), &Dotenv::read(&paths.dotenv())?)?;
    let url = server.url.as_deref().context("woodpecker.url names no server")?;
    let repo = config.forge.repo.as_deref();
    Ok(Woodpecker::new(url, server.repo_id, repo, token, clock::now, Limits::default())?)
}

/// A project's notifiers. One that cannot be opened stops nobody's work: it reports the reason when it is used.
pub(crate) struct Notifiers {
    matrix: Option<Result<Matrix, String>>,
    webhook: Option<Result<Webhook, String>>,
}

impl Notifiers {
    /// The Matrix room, or the reason why it cannot be used.
    pub(crate) fn matrix(&self) -> Result<&Matrix, &str> {
        Self::one(self.matrix.as_ref())
    }

    /// The outgoing webhook, or the reason why it cannot be used.
    pub(crate) fn webhook(&self) -> Result<&Webhook, &str> {
        Self::one(self.webhook.as_ref())
    }

    fn one<T>(opened: Option<&Result<T, String>>) -> Result<&T, &str> {
        opened.map_or(Err("it is not listed in notify.to"), |opened| opened.as_ref().map_err(String::as_str))
    }

    /// The reasons why people are not told, a line each.
    pub(crate) fn problems(&self, project: &ProjectName) -> Vec<String> {
        let matrix = self.matrix.as_ref().and_then(|opened| opened.as_ref().err()).map(|why| ("matrix", why));
        let webhook =
            self.webhook.as_ref().and_then(|opened| opened.as_ref().err()).map(|why| ("webhook", why));
        let line =
            |(kind, why): (&str, &String)| format!("people of {project} are not told by {kind}: {why}");
        matrix.into_iter().chain(webhook).map(line).collect()
    }
}

/// The project's notifiers.
pub(crate) fn notifiers(paths: &Paths, config: &Config, environment: Environment) -> Notifiers {
    let said = |error: anyhow::Error| format!("{error:#}");
    let wanted = |kind| config.tells(kind).then_some(());
    Notifiers {
        matrix: wanted(NotifierKind::Matrix).map(|()| matrix(paths, config, environment).map_err(said)),
        webhook: wanted(NotifierKind::Webhook).map(|()| webhook(paths, config, environment).map_err(said)),
    }
}

/// The project's room on Matrix.
pub(crate) fn matrix(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Matrix> {
    let server = &config.matrix;
    let source = Source {
        whose: "Matrix",
        command: server.token_command.as_deref(),
        file: server.token_file.as_deref(),
        variable: Some(&server.token_env),
    };
    let look = look_in(environment);
    let token = source.find(look, &Dotenv::read(&paths.dotenv())?)?;
    let opening = matrix::Opening {
        homeserver: server.homeserver.as_deref().context("matrix.homeserver names no server")?,
        room: server.room.as_deref().context("matrix.room names no room")?,
        token,
        clock: clock::now,
        limits: Limits::default(),
        patience: RetryWait::default(),
    };
    Ok(opening.prepare())
}

/// The project's webhook.
pub(crate) fn webhook(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Webhook> {
    let hook = &config.webhook;
    let look = look_in(environment);
    let dotenv = Dotenv::read(&paths.dotenv())?;
    let address = match &hook.url {
        Some(url) => Secret::new(url).context("webhook.url is no address")?,
        None => {
            let (file, variable) = (hook.url_file.as_deref(), Some(hook.url_env.as_str()));
            let source = Source { whose: "the webhook's address", command: None, file, variable };
            source.find(look, &dotenv)?
        }
    };
    let source = Source {
        whose: "the webhook",
        command: hook.token_command.as_deref(),
        file: hook.token_file.as_deref(),
        variable: hook.token_env.as_deref(),
    };
    let wanted = source.command.is_some() || source.file.is_some() || source.variable.is_some();
    let token = wanted.then(|| source.find(look, &dotenv)).transpose()?;
    Ok(Webhook::new(&address, token, clock::now, Limits::default(), RetryWait::default())?)
}
