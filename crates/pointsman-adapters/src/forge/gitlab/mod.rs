//! GitLab, self-hosted or gitlab.com, by its REST API.
//!
//! Its API is not the one that GitHub made, so the trait [`Forge`](super::Forge) is implemented here directly. What
//! differs most: issues and merge requests are numbered apart; a project is named by its whole path; an approval is not
//! bound to a commit, so the versions of a merge request tell which commit was approved; a review that asks for changes
//! is a state of a reviewer, and our own reviews are notes with a mark.
//!
//! `opening` finds the accounts and their rights, `issues`, `merge_requests`, `reviews` and `checks` are the parts of the
//! API, `serve` puts the trait on top of them, `wire` is what the server says as far as we read it.

mod checks;
mod issues;
mod merge_requests;
mod opening;
mod reviews;
mod serve;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use self::wire::{Member, User};
use super::hosted::errors::told;
use super::{Error, Opening};
use crate::git::Account;
use crate::http::{Client, Host, Method, Request, Scheme};

/// Where everybody's GitLab is.
pub const PUBLIC: &str = "https://gitlab.com";
/// The most it gives at once.
const PAGE: usize = 100;
/// How long it is remembered who has a say.
const PEOPLE_FOR: Duration = Duration::from_secs(300);
/// The access level of a Developer: who may push to branches that are not protected.
const DEVELOPER: u32 = 30;
/// GitLab looks at the token alone if a name is there.
const ANYBODY: &str = "oauth2";

/// One project on a GitLab, with a dev account and perhaps a review account.
pub struct Gitlab {
    url: String,
    /// The whole path of the project, groups included.
    path: String,
    dev: Client,
    reviewer: Option<Client>,
    account: Account,
    names: OnceLock<Names>,
    version: OnceLock<String>,
    known: Mutex<Cache>,
}

/// Our accounts.
struct Names {
    me: User,
    reviewer: Option<User>,
}

/// What need not be asked again. All of it can be lost.
#[derive(Default)]
struct Cache {
    labels: BTreeSet<String>,
    people: BTreeMap<String, (Instant, bool)>,
}

impl Gitlab {
    /// The project, not yet looked at: nothing is asked of the server.
    pub fn prepare(opening: Opening<'_>) -> Result<Self, Error> {
        let url = opening.address().to_owned();
        opening.refuse_one_token_for_both()?;
        let host = Host::new(&format!("{url}/api/v4"), opening.clock, opening.limits, opening.patience);
        Ok(Self {
            account: Account::new(&url, ANYBODY, opening.token.clone()),
            path: opening.repo.trim_matches('/').to_owned(),
            dev: host.client_with(Some((Scheme::Bearer, opening.token))),
            reviewer: opening.review_token.map(|token| host.client(Some((Scheme::Bearer, token)))),
            names: OnceLock::new(),
            version: OnceLock::new(),
            known: Mutex::new(Cache::default()),
            url,
        })
    }

    /// The server, for its counts and limits.
    pub fn host(&self) -> &Arc<Host> {
        self.dev.host()
    }

    /// The account that git shows to the server.
    pub fn account(&self) -> Account {
        self.account.clone()
    }

    fn known(&self) -> MutexGuard<'_, Cache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Our account's name; nothing before it was found, which every order sees to first.
    fn me(&self) -> &str {
        self.names.get().map_or("", |names| &names.me.username)
    }

    /// The name of the account that reviews.
    fn reviewer_name(&self) -> Option<&str> {
        Some(&self.names.get()?.reviewer.as_ref()?.username)
    }

    /// A request for something of the project.
    fn request(&self, operation: &'static str, method: Method, rest: &[&str]) -> Request {
        let mut segments = vec!["projects", self.path.as_str()];
        segments.extend(rest);
        Request::new(operation, method, &segments)
    }

    fn get(&self, operation: &'static str, rest: &[&str]) -> Request {
        self.request(operation, Method::Get, rest)
    }

    fn list<T: DeserializeOwned>(&self, request: &Request) -> Result<Vec<T>, Error> {
        self.dev.list(request, PAGE).map_err(told)
    }

    /// Whether somebody may write to the repository: a Developer or more, of the project or of a group above it.
    fn has_a_say(&self, who: &str) -> Result<bool, Error> {
        if let Some((read, has)) = self.known().people.get(who)
            && read.elapsed() < PEOPLE_FOR
        {
            return Ok(*has);
        }
        let request = self.get("read who may write", &["members", "all"]).query("query", who);
        let found: Vec<Member> = self.list(&request)?;
        // The question finds parts of names as well.
        let has = found.iter().any(|member| {
            member.username == who && member.access_level >= DEVELOPER && member.state == "active"
        });
        self.known().people.insert(who.to_owned(), (Instant::now(), has));
        Ok(has)
    }
}
