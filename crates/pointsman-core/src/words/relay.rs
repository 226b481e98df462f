//! Sentences of the relay: why a call did not reach the model, and how to log in.

use super::sandbox::refusal;
use crate::relay::{CredentialName, Unpassed};
use crate::text::clean_line;

/// A request that is JSON and no object.
pub const NO_OBJECT: &str = "it is not an object";

/// The reason why a call was not passed on, and what the agent does now.
pub fn unpassed(why: &Unpassed) -> String {
    match why {
        Unpassed::Path => "Pointsman forwards only messages, token counts and the list of models to the model's \
            API. Work without this call."
            .to_owned(),
        Unpassed::TooLarge => "Pointsman did not forward this request: it is larger than 32 MiB.".to_owned(),
        Unpassed::Unreadable(error) => {
            format!("Pointsman did not forward this request: its JSON is invalid or ambiguous ({error}).")
        }
        Unpassed::Source => {
            "Pointsman did not forward this request: the service would fetch an address or a file, which is not \
                allowed while you work on an issue by an outsider. Put the content into the request, or work \
                without it."
                .to_owned()
        }
        Unpassed::ServerTool(tool) => format!(
            "Pointsman did not forward this request: the service would run {tool} by itself, which is not allowed \
                while you work on an issue by an outsider. Work without it; if the task needs it, say so in \
                PHASE:escalate."
        ),
        Unpassed::Budget(what) => format!(
            "Pointsman sends no more requests to the model: the budget is used up ({what}). Your work is saved, and \
                a person is asked for more."
        ),
        Unpassed::RateLimit(seconds) => format!(
            "The service has asked this account to wait for {seconds} seconds. Pointsman parks the session and \
                continues by itself."
        ),
        Unpassed::Busy => "Pointsman is handling too many large requests at the moment. Try again.".to_owned(),
        Unpassed::NoCredential => "Pointsman has no key for the model's API at the moment. A person has to run \
            `pointsman claude login`, or start the daemon."
            .to_owned(),
        Unpassed::Upstream(why) => format!("Pointsman cannot reach the model's API: {}.", refusal(*why)),
    }
}

/// The name under which a call that was not passed on is counted. None for what is told elsewhere: budgets, waits, failures.
pub fn counted(why: &Unpassed, first_line: &str) -> Option<String> {
    let what = match why {
        Unpassed::Path => {
            let (path, _query) = first_line.split_once('?').unwrap_or((first_line, ""));
            path.strip_suffix(" HTTP/1.1").unwrap_or(path).replacen(" /model/", " /", 1)
        }
        Unpassed::TooLarge | Unpassed::Unreadable(_) => "an unusable request".to_owned(),
        Unpassed::Source => "a source that the service fetches".to_owned(),
        Unpassed::ServerTool(tool) => tool.clone(),
        Unpassed::Budget(_)
        | Unpassed::RateLimit(_)
        | Unpassed::Busy
        | Unpassed::NoCredential
        | Unpassed::Upstream(_) => return None,
    };
    Some(format!("the model's API: {}", clean_line(&what, 80)))
}

/// A budget, with its limit: "of issue #3: 5.00 USD".
pub fn budget(whose: &str, limit: &str) -> String {
    format!("{}: {limit}", whose.trim_end_matches(','))
}

/// The reason why every session of a credential is parked.
pub const CREDENTIAL_WAITS: &str = "the service has asked this account to wait";

/// A token that cannot stand in a header.
pub const NOT_A_TOKEN: &str =
    "this is not a token: it is empty, too long, or has characters that tokens do not have";

/// A credential that cannot stand in a header.
pub fn unfit(name: CredentialName) -> String {
    let whose = name.variable().unwrap_or("the token that `pointsman claude login` stored");
    format!("{whose} is not a token: it is too long, or has characters that tokens do not have")
}

/// The question of `claude login`.
pub const ASK_FOR_TOKEN: &str =
    "Run `claude setup-token` in another terminal, then paste the token here. It is not shown.";

/// The way to a token.
pub const HOW_TO_GET_A_TOKEN: &str = "`claude setup-token` prints one";

/// A token is kept from now on.
pub const LOGGED_IN: &str = "The token is stored. Sessions use it from now on, but cannot see it.";

/// The token is forgotten.
pub const LOGGED_OUT: &str = "The token is deleted. To invalidate it everywhere, revoke it in your account.";

/// There was no token to forget.
pub const NOT_LOGGED_IN: &str = "No token was stored.";

/// A variable that hides the token that is kept.
pub fn variable_first(variable: &str) -> String {
    format!(
        "{variable} is set here. A daemon that has it in its environment uses it instead of a stored token."
    )
}

/// The login for sessions, for `doctor`.
pub fn login_found(name: CredentialName) -> String {
    match name.variable() {
        Some(variable) => format!("sessions use {variable}, which the relay adds outside the sandbox"),
        None => {
            "sessions use the token of `pointsman claude login`, which the relay adds outside the sandbox"
                .to_owned()
        }
    }
}

/// No login was found, for `doctor`.
pub const NO_LOGIN_HERE: &str = "no login for Claude is known here, so no session of Claude starts";

/// The way to log in, for `doctor`.
pub const HOW_TO_LOG_IN: &str =
    "run `pointsman claude login`, or start the daemon with ANTHROPIC_API_KEY in its environment";

/// The warning of `init` and `up`.
pub fn login_warning() -> String {
    format!("{NO_LOGIN_HERE}. To fix it, {HOW_TO_LOG_IN}")
}

/// The reason why no session starts: nobody is logged in.
pub const NO_LOGIN: &str = "nobody is logged in to Claude. Run `pointsman claude login`, or start the daemon with \
    ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN in its environment";
