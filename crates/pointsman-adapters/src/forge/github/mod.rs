//! GitHub and GitHub Enterprise, by the REST API: where they differ from what [`hosted`](super::hosted) has in common.
//!
//! `dialect` has the differences, `merge` its own ways of merging, `board` a Projects board, `app` an App in place of an account. A pushed landing is shown
//! as merged by GitHub itself if the pull request's head is part of it; otherwise the pull request is closed with a
//! comment that names the commit.

mod app;
mod board;
mod dialect;
mod merge;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pointsman_core::ids::{Number, Sha};
use pointsman_core::time::Timestamp;

use self::app::App;
pub use self::app::AppKey;
use self::board::Board;
use super::Error;
use super::hosted::{ApiTraits, Dialect, Hosted, Opening, Paging};
use crate::git::Account;
use crate::http::{Host, Limits, Method, RetryWait, Scheme};
use crate::secret::{Secret, Token};

static MANNER: ApiTraits = ApiTraits {
    scheme: Scheme::Bearer,
    headers: &[("accept", "application/vnd.github+json"), ("x-github-api-version", "2022-11-28")],
    page: 100,
    belongings: Paging::Paged,
    approve: "APPROVE",
    taken: 422,
    dismiss: Method::Put,
    pull_link: "pull",
};

/// Where everybody's GitHub is.
pub const PUBLIC: &str = "https://github.com";
/// Where its API is; an Enterprise server has it below its own address.
const PUBLIC_API: &str = "https://api.github.com";

fn api(url: &str) -> String {
    match url {
        PUBLIC => PUBLIC_API.to_owned(),
        url => format!("{url}/api/v3"),
    }
}

/// The settings for a repository that is opened as a GitHub App.
pub struct AppOpening<'a> {
    /// Address of the server, as people type it.
    pub url: &'a str,
    pub repo: &'a str,
    /// Token of the account that reviews, if there is one.
    pub review_token: Option<Secret>,
    pub clock: fn() -> Timestamp,
    pub limits: Limits,
    /// Ends waiting when everything ends.
    pub patience: RetryWait,
}

/// One repository on GitHub, with a dev account and perhaps a review account.
pub struct Github {
    hosted: Hosted,
    board: Option<Board>,
    known: Mutex<Cache>,
}

/// What need not be asked again. All of it can be lost.
#[derive(Default)]
struct Cache {
    labels: BTreeSet<String>,
    people: BTreeMap<String, (Instant, bool)>,
    /// Merges that were asked for: of which head, and the number of the order.
    merging: BTreeMap<Number, (Sha, String)>,
}

impl Github {
    /// The same with an App in place of the account that develops.
    pub fn prepare_app(key: &AppKey<'_>, opening: AppOpening<'_>) -> Result<Self, Error> {
        let AppOpening { url, repo, review_token, clock, limits, patience } = opening;
        let api = api(url.trim_end_matches('/'));
        let host = Host::new(&api, clock, limits, patience.clone());
        let app = App::new(key, host, repo.split_once('/').unwrap_or((repo, "")))?;
        let token = Token::Renewed(Arc::clone(&app) as _);
        let mut github = Self::prepare(Opening { url, repo, token, review_token, clock, limits, patience })?;
        github.hosted.is_robot(app);
        Ok(github)
    }

    /// The repository, not yet looked at: nothing is asked of the server.
    pub fn prepare(opening: Opening<'_>) -> Result<Self, Error> {
        let api = api(opening.address());
        Ok(Self { hosted: opening.prepare(&api, &MANNER)?, board: None, known: Mutex::new(Cache::default()) })
    }

    /// With a Projects board: its number, and whose it is if it does not belong to the owner of the repository. Its API
    /// lies beside the other one.
    pub fn with_board(mut self, owner: Option<&str>, number: u64) -> Self {
        let hosted = &self.hosted;
        let api = hosted.host().base().trim_end_matches("/v3").to_owned();
        let client = hosted.dev.at(&api);
        let owner = owner.unwrap_or(hosted.owner());
        self.board = Some(Board::new(client, owner, number, hosted.names()));
        self
    }

    /// Looks at both accounts and what they may do; once.
    pub fn look(&self) -> Result<(), Error> {
        Dialect::look(self)
    }

    /// The server, for its counts and limits.
    pub fn host(&self) -> &Arc<Host> {
        self.hosted.host()
    }

    /// The account that git shows to the server.
    pub fn account(&self) -> Account {
        self.hosted.account()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
