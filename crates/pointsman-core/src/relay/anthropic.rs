//! The Messages API: the calls that a session may make, the headers that are passed on, and the limits on a request.

use serde_json::{Value, json};

use super::{CredentialName, Unpassed};
use crate::json;
use crate::text::clean_line;
use crate::words;

/// The address of the API if the operator names no other.
pub const API: &str = "https://api.anthropic.com";
/// The largest request that the API takes.
pub const REQUEST_BYTES: u64 = 32 << 20;
/// A query is a switch or the place in a list.
const QUERY_BYTES: usize = 200;
/// The name of a model in a path.
const MODEL_BYTES: usize = 100;
/// What a login with a subscription says about itself.
const OAUTH_BETA: &str = "oauth-2025-04-20";
/// The service's own name for the wait of a subscription.
const UNIFIED_RESET: &str = "anthropic-ratelimit-unified-reset";
/// Of a tool's name in a sentence.
const TOOL_CHARS: usize = 60;
/// Claude Code tries again by itself if it is told to wait less than this, and gives up at once if it is told to wait longer.
const LONG_WAIT_SECONDS: u64 = 90;
/// However long the service asks us to wait, it is asked again after a day.
const LONGEST_WAIT_SECONDS: u64 = 24 * 3600;

/// A call of the API that is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The model answers. Only this one costs anything.
    Messages,
    CountTokens,
    Models,
    /// A look whether there is anybody. The relay answers it.
    Hello,
}

impl Call {
    /// The call behind a method and a path with its query, without what stands before the paths of the API.
    pub fn of(method: &str, target: &str) -> Result<Self, Unpassed> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '=' | '&' | '_' | '-' | '.');
        if query.len() > QUERY_BYTES || !query.chars().all(plain) {
            return Err(Unpassed::Path);
        }
        let is_model = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | ':');
            (1..=MODEL_BYTES).contains(&name.len()) && name.chars().all(plain) && !name.contains("..")
        };
        match (method, path) {
            ("POST", "/v1/messages") => Ok(Self::Messages),
            ("POST", "/v1/messages/count_tokens") => Ok(Self::CountTokens),
            ("GET", "/v1/models") => Ok(Self::Models),
            ("GET", path) if path.strip_prefix("/v1/models/").is_some_and(is_model) => Ok(Self::Models),
            ("GET" | "HEAD", "" | "/") => Ok(Self::Hello),
            _ => Err(Unpassed::Path),
        }
    }

    /// Whether it has a body that is looked at.
    pub const fn has_body(self) -> bool {
        match self {
            Self::Messages | Self::CountTokens => true,
            Self::Models | Self::Hello => false,
        }
    }
}

/// Whether a header of the agent is passed on. Everything that could be a credential, name another destination or speak to a
/// proxy is not in the list.
pub fn passes_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(
        name.as_str(),
        "accept" | "content-type" | "user-agent" | "x-app" | "anthropic-version" | "anthropic-beta"
    ) || name.starts_with("x-stainless-")
}

/// Whether a header of an answer reaches the agent. What it says of the connection is not the agent's, and neither is the
/// operator's account.
pub fn passes_answer_header(name: &str) -> bool {
    !matches!(
        name.to_ascii_lowercase().as_str(),
        "connection"
            | "keep-alive"
            | "transfer-encoding"
            | "content-length"
            | "content-encoding"
            | "trailer"
            | "upgrade"
            | "set-cookie"
            | "alt-svc"
            | "anthropic-organization-id"
    )
}

/// The header that carries a credential. `beta` is what the agent asked for, and what the header becomes.
pub fn authorization(
    credential: CredentialName,
    secret: &str,
    beta: &mut Option<String>,
) -> (&'static str, String) {
    match credential {
        CredentialName::ApiKey => ("x-api-key", secret.to_owned()),
        CredentialName::AuthToken => ("authorization", format!("Bearer {secret}")),
        CredentialName::OauthToken | CredentialName::Login => {
            let asked = beta.take().unwrap_or_default();
            let others = asked.split(',').map(str::trim).filter(|one| !one.is_empty() && *one != OAUTH_BETA);
            *beta = Some(others.chain([OAUTH_BETA]).collect::<Vec<_>>().join(","));
            ("authorization", format!("Bearer {secret}"))
        }
    }
}

/// Looks at a request, and answers the name of its model. For the issue of a stranger, it may make the service neither fetch anything
/// nor run a tool.
pub fn check_body(body: &[u8], of_stranger: bool) -> Result<String, Unpassed> {
    let body = json::read(body).map_err(|error| Unpassed::Unreadable(error.to_string()))?;
    let Some(fields) = body.as_object() else {
        return Err(Unpassed::Unreadable(words::relay::NO_OBJECT.to_owned()));
    };
    let model = clean_line(fields.get("model").and_then(Value::as_str).unwrap_or_default(), MODEL_BYTES);
    if !of_stranger {
        return Ok(model);
    }
    for name in ["mcp_servers", "container"] {
        let is_set = fields.get(name).is_some_and(|value| !value.is_null() && *value != json!([]));
        if is_set {
            return Err(Unpassed::ServerTool(name.to_owned()));
        }
    }
    for tool in blocks(&body["tools"]) {
        check_tool(tool)?;
    }
    blocks(&body["system"]).try_for_each(check_block)?;
    for message in blocks(&body["messages"]) {
        blocks(&message["content"]).try_for_each(check_block)?;
    }
    Ok(model)
}

fn blocks(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A tool of the agent's own has no type. Of those that the service knows, a few run at the agent.
fn check_tool(tool: &Value) -> Result<(), Unpassed> {
    let own = |kind: &str| {
        kind == "custom" || ["bash_", "text_editor_", "memory_"].iter().any(|family| kind.starts_with(family))
    };
    match &tool["type"] {
        Value::Null => Ok(()),
        Value::String(kind) if own(kind) => Ok(()),
        kind => {
            let name = kind.as_str().map_or_else(|| kind.to_string(), str::to_owned);
            Err(Unpassed::ServerTool(clean_line(&name, TOOL_CHARS)))
        }
    }
}

/// A block of content brings its data itself. The input of a tool is the agent's own and means nothing to the service.
fn check_block(block: &Value) -> Result<(), Unpassed> {
    let source = &block["source"];
    let brought = match &source["type"] {
        Value::Null => source.is_null() || source.is_string(),
        Value::String(kind) => matches!(kind.as_str(), "base64" | "text" | "content"),
        _ => false,
    };
    if !brought || block["type"] == "container_upload" {
        return Err(Unpassed::Source);
    }
    blocks(&source["content"]).try_for_each(check_block)?;
    blocks(&block["content"]).try_for_each(check_block)
}

/// The seconds for which the service wants nothing more of this credential. None for a refusal that a client gets over by
/// itself, or that says nothing about its end.
pub fn long_wait<'h>(status: u16, header: impl Fn(&str) -> Option<&'h str>, now_seconds: i64) -> Option<u64> {
    if status != 429 {
        return None;
    }
    let after = header("retry-after").and_then(|text| text.trim().parse::<u64>().ok());
    let reset = || {
        let at: i64 = header(UNIFIED_RESET)?.trim().parse().ok()?;
        u64::try_from(at.saturating_sub(now_seconds)).ok()
    };
    let wait = after.or_else(reset)?;
    (wait >= LONG_WAIT_SECONDS).then(|| wait.min(LONGEST_WAIT_SECONDS))
}

/// The answer in place of a call that is not passed on: a status, the seconds to wait and a body in the shape of the API's own
/// errors, so that the agent understands it.
pub fn refusal(why: &Unpassed) -> (u16, Option<u64>, String) {
    let (status, kind, wait) = match why {
        // Not 401 or 403: the agent would think that it is logged out.
        Unpassed::Path => (404, "not_found_error", None),
        Unpassed::TooLarge => (413, "request_too_large", None),
        Unpassed::Unreadable(_) | Unpassed::Source | Unpassed::ServerTool(_) => {
            (400, "invalid_request_error", None)
        }
        Unpassed::Budget(_) => (429, "rate_limit_error", Some(LONGEST_WAIT_SECONDS)),
        Unpassed::RateLimit(seconds) => (429, "rate_limit_error", Some((*seconds).max(LONG_WAIT_SECONDS))),
        Unpassed::Busy => (529, "overloaded_error", None),
        Unpassed::NoCredential => (401, "authentication_error", None),
        Unpassed::Upstream(_) => (502, "api_error", None),
    };
    let message = words::relay::unpassed(why);
    (status, wait, json!({ "type": "error", "error": { "type": kind, "message": message } }).to_string())
}
