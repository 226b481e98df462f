//! A forge: issues, pull requests, reviews, checks and a board, wherever they live.
//!
//! Trait and error here; the embedded forge is in the binary (it needs the store). Forges on servers: `hosted` has what
//! they do alike, `forgejo` and `github` where they differ; `gitlab` has an API of its own. Every call says what is true afterwards, so calling it twice
//! is the same as calling it once.

pub mod forgejo;
pub mod github;
pub mod gitlab;
mod hosted;
pub mod plain;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use hosted::{Opening, Right};
use pointsman_core::config::MergeStyle;
use pointsman_core::forge::{BoardItem, BoardStatus, Check, CheckState, Comment, Issue, PullRequest, Review};
use pointsman_core::ids::{Number, Sha};
use pointsman_core::task::ReviewVerdict;

use crate::git::Account;
use crate::http::{Count, Host};
use crate::retry::Retry;

/// One project's forge, with our own account.
pub trait Forge: Send + Sync {
    /// The name we write under.
    fn me(&self) -> &str;

    /// The name our reviews are written under; none if we cannot review.
    fn reviewer(&self) -> Option<&str>;

    /// Where git pushes and fetches.
    fn remote(&self) -> String;

    /// All open issues (without pull requests), oldest first, without their comments.
    fn open_issues(&self) -> Result<Vec<Issue>, Error>;

    /// When each open issue and pull request changed last, as [`Self::open_issues`] has just found; what is missing is not
    /// open. None where nobody tells: then everything has to be asked for.
    fn marks(&self) -> Option<BTreeMap<Number, String>> {
        None
    }

    /// Whether a change by this account is one that we have just made ourselves.
    fn is_echo(&self, _who: &str) -> bool {
        false
    }

    /// One issue with its comments; none if there is no such issue.
    fn issue(&self, number: Number) -> Result<Option<Issue>, Error>;

    /// Files an issue once: an open one of ours whose text ends with `marker` is found instead of filed again.
    fn file_issue_once(
        &self,
        marker: &str,
        title: &str,
        body: &str,
        labels: &[&str],
    ) -> Result<Number, Error>;

    /// What our accounts need there, one by one; nothing where no account is needed. `branch` is one that is there.
    fn rights(&self, _branch: &str) -> Vec<Right> {
        Vec::new()
    }

    /// Makes the labels that are not there yet, with their colours.
    fn ensure_labels(&self, _names: &[&str]) -> Result<(), Error> {
        Ok(())
    }

    /// Sets and removes labels, and answers all that are there afterwards.
    fn set_labels(&self, number: Number, add: &[String], remove: &[String]) -> Result<Vec<String>, Error>;

    /// Makes us the assignee.
    fn assign_me(&self, number: Number) -> Result<(), Error>;

    /// Assigns the issue to us beside whoever has it. A forge that knows one assignee makes us that one.
    fn assign_me_too(&self, number: Number) -> Result<(), Error> {
        self.assign_me(number)
    }

    /// Makes a person the assignee, or nobody.
    fn assign(&self, number: Number, who: Option<&str>) -> Result<(), Error>;

    /// Comments once: a comment of ours that holds `marker` is found instead of written again.
    fn comment_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error>;

    /// The same on a pull request. Most forges number pull requests and issues together.
    fn comment_on_pull_request_once(&self, number: Number, marker: &str, body: &str) -> Result<(), Error> {
        self.comment_once(number, marker, body)
    }

    /// Comments newer than `after`, oldest first.
    fn comments_after(&self, number: Number, after: u64) -> Result<Vec<Comment>, Error>;

    /// Closes the issue.
    fn close_issue(&self, number: Number) -> Result<(), Error>;

    /// Closes a pull request without a merge. Most forges number pull requests and issues together.
    fn close_pull_request(&self, number: Number) -> Result<(), Error> {
        self.close_issue(number)
    }

    /// Issues that an open issue waits for by the forge's own means, beside what its text says.
    fn dependencies(&self, _number: Number) -> Result<Vec<Number>, Error> {
        Ok(Vec::new())
    }

    /// Whether somebody's words on an issue may direct an agent. Where everybody can comment, only of those who may
    /// write.
    fn may_direct(&self, _who: &str) -> Result<bool, Error> {
        Ok(true)
    }

    /// The open pull request from `head` to `base`: found, or opened.
    fn ensure_pull_request(&self, head: &str, base: &str, title: &str, body: &str) -> Result<Number, Error>;

    /// One pull request; `merged` and `head_sha` are facts of git. Its reviews are there while it is not merged.
    fn pull_request(&self, number: Number) -> Result<Option<PullRequest>, Error>;

    /// The reviews of a pull request that is known to be open, with `head` as its head.
    fn open_reviews(&self, number: Number, _head: Option<&Sha>) -> Result<Vec<Review>, Error> {
        Ok(self.pull_request(number)?.map(|pr| pr.reviews).unwrap_or_default())
    }

    /// The newest pull request from `head` to `base`, open or not.
    fn pull_request_from(&self, head: &str, base: &str) -> Result<Option<PullRequest>, Error>;

    /// All open pull requests between branches of this very repository, oldest first, without their reviews.
    fn open_pull_requests(&self) -> Result<Vec<PullRequest>, Error>;

    /// Reviews a commit once, as the review account: an earlier review of ours for the same commit
    /// is found instead of written again.
    fn review_once(&self, pr: Number, sha: &Sha, verdict: ReviewVerdict, body: &str) -> Result<(), Error>;

    /// Takes back what our review account asked to be changed in other commits than this one. A forge that does not let
    /// it shows the newer verdict beside the older one.
    fn withdraw_change_requests(&self, pr: Number, keep: &Sha) -> Result<(), Error>;

    /// Tells the forge that the pull request's work is on its base branch as `sha`.
    fn record_merge(&self, pr: Number, sha: &Sha) -> Result<(), Error>;

    /// Has the forge itself merge a pull request at exactly this head, or put it into its own merge queue. Asking again while
    /// that is under way is asking once.
    fn merge_pull_request(&self, _pr: Number, _head: &Sha, _style: MergeStyle) -> Result<ForgeMerge, Error> {
        let reason = "this forge merges nothing by itself".to_owned();
        Err(Error::Refused { operation: "merge a pull request", reason })
    }

    /// What ties a pull request to the forge's own ways of merging; nothing on a forge without them.
    fn merge_ties(&self, _pr: Number) -> Result<MergeTies, Error> {
        Ok(MergeTies::default())
    }

    /// Open pull requests that people asked to be merged, by this label or by the forge's own button, oldest first, without
    /// their reviews.
    fn merge_wishes(&self, _label: &str) -> Result<Vec<PullRequest>, Error> {
        Ok(Vec::new())
    }

    /// Where a branch stands now; none if there is no such branch.
    fn branch_head(&self, branch: &str) -> Result<Option<Sha>, Error>;

    /// The merged pull request that brought this commit to the main branch, if there is one.
    fn pull_request_of(&self, sha: &Sha, parents: &[Sha]) -> Result<Option<Number>, Error>;

    /// The account that moved a branch to this commit, as the forge has recorded it; none if it does not tell.
    fn pusher_of(&self, _branch: &str, _sha: &Sha) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// What asking it has cost so far, by operation; nothing for a forge that needs no server.
    fn costs(&self) -> Vec<(&'static str, Count)> {
        Vec::new()
    }

    /// Where people look at the issue.
    fn issue_link(&self, number: Number) -> String;

    /// Where people look at the pull request.
    fn pull_request_link(&self, number: Number) -> String;

    /// What the checks say about a commit; empty if none has said anything.
    fn checks(&self, sha: &Sha) -> Result<Vec<Check>, Error>;

    /// Shows on the forge what a check of ours says about a commit. A forge that shows none lets it be.
    fn show_check(&self, _sha: &Sha, _name: &str, _state: CheckState) -> Result<(), Error> {
        Ok(())
    }

    /// The open issues as the board shows them, oldest first.
    fn board(&self) -> Result<Vec<BoardItem>, Error> {
        Err(no_board("read the board"))
    }

    /// One issue as the board shows it.
    fn board_item(&self, _number: Number) -> Result<BoardItem, Error> {
        Err(no_board("read the board"))
    }

    /// Issues that the board gives to an agent, open or not.
    fn claimed_on_board(&self) -> Result<Vec<BoardItem>, Error> {
        Err(no_board("read the board"))
    }

    /// Changes an issue's Status, its Agent, or both.
    fn set_board(&self, _number: Number, _change: &BoardChange<'_>) -> Result<(), Error> {
        Err(no_board("change the board"))
    }
}

/// A forge on a server, as those see it who open it and those who look whether it is well.
pub trait ServerForge: Forge {
    /// Finds the server and looks at both accounts and what they may do; once.
    fn look(&self) -> Result<(), Error>;

    /// The server, for its counts and limits.
    fn host(&self) -> &Arc<Host>;

    /// The account that git shows to the server.
    fn account(&self) -> Account;

    /// The version that the server told, and what that version lacks, a sentence each.
    fn version(&self) -> Option<(String, Vec<&'static str>)>;
}

/// The state of a merge that the forge was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForgeMerge {
    /// It is on the base branch as this commit.
    Merged { sha: Sha },
    /// The forge works on it, or it waits in the forge's own merge queue.
    Waiting { words: String },
    /// The forge will not, in its own words.
    Refused { reason: String },
}

/// The ties of a pull request to the forge's own ways of merging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeTies {
    /// Somebody has told the forge to merge it as soon as its rules are met.
    pub auto_merge: bool,
    /// It is one of a stack, which only the forge can merge.
    pub stack: bool,
}

/// A change of an issue's row on the board. Fields that are none stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BoardChange<'a> {
    pub status: Option<BoardStatus>,
    /// Its Agent; empty for nobody.
    pub agent: Option<&'a str>,
}

fn no_board(operation: &'static str) -> Error {
    Error::Refused { operation, reason: "this forge has no board".to_owned() }
}

/// A failed call of a forge, reduced to the three cases that callers treat differently.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It does not answer, or not now.
    #[error("the forge is unavailable: {reason}")]
    Unavailable { reason: String },
    /// There is no such thing.
    #[error("the forge has no {what}")]
    NotFound { what: String },
    /// It says no.
    #[error("the forge refused to {operation}: {reason}")]
    Refused { operation: &'static str, reason: String },
}

impl Error {
    /// Whether trying again makes sense.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Unavailable { .. } => Retry::Later,
            Self::NotFound { .. } | Self::Refused { .. } => Retry::Never,
        }
    }
}
