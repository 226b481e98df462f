//! The embedded forge keeps issues, pull requests and reviews on this machine, with a bare repository as the remote.
//!
//! Texts are in a database of the store. Facts come from git: the head of a pull request, and whether it is on its
//! base. This module does not decide what may be approved or landed, and it moves no branch.
//!
//! * [`create`] makes the database and the repository of a project and imports its primary branch
//! * `serve` answers the daemon, as the trait [`Forge`](pointsman_adapters::forge::Forge)
//! * [`run_command`] answers people
//! * `facts` has the facts from git, `limits` the limits on texts

mod command;
mod create;
mod facts;
mod limits;
mod serve;

#[cfg(test)]
mod tests;

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pointsman_adapters::forge::Error;
use pointsman_adapters::git::bare::init_bare;
use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::{self, BranchName, Git};
use pointsman_adapters::retry::Retry;
use pointsman_core::filing;
use pointsman_core::forge::{IssueState, PullRequest};
use pointsman_core::ids::Number;
use pointsman_core::time::Timestamp;
use pointsman_store::{self as store, ForgeDatabase};

use crate::paths::ProjectPaths;
use facts::Repository;

pub(crate) use command::reviewable_head;
pub use command::run_command;
pub use create::create;

/// The name we write under.
pub const ACCOUNT: &str = "pointsman";
/// The name our reviews are written under, so that nobody approves what is their own.
pub const REVIEW_ACCOUNT: &str = "pointsman-review";

/// A day, by which sessions' issues are counted.
const DAY_MILLIS: i64 = 24 * 3_600_000;

/// One project's database and bare repository.
///
/// Several may be open at once, also in different processes: every single write is safe then. That "once" holds for
/// comments and reviews needs a single one, which the daemon's lock sees to.
pub struct EmbeddedForge {
    forge_db: Mutex<ForgeDatabase>,
    repository: Repository,
    remote: String,
    /// The branch that work lands on.
    primary: String,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// The last numbers that a forge gave out. They only grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Newest {
    /// Of an issue or a pull request.
    pub(crate) number: Number,
    pub(crate) comment: u64,
}

impl Newest {
    /// Whether this is less than what was known.
    pub(crate) fn is_behind(self, known: Self) -> bool {
        self.number < known.number || self.comment < known.comment
    }
}

impl EmbeddedForge {
    /// Opens the forge of one project. What is missing is made, but empty: [`create`] brings the primary branch.
    pub fn open(
        paths: &ProjectPaths,
        primary_branch: &str,
        git: &Git,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let (repository, forge_db) = open_parts(paths, primary_branch, git)?;
        Ok(Self {
            forge_db: Mutex::new(forge_db),
            remote: repository.remote_url().to_owned(),
            repository: Repository::new(repository),
            primary: primary_branch.to_owned(),
            clock: Box::new(clock),
        })
    }

    /// The last numbers that its database gave out.
    pub(crate) fn newest(&self) -> Result<Newest, Error> {
        let (number, comment) = self.forge_db().newest().map_err(database_error("look how far it is"))?;
        Ok(Newest { number, comment })
    }

    /// Gives no issue or pull request a number up to this one.
    pub(crate) fn skip_numbers(&self, upto: Number) -> Result<(), Error> {
        self.forge_db().skip_numbers(upto).map_err(database_error("skip numbers"))
    }

    /// The number of issues that were filed under a name.
    pub(crate) fn filed_by(&self, author: &str) -> Result<u64, Error> {
        self.forge_db().issues_by(author).map_err(database_error("count issues"))
    }

    /// The number of issues that sessions filed within the last day.
    pub(crate) fn filed_by_sessions_today(&self) -> Result<u64, Error> {
        let since = Timestamp(self.now().0.saturating_sub(DAY_MILLIS));
        let authors = self.forge_db().authors_since(since).map_err(database_error("count issues"))?;
        Ok(authors.iter().filter(|author| filing::by_session(author)).count() as u64)
    }

    /// The length of the chain of issues that an issue of this author would end.
    pub(crate) fn depth_of_filing(&self, author: &str) -> u32 {
        // Without an answer the chain ends there: the other limits hold all the same.
        filing::depth(author, |issue| self.forge_db().author_of(issue).ok().flatten())
    }

    /// A panic in the middle of a write rolled it back, so the database behind a poisoned lock is as good as before.
    fn forge_db(&self) -> MutexGuard<'_, ForgeDatabase> {
        self.forge_db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Adds what git knows to what the database knows. Work that somebody brought to the base by hand is written down as
    /// merged here, the first time it is seen.
    fn with_facts(&self, mut pr: PullRequest) -> Result<PullRequest, Error> {
        const OPERATION: &str = "look at a pull request";
        let standing = self.repository.pull_request_facts(&pr).map_err(git_error(OPERATION))?;
        pr.head_sha = standing.head;
        if let Some(sha) = standing.landed_as {
            self.forge_db().mark_merged(pr.number, &sha).map_err(database_error(OPERATION))?;
            pr.state = IssueState::Closed;
            pr.merged = true;
            pr.merge_sha = Some(sha);
        }
        Ok(pr)
    }
}

fn open_parts(paths: &ProjectPaths, primary: &str, git: &Git) -> Result<(Mirror, ForgeDatabase), Error> {
    const OPERATION: &str = "open";
    let dir = paths.forge_repository();
    let refused = |reason: String| Error::Refused { operation: OPERATION, reason };
    let remote = dir.to_str().ok_or_else(|| refused(format!("{} is not UTF-8", dir.display())))?;
    let primary = BranchName::new(primary)
        .ok_or_else(|| refused(format!("`{primary}` cannot be the name of a branch")))?;
    // Issues and agents' words are nobody else's business.
    DirBuilder::new().recursive(true).mode(0o700).create(paths.root()).map_err(|error| {
        Error::Unavailable { reason: format!("cannot make {}: {error}", paths.root().display()) }
    })?;
    init_bare(git, &dir, &primary).map_err(git_error(OPERATION))?;
    // We have the questions that a mirror answers; this one is its own remote.
    let repository = Mirror::open_or_create(git, &dir, remote).map_err(git_error(OPERATION))?;
    let forge_db = ForgeDatabase::open(&paths.forge_database()).map_err(database_error(OPERATION))?;
    Ok((repository, forge_db))
}

/// Sorts the errors of the database. Every call of a forge may be repeated, so "look first" is "later" here.
fn database_error(operation: &'static str) -> impl Fn(store::Error) -> Error {
    move |error| match error {
        store::Error::NotFound { what } => Error::NotFound { what },
        error => match error.retry() {
            store::Retry::Later | store::Retry::LookFirst => Error::Unavailable { reason: chain(&error) },
            store::Retry::Never => Error::Refused { operation, reason: chain(&error) },
        },
    }
}

/// Sorts what git says, in the same way.
fn git_error(operation: &'static str) -> impl Fn(git::Error) -> Error {
    move |error| match error.retry() {
        Retry::Later | Retry::LookFirst => Error::Unavailable { reason: chain(&error) },
        Retry::Never => Error::Refused { operation, reason: chain(&error) },
    }
}

/// An error with all its causes: the next one up has only room for words.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
