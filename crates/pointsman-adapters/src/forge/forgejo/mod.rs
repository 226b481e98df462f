//! Forgejo, Gitea and Codeberg, by their API.
//!
//! * `open`: finding the server, its version, both accounts and their rights, before the first order is carried out
//! * `version`: which server it is, and what an older one lacks
//! * `wire`: what the server says, as far as we read it; every field may be missing
//! * `issues`, `labels`, `pulls`, `reviews`, `checks`: a file per part of the API
//! * `serve`: the trait [`Forge`](super::Forge) on top of them
//!
//! Each order asks first whether it is so already, so that an answer that got lost doubles nothing. Landing is not done
//! here: the daemon pushes, and the server is told afterwards ([`Forge::record_merge`](super::Forge::record_merge)).

mod checks;
mod issues;
mod labels;
mod open;
mod pulls;
mod reviews;
mod serve;
mod version;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use pointsman_core::ids::Number;

pub use open::Opening;
pub use version::Version;

use super::Error;
use crate::git::Account;
use crate::http::{self, Client, Host, Method, Request, Trouble};
use crate::retry::Retry;

/// As many as any server gives at once, if it was not told otherwise.
const PAGE: usize = 50;
/// How long it is remembered who has a say.
const PEOPLE_FOR: Duration = Duration::from_secs(300);
/// Native dependencies of an unchanged issue are read again after this long.
const DEPENDENCIES_FOR: Duration = Duration::from_secs(600);
/// The longest text we write, in bytes.
const LONGEST_BODY: usize = 200_000;

/// One repository on a Forgejo or Gitea server, with a dev account and perhaps a review account.
pub struct Forgejo {
    url: String,
    owner: String,
    repo: String,
    dev: Client,
    reviewer: Option<Client>,
    account: Account,
    standing: OnceLock<Standing>,
    known: Mutex<Known>,
}

/// What was found out about the server and our accounts there.
struct Standing {
    me: String,
    reviewer: Option<String>,
    version: Version,
}

/// What need not be asked again. All of it can be lost.
#[derive(Default)]
struct Known {
    labels: BTreeMap<String, u64>,
    people: Option<(Instant, BTreeSet<String>)>,
    remarks: HashMap<u64, String>,
    updated: HashMap<Number, String>,
    dependencies: HashMap<Number, (String, Instant, Vec<Number>)>,
}

impl Forgejo {
    /// The server, for its counts and limits.
    pub fn host(&self) -> &Arc<Host> {
        self.dev.host()
    }

    /// Which server it is; none before it was found.
    pub fn version(&self) -> Option<&Version> {
        self.standing.get().map(|standing| &standing.version)
    }

    /// Our account's name; nothing before it was found, which every order sees to first.
    fn me(&self) -> &str {
        self.standing.get().map_or("", |standing| &standing.me)
    }

    /// The name of the account that reviews.
    fn reviewer(&self) -> Option<&str> {
        self.standing.get().and_then(|standing| standing.reviewer.as_deref())
    }

    /// The account that git shows to the server.
    pub fn account(&self) -> Account {
        self.account.clone()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request for something of the repository.
    fn request(&self, operation: &'static str, method: Method, rest: &[&str]) -> Request {
        let mut segments = vec!["repos", &self.owner, &self.repo];
        segments.extend(rest);
        Request::new(operation, method, &segments)
    }

    fn get(&self, operation: &'static str, rest: &[&str]) -> Request {
        self.request(operation, Method::Get, rest)
    }
}

/// Sorts what went wrong. Every order looks first, so what must be looked at may simply be given again.
fn told(error: http::Error) -> Error {
    let operation = error.operation;
    match (error.status(), &error.trouble) {
        // It will be accepted again when somebody has renewed it; until then nothing is given up.
        (Some(401), _) => Error::Unavailable {
            reason: format!(
                "{error}: the token is not accepted (any more); see token_env, token_file, token_command"
            ),
        },
        (Some(404 | 410), _) => {
            Error::NotFound { what: format!("such thing to {operation}, or our account may not see it") }
        }
        (Some(403), _) => {
            Error::Refused { operation, reason: format!("our account may not do that ({})", error.words()) }
        }
        // A proxy that wants a login: it is in the way today, not for ever.
        (None, Trouble::Moved { .. }) => Error::Unavailable { reason: error.to_string() },
        _ => match error.retry() {
            Retry::Later | Retry::LookFirst => Error::Unavailable { reason: error.to_string() },
            Retry::Never => Error::Refused { operation, reason: error.to_string() },
        },
    }
}

/// Our own text, not longer than it may be.
fn cut(text: &str, limit: usize) -> &str {
    match text.len() > limit {
        true => &text[..(0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)],
        false => text,
    }
}
