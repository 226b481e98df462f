//! The relay between a session and the API of its model: what it passes on, what it adds, and what it counts.
//!
//! The relay is part of the proxy, a process outside of every sandbox. A session reaches it at an address of its own loopback
//! interface and never sees the operator's key. [`anthropic`] knows the API: its paths, its headers, what a request may ask
//! for. [`usage`] reads the tokens off an answer and sums them up. [`pool`] decides whether the next call fits into the
//! budgets.

pub mod anthropic;
pub mod pool;
pub mod usage;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::role::Role;
use crate::sandbox::network::{Destination, Refusal};

/// The address inside a sandbox at which the proxy and the relay are found. It is not the usual address of loopback, so that a
/// program can be told to reach this one without a proxy and servers of a test beside it.
pub const ADDRESS: &str = "127.0.0.2";
/// The first part of every path that leads to the model's API.
pub const MODEL: &str = "/model";
/// Stands for the key inside a sandbox: an agent wants to see one. The relay throws it away.
pub const PLACEHOLDER_KEY: &str = "pointsman-relay-adds-the-key-outside-of-this-sandbox";

/// The way of one session to the API of its model. It lies beside the policy of the sandbox, where the session does not see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelAccess {
    pub session: String,
    pub role: Role,
    /// The address of the API.
    pub upstream: String,
    /// The name of the credential that the relay adds.
    pub credential: CredentialName,
    /// Whether somebody wrote the issue who may not direct an agent.
    pub of_stranger: bool,
    /// The names of the budgets that every call must fit into.
    #[serde(default)]
    pub pools: Vec<String>,
}

/// The place where a credential of the operator comes from. Its value is in the memory of the relay only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialName {
    /// `ANTHROPIC_API_KEY` of the daemon's environment.
    ApiKey,
    /// `ANTHROPIC_AUTH_TOKEN` of the daemon's environment, which gateways use.
    AuthToken,
    /// `CLAUDE_CODE_OAUTH_TOKEN` of the daemon's environment.
    OauthToken,
    /// The token that `pointsman claude login` keeps.
    Login,
}

impl CredentialName {
    /// All of them; the first that there is counts.
    pub const ALL: [Self; 4] = [Self::ApiKey, Self::AuthToken, Self::OauthToken, Self::Login];

    /// The variable of the daemon's environment that holds it.
    pub const fn variable(self) -> Option<&'static str> {
        match self {
            Self::ApiKey => Some("ANTHROPIC_API_KEY"),
            Self::AuthToken => Some("ANTHROPIC_AUTH_TOKEN"),
            Self::OauthToken => Some("CLAUDE_CODE_OAUTH_TOKEN"),
            Self::Login => None,
        }
    }

    /// The word for it in files and orders.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::AuthToken => "auth_token",
            Self::OauthToken => "oauth_token",
            Self::Login => "login",
        }
    }

    /// The credential of this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == word)
    }
}

/// The server behind an address such as `https://gateway.example.org/anthropic`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub tls: bool,
    pub destination: Destination,
    /// What stands before the paths of the API, without a slash at its end.
    pub path: String,
}

impl Upstream {
    /// Reads an address. One with a user, a query or odd characters is refused.
    pub fn parse(url: &str) -> Result<Self, Refusal> {
        let (tls, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return Err(Refusal::Malformed),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.' | '~');
        if authority.contains('@') || !path.chars().all(plain) || path.contains("..") {
            return Err(Refusal::Malformed);
        }
        let destination = Destination::parse(authority, Some(if tls { 443 } else { 80 }))?;
        Ok(Self { tls, destination, path: path.trim_end_matches('/').to_owned() })
    }
}

/// The reason why the relay does not pass a call on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpassed {
    /// The API has no such path for a session.
    Path,
    /// The request is larger than the API takes.
    TooLarge,
    /// The request is not JSON, or has a key twice.
    Unreadable(String),
    /// The API would fetch an address or a file for the session.
    Source,
    /// The API would run this tool by itself.
    ServerTool(String),
    /// This budget is used up.
    Budget(String),
    /// The service told us to wait this many seconds.
    RateLimit(u64),
    /// The relay holds as many requests as it can.
    Busy,
    /// The operator's credential is not known.
    NoCredential,
    /// The service cannot be reached.
    Upstream(Refusal),
}
