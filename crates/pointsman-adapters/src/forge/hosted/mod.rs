//! A repository hosted on a server with the API that GitHub made and Gitea took over.
//!
//! What both servers do alike is here; where they differ, a [`Dialect`] says how. `wire` is what the servers say, as far
//! as we read it; `opening` finds the accounts and their rights; `issues`, `pulls`, `reviews` and `checks` are the parts
//! of the API; `serve` puts the trait [`Forge`](super::Forge) on top of them; `errors` sorts errors.
//!
//! Each order asks first whether it is so already, so that an answer that got lost doubles nothing.

mod checks;
pub(super) mod errors;
mod issues;
mod opening;
mod pulls;
mod reviews;
mod serve;
pub(super) mod wire;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};

use pointsman_core::config::MergeStyle;
use pointsman_core::forge::{BoardItem, Check, PullRequest};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;
use serde::de::DeserializeOwned;

use errors::told;
pub use opening::{Opening, Right};
pub(super) use pulls::MERGE;
use wire::{Label, WireIssue, WireReview};

use super::{BoardChange, Error, ForgeMerge, MergeTies};
use crate::git::Account;
use crate::http::{Client, Count, Host, Method, Request, Scheme};

/// Facts about how a kind of server wants to be spoken to.
pub(super) struct ApiTraits {
    /// How it wants to see a token.
    pub(super) scheme: Scheme,
    pub(super) headers: &'static [(&'static str, &'static str)],
    /// The most it gives at once.
    pub(super) page: usize,
    /// What belongs to one issue or one review.
    pub(super) belongings: Paging,
    /// The word that hands in an approval.
    pub(super) approve: &'static str,
    /// How it refuses a second pull request between the same branches.
    pub(super) taken: u16,
    /// How a review is taken back.
    pub(super) dismiss: Method,
    /// The part of a pull request's address before its number.
    pub(super) pull_link: &'static str,
}

/// How a server gives comments, labels and remarks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Paging {
    /// Page by page, like everything.
    Paged,
    /// All at once; who asks for the second page gets the first one again.
    Whole,
}

/// One repository, with a dev account and perhaps a review account.
pub(super) struct Hosted {
    manner: &'static ApiTraits,
    url: String,
    owner: String,
    name: String,
    pub(super) dev: Client,
    reviewer: Option<Client>,
    account: Account,
    accounts: OnceLock<Names>,
    /// Who we are, if that is no account of a person.
    robot: Option<Arc<dyn AppAccount>>,
    /// What reviews say about single lines; said once, never changed.
    remarks: Mutex<HashMap<u64, String>>,
    /// When what is open changed last; none before it was listed.
    marks: Mutex<Option<BTreeMap<Number, String>>>,
}

/// An account that is no person's: the server does not tell it who it is, and issues cannot be assigned to it.
pub(super) trait AppAccount: Send + Sync {
    /// Its name.
    fn name(&self) -> Result<String, Error>;

    /// Rights that it needs and lacks, a sentence each.
    fn lacks(&self) -> Result<Vec<String>, Error>;
}

/// The names of our accounts.
struct Names {
    me: String,
    reviewer: Option<String>,
}

/// Where servers differ. All orders come after [`Dialect::look`].
pub(super) trait Dialect: Send + Sync {
    /// What both have in common.
    fn hosted(&self) -> &Hosted;

    /// Finds the server and looks at both accounts and what they may do; once.
    fn look(&self) -> Result<(), Error>;

    /// The version that the server told, and what that version lacks; nothing where every server is alike.
    fn version(&self) -> Option<(String, Vec<&'static str>)> {
        None
    }

    /// Takes note of all open issues.
    fn listed(&self, _issues: &[WireIssue]) {}

    /// What the server wants to have named when a label is to be added; it is made if it is not there.
    fn label_to_add(&self, name: &str) -> Result<serde_json::Value, Error>;

    /// What the server wants to have named when a label is to be removed.
    fn label_to_remove(&self, label: &Label) -> String;

    /// Adding labels failed: what is known about them may be wrong.
    fn forget_labels(&self) {}

    /// Whether somebody may write to the repository.
    fn has_a_say(&self, who: &str) -> Result<bool, Error>;

    /// Issues that an open issue waits for.
    fn read_dependencies(&self, _number: Number) -> Result<Vec<Number>, Error> {
        Ok(Vec::new())
    }

    /// Narrows a question for pull requests to those between two branches, where the server can.
    fn between(&self, question: Request, _head: &str, _base: &str) -> Request {
        question
    }

    /// Whether a review counts; one that does not is as good as taken back.
    fn counts(&self, review: &WireReview, verdict: ReviewVerdict) -> Result<bool, Error>;

    /// Has the server itself show an open pull request as merged; false if it will not, or perhaps does already.
    fn show_merge(&self, pr: Number, sha: &Sha) -> Result<bool, Error>;

    /// The merged pull request that explains a commit on the base branch.
    fn explain(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error>;

    /// The account that moved a branch to this commit, where the server tells.
    fn pusher(&self, _branch: &str, _sha: &Sha) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// What the checks say about exactly this commit.
    fn read_checks(&self, sha: &Sha) -> Result<Vec<Check>, Error>;

    /// Has the server merge a pull request; none if it has no such call.
    fn merge(&self, _pr: Number, _head: &Sha, _style: MergeStyle) -> Option<Result<ForgeMerge, Error>> {
        None
    }

    /// What ties a pull request to the server's own ways of merging.
    fn ties(&self, _pr: Number) -> Result<MergeTies, Error> {
        Ok(MergeTies::default())
    }

    /// Open pull requests that people asked to be merged.
    fn wishes(&self, _label: &str) -> Result<Vec<PullRequest>, Error> {
        Ok(Vec::new())
    }

    /// Why we may not push to a branch, as far as the server's rules tell beyond what the branch itself says.
    fn forbids_push(&self, _branch: &str, _me: &str) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// The issues on the board, and whether they are open; none without a board.
    fn read_board(&self) -> Option<Result<Vec<(BoardItem, bool)>, Error>> {
        None
    }

    /// One issue on the board; none without a board.
    fn read_board_item(&self, _number: Number) -> Option<Result<BoardItem, Error>> {
        None
    }

    /// Changes an issue on the board; none without a board.
    fn change_board(&self, _number: Number, _change: &BoardChange<'_>) -> Option<Result<(), Error>> {
        None
    }

    /// What asking other addresses of the server has cost.
    fn further_costs(&self) -> Vec<(&'static str, Count)> {
        Vec::new()
    }
}

impl Hosted {
    /// The server, for its counts and limits.
    pub(super) fn host(&self) -> &Arc<Host> {
        self.dev.host()
    }

    /// From now on we are this one.
    pub(super) fn is_robot(&mut self, robot: Arc<dyn AppAccount>) {
        self.robot = Some(robot);
    }

    /// The account that git shows to the server.
    pub(super) fn account(&self) -> Account {
        self.account.clone()
    }

    /// Who the repository belongs to.
    pub(super) fn owner(&self) -> &str {
        &self.owner
    }

    /// Owner and name of the repository.
    pub(super) fn names(&self) -> (&str, &str) {
        (&self.owner, &self.name)
    }

    /// Our account's name; nothing before it was found, which every order sees to first.
    fn me(&self) -> &str {
        self.accounts.get().map_or("", |names| &names.me)
    }

    /// The name of the account that reviews.
    pub(super) fn reviewer(&self) -> Option<&str> {
        self.accounts.get().and_then(|names| names.reviewer.as_deref())
    }

    /// A request for something of the repository.
    pub(super) fn request(&self, operation: &'static str, method: Method, rest: &[&str]) -> Request {
        let mut segments = vec!["repos", &self.owner, &self.name];
        segments.extend(rest);
        self.anywhere(operation, method, &segments)
    }

    /// A request for something outside the repository.
    pub(super) fn anywhere(&self, operation: &'static str, method: Method, segments: &[&str]) -> Request {
        let plain = Request::new(operation, method, segments);
        self.manner.headers.iter().fold(plain, |request, (name, value)| request.header(name, *value))
    }

    pub(super) fn get(&self, operation: &'static str, rest: &[&str]) -> Request {
        self.request(operation, Method::Get, rest)
    }

    /// All of a list.
    pub(super) fn list<T: DeserializeOwned>(&self, request: &Request) -> Result<Vec<T>, Error> {
        self.dev.list(request, self.manner.page).map_err(told)
    }

    /// All of what belongs to an issue or a review.
    pub(super) fn belongings<T: DeserializeOwned>(&self, request: &Request) -> Result<Vec<T>, Error> {
        match self.manner.belongings {
            Paging::Paged => self.list(request),
            Paging::Whole => {
                // Some servers say null where they have nothing.
                self.dev.read::<Option<Vec<T>>>(request).map(Option::unwrap_or_default).map_err(told)
            }
        }
    }

    /// Whether this is what a server calls our repository.
    fn is_here(&self, full_name: &str) -> bool {
        full_name.is_empty() || full_name.eq_ignore_ascii_case(&format!("{}/{}", self.owner, self.name))
    }

    /// Where people look at something of the repository.
    fn link(&self, what: &str, number: Number) -> String {
        format!("{}/{}/{}/{what}/{number}", self.url, self.owner, self.name)
    }
}
