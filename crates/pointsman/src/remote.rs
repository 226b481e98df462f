//! Forges and CI on servers: from the configuration and the tokens to something that can be asked.
//!
//! Nothing is asked of a server here: the daemon's loop must not wait for one. The forge looks at its accounts and
//! rights before it carries out the first order.

use std::ffi::OsString;

use anyhow::Context;
use pointsman_adapters::ci::woodpecker::Woodpecker;
use pointsman_adapters::forge::Opening;
use pointsman_adapters::forge::forgejo::Forgejo;
use pointsman_adapters::forge::github::{self, Github};
use pointsman_adapters::http::{Limits, Patience};
use pointsman_adapters::secret::{Dotenv, Secret, Source};
use pointsman_core::config::{Config, ReviewMode};

use crate::daemon::clock;
use crate::daemon::webhooks::Webhook;
use crate::paths::Paths;

/// Looks up a variable of this process.
pub(crate) type Environment = fn(&str) -> Option<OsString>;

fn look_in(environment: Environment) -> impl Fn(&str) -> Option<String> + Copy {
    move |name| environment(name).and_then(|value| value.into_string().ok())
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
        let (forge, review) = (&config.forge, &config.review);
        let dev = Source {
            whose: "the forge",
            command: forge.token_command.as_deref(),
            file: forge.token_file.as_deref(),
            variable: forge.token_env(),
        };
        let second = Source {
            whose: "the reviewer",
            command: review.token_command.as_deref(),
            file: review.token_file.as_deref(),
            variable: Some(&review.token_env),
        };
        let review = match second.find(look, &dotenv) {
            Ok(token) => Some(token),
            Err(error) if review.mode == ReviewMode::Agent => return Err(error.into()),
            Err(pointsman_adapters::secret::Error::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { dev: dev.find(look, &dotenv)?, review })
    }
}

/// The project's repository on a Forgejo or Gitea server.
pub(crate) fn forgejo(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Forgejo> {
    let url = config.forge.url.as_deref().context("forge.url names no server")?;
    Ok(Forgejo::prepare(opening(paths, config, environment, url)?)?)
}

/// The project's repository on GitHub, or on the GitHub Enterprise server that `forge.url` names.
pub(crate) fn github(paths: &Paths, config: &Config, environment: Environment) -> anyhow::Result<Github> {
    let url = config.forge.url.as_deref().unwrap_or(github::PUBLIC);
    Ok(Github::prepare(opening(paths, config, environment, url)?)?)
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
        token: tokens.dev,
        review_token: tokens.review,
        clock: clock::now,
        limits: Limits::default(),
        patience: Patience::default(),
    })
}

/// Where the project listens for webhooks, if it does.
pub(crate) fn webhook(
    paths: &Paths,
    config: &Config,
    environment: Environment,
) -> anyhow::Result<Option<Webhook>> {
    let Some(listen) = config.webhook.listen else { return Ok(None) };
    let source = Source {
        whose: "webhooks",
        command: config.webhook.secret_command.as_deref(),
        file: config.webhook.secret_file.as_deref(),
        variable: Some(&config.webhook.secret_env),
    };
    let secret = source.find(look_in(environment), &Dotenv::read(&paths.dotenv())?)?;
    Ok(Some(Webhook::new(listen, secret)))
}

/// The project's repository on a Woodpecker server.
pub(crate) fn woodpecker(
    paths: &Paths,
    config: &Config,
    environment: Environment,
) -> anyhow::Result<Woodpecker> {
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
