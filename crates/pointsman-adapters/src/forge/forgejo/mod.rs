//! Forgejo, Gitea and Codeberg: where they differ from what [`hosted`](super::hosted) has in common.
//!
//! * `version`: which server it is, and what an older one lacks
//! * `labels`: the server knows them by number
//! * `dialect`: the rest of what is different
//!
//! Landing is not done here: the daemon pushes, and the server is told afterwards
//! ([`Forge::record_merge`](super::Forge::record_merge)).

mod dialect;
mod labels;
mod version;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use pointsman_core::ids::Number;

pub use version::Version;

use super::Error;
use super::hosted::{ApiTraits, Dialect, Hosted, Opening, Paging};
use crate::git::Account;
use crate::http::{Host, Method, Scheme};

static MANNER: ApiTraits = ApiTraits {
    scheme: Scheme::Token,
    headers: &[],
    // As many as any server gives at once, if it was not told otherwise.
    page: 50,
    belongings: Paging::Whole,
    approve: "APPROVED",
    taken: 409,
    dismiss: Method::Post,
    pull_link: "pulls",
};

/// One repository on a Forgejo or Gitea server, with a dev account and perhaps a review account.
pub struct Forgejo {
    hosted: Hosted,
    version: OnceLock<Version>,
    known: Mutex<Cache>,
    /// Held from looking for a label to making it: the server makes a second one of the same name without a word.
    making: Mutex<()>,
}

/// What need not be asked again. All of it can be lost.
#[derive(Default)]
struct Cache {
    labels: BTreeMap<String, u64>,
    people: Option<(Instant, BTreeSet<String>)>,
    updated: HashMap<Number, String>,
    dependencies: HashMap<Number, (String, Instant, Vec<Number>)>,
}

impl Forgejo {
    /// The repository, not yet looked at: nothing is asked of the server.
    pub fn prepare(opening: Opening<'_>) -> Result<Self, Error> {
        let api = format!("{}/api/v1", opening.address());
        Ok(Self {
            hosted: opening.prepare(&api, &MANNER)?,
            version: OnceLock::new(),
            known: Mutex::new(Cache::default()),
            making: Mutex::new(()),
        })
    }

    /// Finds the server and looks at both accounts and what they may do; once.
    pub fn look(&self) -> Result<(), Error> {
        Dialect::look(self)
    }

    /// The server, for its counts and limits.
    pub fn host(&self) -> &Arc<Host> {
        self.hosted.host()
    }

    /// The kind and version of the server; none before the first answer named it.
    pub fn version(&self) -> Option<&Version> {
        self.version.get()
    }

    /// The account that git shows to the server.
    pub fn account(&self) -> Account {
        self.hosted.account()
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
