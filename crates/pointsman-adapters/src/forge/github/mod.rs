//! GitHub and GitHub Enterprise, by the REST API.
//!
//! * `open`: the two accounts and what they may do
//! * `wire`: what the server says, as far as we read it
//! * `issues`, `pulls`, `checks`: a file per part of the API
//! * `serve`: the trait [`Forge`](super::Forge) on top of them
//!
//! A pushed landing is shown as merged by GitHub itself if the pull request's head is part of it; otherwise the pull
//! request is closed with a comment that names the commit. Projects are not spoken to here.

mod checks;
mod issues;
mod open;
mod pulls;
mod serve;
mod wire;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use open::Opening;

use super::remote::{LONGEST_BODY, TITLE_CHARS, cut, in_the_way, landed_as, landed_mark, told, unless_there};
use crate::git::Account;
use crate::http::{Client, Host, Method, Request};

/// The most GitHub gives at once.
const PAGE: usize = 100;
/// How long it is remembered who has a say.
const PEOPLE_FOR: Duration = Duration::from_secs(300);
/// The version of the API we speak.
const API_VERSION: &str = "2022-11-28";

/// One repository on GitHub, with a dev account and perhaps a review account.
pub struct Github {
    url: String,
    owner: String,
    repo: String,
    dev: Client,
    reviewer: Option<Client>,
    account: Account,
    standing: OnceLock<Standing>,
    known: Mutex<Known>,
}

/// What was found out about our accounts.
struct Standing {
    me: String,
    reviewer: Option<String>,
}

/// What need not be asked again. All of it can be lost.
#[derive(Default)]
struct Known {
    labels: BTreeSet<String>,
    people: BTreeMap<String, (Instant, bool)>,
    remarks: HashMap<u64, String>,
}

impl Github {
    /// The server, for its counts and limits.
    pub fn host(&self) -> &Arc<Host> {
        self.dev.host()
    }

    /// The account that git shows to the server.
    pub fn account(&self) -> Account {
        self.account.clone()
    }

    /// Our account's name; nothing before it was found, which every order sees to first.
    fn me(&self) -> &str {
        self.standing.get().map_or("", |standing| &standing.me)
    }

    fn reviewer(&self) -> Option<&str> {
        self.standing.get().and_then(|standing| standing.reviewer.as_deref())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request for something of the repository.
    fn request(&self, operation: &'static str, method: Method, rest: &[&str]) -> Request {
        let mut segments = vec!["repos", &self.owner, &self.repo];
        segments.extend(rest);
        github_request(operation, method, &segments)
    }

    fn get(&self, operation: &'static str, rest: &[&str]) -> Request {
        self.request(operation, Method::Get, rest)
    }
}

fn github_request(operation: &'static str, method: Method, segments: &[&str]) -> Request {
    let request = Request::new(operation, method, segments);
    request.header("accept", "application/vnd.github+json").header("x-github-api-version", API_VERSION)
}
