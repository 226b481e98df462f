//! A GitHub App: tokens for those who prove that they are it.

use pointsman_core::base64;
use serde_json::{Value, json};

use super::{Account, FakeForgejo, Shared, State, json};
use crate::http::{Reply, Request};

/// The App's number.
pub const APP: &str = "4711";
/// Its name as an account.
pub const APP_BOT: &str = "shop-app[bot]";
/// Its private key, made for tests. Put together here, so that nobody who looks for keys finds a file with one.
pub const APP_KEY: &str = concat!(
    "-----BEGIN RSA ",
    "PRIVATE KEY-----\n",
    include_str!("../../data/app-key.base64"),
    "-----END RSA ",
    "PRIVATE KEY-----\n"
);
const INSTALLATION: u64 = 815;
/// A signature of a key of 2048 bits.
const SIGNATURE: usize = 256;

/// Tokens that were given out.
#[derive(Default)]
pub(super) struct Apps {
    given: u64,
    lifetime: i64,
    /// Rights that the App was not given.
    denied: Vec<&'static str>,
}

impl FakeForgejo {
    /// How many tokens the App got so far.
    pub fn app_tokens(&self) -> u64 {
        self.state().apps.given
    }

    /// From now on tokens last so many seconds instead of an hour.
    pub fn app_token_seconds(&self, seconds: i64) {
        self.state().apps.lifetime = seconds;
    }

    /// Takes the App's present token back.
    pub fn revoke_app_token(&self) {
        self.state().accounts.remove(APP_BOT);
    }

    /// The App does not get this right.
    pub fn deny_app(&self, right: &'static str) {
        self.state().apps.denied.push(right);
    }
}

/// Answers what only the App itself may ask; none if this is something else.
pub(super) fn answer(shared: &Shared, request: &Request, rest: &[&str]) -> Option<Reply> {
    let id = INSTALLATION.to_string();
    let about_app = matches!(rest, ["app", ..] | ["repos", _, _, "installation"]);
    if !about_app {
        return None;
    }
    let mut state = shared.state();
    if !is_proof(&state, request) {
        let words = "A JSON web token could not be decoded";
        return Some(Reply::json(401, &json!({ "message": words })));
    }
    Some(match (request.method.as_str(), rest) {
        ("GET", ["app"]) => Reply::json(200, &json!({ "id": 4711, "slug": "shop-app", "name": "Shop App" })),
        ("GET", ["repos", owner, name, "installation"]) if format!("{owner}/{name}") == super::REPO => {
            Reply::json(200, &json!({ "id": INSTALLATION, "app_slug": "shop-app" }))
        }
        ("POST", ["app", "installations", asked, "access_tokens"]) if *asked == id => give(&mut state),
        _ => Reply::json(404, &json!({ "message": "Not Found" })),
    })
}

fn give(state: &mut State) -> Reply {
    state.apps.given += 1;
    let token = format!("ghs_{}", state.apps.given);
    state.accounts.insert(APP_BOT.to_owned(), Account { token: token.clone(), write: true, admin: false });
    let lifetime = if state.apps.lifetime > 0 { state.apps.lifetime } else { 3600 };
    let ends = state.now() + lifetime;
    let mut rights = json!({
        "contents": "write", "issues": "write", "pull_requests": "write", "statuses": "write", "checks": "read",
        "metadata": "read",
    });
    for denied in &state.apps.denied {
        rights[*denied] = Value::from("read");
    }
    Reply::json(201, &json!({ "token": token, "expires_at": json::time(ends), "permissions": rights }))
}

/// Whether a request shows a proof: three parts, our number, made a moment ago, for ten minutes at the most, with a
/// signature. Whether that is right is not checked here.
fn is_proof(state: &State, request: &Request) -> bool {
    let shown = request.header("authorization").and_then(|text| text.strip_prefix("Bearer "));
    let parts: Vec<&str> = shown.unwrap_or_default().split('.').collect();
    let [head, claims, signature] = parts.as_slice() else { return false };
    let plain = |text: &str| base64::decode(&text.replace('-', "+").replace('_', "/"));
    let value = |text: &str| serde_json::from_slice::<Value>(&plain(text)).unwrap_or_default();
    let (head, claims) = (value(head), value(claims));
    let now = jiff::Timestamp::now().as_second() + state.rules.ahead;
    let time = |key: &str| claims[key].as_i64().unwrap_or(i64::MAX / 2);
    head["alg"] == "RS256"
        && claims["iss"] == APP
        && time("iat") <= now
        && time("exp") > now
        && time("exp") <= now + 600
        && plain(signature).len() == SIGNATURE
}
