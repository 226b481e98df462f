//! Logins: one-time links, browsers that used one, and tokens of programs. Only hashes of secrets are kept.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pointsman_core::time::Timestamp;
use pointsman_view::Time;
use pointsman_view::web as view;
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Scopes, Visitor, Way};
use crate::secret;

/// A link that nobody used for so long is worth nothing.
const LINK_LIFE: Duration = Duration::from_secs(10 * 60);
/// A browser has to log in again after this.
const LOGIN_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Links that wait at the same time; the oldest goes.
const LINKS: usize = 20;
/// Browsers that are logged in at the same time; the oldest has to log in again.
const BROWSERS: usize = 100;
/// Tokens that may exist.
const TOKENS: usize = 200;

/// Everybody who may come in.
pub(crate) struct Logins {
    backend: Arc<dyn Backend>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In memory only: a link does not outlive the daemon that printed it.
    links: Vec<Link>,
    kept: Kept,
}

struct Link {
    hash: String,
    name: String,
    expires_at: Timestamp,
}

/// The part that outlives the daemon.
#[derive(Default, Serialize, Deserialize)]
struct Kept {
    #[serde(default)]
    browsers: Vec<Browser>,
    #[serde(default)]
    tokens: Vec<Token>,
    /// The number of the token that was made last.
    #[serde(default)]
    last_token: u64,
}

#[derive(Serialize, Deserialize)]
struct Browser {
    hash: String,
    name: String,
    expires_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct Token {
    id: u64,
    hash: String,
    label: String,
    /// The person it speaks for.
    name: String,
    scopes: Scopes,
    created_at: Timestamp,
}

impl Token {
    fn view(&self) -> view::Token {
        let Scopes { read, order, approve } = self.scopes;
        let named = [(read, "read"), (order, "order"), (approve, "approve")];
        view::Token {
            id: self.id,
            label: self.label.clone(),
            by: self.name.clone(),
            scopes: named.iter().filter(|(has, _)| *has).map(|(_, scope)| (*scope).to_owned()).collect(),
            created_at: Time(self.created_at),
            token: None,
        }
    }
}

impl Logins {
    /// The logins as they were kept. A file that cannot be read lets nobody in: everybody logs in again.
    pub(crate) fn open(backend: Arc<dyn Backend>) -> Self {
        let read = backend.load_keys().map(|text| text.map(|text| serde_json::from_slice(&text)));
        let kept = match read {
            Ok(Some(Ok(kept))) => kept,
            Ok(None) => Kept::default(),
            Ok(Some(Err(error))) => {
                tracing::warn!(%error, "logins and tokens of the web cannot be read");
                Kept::default()
            }
            Err(error) => {
                tracing::warn!(%error, "logins and tokens of the web cannot be read");
                Kept::default()
            }
        };
        Self { backend, state: Mutex::new(State { links: Vec::new(), kept }) }
    }

    /// A new link for this person. It counts once.
    pub(crate) fn link(&self, name: &str) -> io::Result<(String, Timestamp)> {
        let code = secret::new()?;
        let expires_at = self.backend.now().after(LINK_LIFE);
        let mut state = self.lock();
        state.links.push(Link { hash: secret::hash(&code), name: name.to_owned(), expires_at });
        if state.links.len() > LINKS {
            state.links.remove(0);
        }
        Ok((code, expires_at))
    }

    /// Logs a browser in. Answers the secret of its cookie; none if the link is unknown, used or too old.
    pub(crate) fn redeem(&self, code: &str) -> io::Result<Option<String>> {
        let (hash, now) = (secret::hash(code), self.backend.now());
        let mut state = self.lock();
        let Some(at) = state.links.iter().position(|link| link.hash == hash) else { return Ok(None) };
        let link = state.links.remove(at);
        if link.expires_at <= now {
            return Ok(None);
        }
        let cookie = secret::new()?;
        let browsers = &mut state.kept.browsers;
        browsers.retain(|browser| browser.expires_at > now);
        if browsers.len() >= BROWSERS {
            browsers.remove(0);
        }
        let expires_at = now.after(LOGIN_LIFE);
        browsers.push(Browser { hash: secret::hash(&cookie), name: link.name, expires_at });
        self.keep(&state.kept)?;
        Ok(Some(cookie))
    }

    /// The person whose browser shows this cookie.
    pub(crate) fn of_cookie(&self, cookie: &str) -> Option<Visitor> {
        let (hash, now) = (secret::hash(cookie), self.backend.now());
        let state = self.lock();
        let browser = state.kept.browsers.iter().find(|browser| browser.hash == hash)?;
        let is_valid = browser.expires_at > now;
        is_valid.then(|| Visitor { name: browser.name.clone(), scopes: Scopes::ALL, way: Way::Page })
    }

    /// Logs a browser out.
    pub(crate) fn log_out(&self, cookie: &str) -> io::Result<()> {
        let hash = secret::hash(cookie);
        let mut state = self.lock();
        state.kept.browsers.retain(|browser| browser.hash != hash);
        self.keep(&state.kept)
    }

    /// The program that shows this token.
    pub(crate) fn of_token(&self, token: &str) -> Option<Visitor> {
        let hash = secret::hash(token);
        let state = self.lock();
        let token = state.kept.tokens.iter().find(|token| token.hash == hash)?;
        Some(Visitor { name: token.name.clone(), scopes: token.scopes, way: Way::Api })
    }

    /// A new token for a person. It is shown once; none if there are too many.
    pub(crate) fn create_token(
        &self,
        name: &str,
        label: &str,
        scopes: Scopes,
    ) -> io::Result<Option<view::Token>> {
        let token = secret::new()?;
        let created_at = self.backend.now();
        let mut state = self.lock();
        if state.kept.tokens.len() >= TOKENS {
            return Ok(None);
        }
        state.kept.last_token += 1;
        let made = Token {
            id: state.kept.last_token,
            hash: secret::hash(&token),
            label: label.to_owned(),
            name: name.to_owned(),
            scopes,
            created_at,
        };
        let view = view::Token { token: Some(token), ..made.view() };
        state.kept.tokens.push(made);
        self.keep(&state.kept)?;
        Ok(Some(view))
    }

    /// All tokens, without their secrets.
    pub(crate) fn tokens(&self) -> Vec<view::Token> {
        self.lock().kept.tokens.iter().map(Token::view).collect()
    }

    /// Makes a token worthless. Answers it; none if there is no such token.
    pub(crate) fn revoke_token(&self, id: u64) -> io::Result<Option<view::Token>> {
        let mut state = self.lock();
        let Some(at) = state.kept.tokens.iter().position(|token| token.id == id) else { return Ok(None) };
        let token = state.kept.tokens.remove(at);
        self.keep(&state.kept)?;
        Ok(Some(token.view()))
    }

    fn keep(&self, kept: &Kept) -> io::Result<()> {
        self.backend.keep_keys(&serde_json::to_vec(kept)?)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
