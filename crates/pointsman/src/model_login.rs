//! The operator's login for the model's API: where it comes from, and which server it is for.
//!
//! The daemon hands it to the relay, which adds it to the calls of sessions. No session sees it.

use std::fs;
use std::path::Path;

use anyhow::Context;
use pointsman_adapters::phase_file;
use pointsman_adapters::secret::{Dotenv, Secret, private_text, remember};
use pointsman_core::agent::Agent;
use pointsman_core::config::SandboxSettings;
use pointsman_core::relay::{CredentialName, anthropic};
use pointsman_core::sandbox::network::AGENT_PRESET;
use pointsman_core::words;

use crate::paths::Paths;
use crate::remote::{Environment, look_in};

/// The variable of the daemon's environment that names another address of the API: a gateway, or a test.
const ADDRESS: &str = "ANTHROPIC_BASE_URL";

/// A credential and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) name: CredentialName,
    pub(crate) secret: Secret,
}

/// The first credential that there is: a variable of the environment or of the `.env` beside the state, else the token that
/// `claude login` keeps. From then on it is known as a secret.
pub(crate) fn find(paths: &Paths, environment: Environment) -> anyhow::Result<Option<Login>> {
    let look = look_in(environment);
    let dotenv = Dotenv::read(&paths.dotenv()).unwrap_or_default();
    for name in CredentialName::ALL {
        let text = match name.variable() {
            Some(variable) => look(variable).or_else(|| dotenv.get(variable).map(str::to_owned)),
            None => kept(&paths.claude_login())?,
        };
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            remember(&text);
            let secret = Secret::new(&text).with_context(|| words::relay::unfit(name))?;
            return Ok(Some(Login { name, secret }));
        }
    }
    Ok(None)
}

fn kept(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(Some(private_text(path)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Keeps a token.
pub(crate) fn keep(paths: &Paths, text: &str) -> anyhow::Result<()> {
    let token = text.trim();
    Secret::new(token).context(words::relay::NOT_A_TOKEN)?;
    remember(token);
    // For us alone, as every draft is.
    Ok(phase_file::write_state_file(&paths.claude_login(), token.as_bytes())?)
}

/// Forgets the token; says whether there was one.
pub(crate) fn forget(paths: &Paths) -> anyhow::Result<bool> {
    match fs::remove_file(paths.claude_login()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// With one of these variables the agent asks another service, which the relay does not know.
const OTHER_SERVICES: [&str; 2] = ["CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"];

/// Whether sessions of this agent, inside a sandbox with these settings, reach their model's API through the relay.
pub(crate) fn is_relayed(agent: Agent, settings: &SandboxSettings, pass_env: &[String]) -> bool {
    let is_listed = settings.hosts.iter().any(|host| host == AGENT_PRESET);
    let is_elsewhere = pass_env.iter().any(|name| OTHER_SERVICES.contains(&name.as_str()));
    agent.relayed_by().is_some() && is_listed && !is_elsewhere
}

/// The address of the API.
pub(crate) fn address(environment: Environment) -> String {
    let named = look_in(environment)(ADDRESS).filter(|url| !url.trim().is_empty());
    named.unwrap_or_else(|| anthropic::API.to_owned())
}
