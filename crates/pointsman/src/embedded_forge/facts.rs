//! Git's facts about a pull request: where its head stands, and whether its work is on the base.
//!
//! `refs/pull/<number>/head` remembers the last head that was seen before it landed. It keeps the commits of a deleted
//! branch, and it tells landed work (a remembered head that is on the base now) from a branch without any work (on the
//! base all along, and so never remembered).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pointsman_adapters::git::mirror::Mirror;
use pointsman_adapters::git::push::Expect;
use pointsman_adapters::git::{BranchName, Error, RefName};
use pointsman_core::forge::{IssueState, PullRequest};
use pointsman_core::ids::{Number, Sha};

/// The facts of one pull request.
pub(super) struct PullRequestFacts {
    /// Where its head is, or was when it was closed.
    pub(super) head: Option<Sha>,
    /// Recorded as open, but git has its work on the base: as this commit.
    pub(super) landed_as: Option<Sha>,
}

/// The bare repository, asked about pull requests.
pub(super) struct Repository {
    mirror: Mirror,
    /// Per pull request the head that was last found not to be on that base: asking again costs a process, and
    /// the daemon asks often.
    unmerged: Mutex<HashMap<Number, UnmergedHead>>,
    /// Held while a head is remembered: two threads that see the same move would meet at git's lock of the reference.
    remembering: Mutex<()>,
}

#[derive(PartialEq, Eq)]
struct UnmergedHead {
    head: Sha,
    base: Sha,
}

impl Repository {
    pub(super) fn new(mirror: Mirror) -> Self {
        Self { mirror, unmerged: Mutex::default(), remembering: Mutex::default() }
    }

    /// Where a branch stands. A name that git would not take is the name of no branch.
    pub(super) fn branch(&self, name: &str) -> Result<Option<Sha>, Error> {
        match BranchName::new(name) {
            Some(branch) => self.mirror.read_ref(&branch.full()),
            None => Ok(None),
        }
    }

    /// Whether a commit is there.
    pub(super) fn has(&self, sha: &Sha) -> Result<bool, Error> {
        self.mirror.commit_exists(sha)
    }

    /// Whether a commit is there and on the branch whose tip is `base`.
    pub(super) fn is_on(&self, sha: &Sha, base: &Sha) -> Result<bool, Error> {
        if sha == base {
            return Ok(true);
        }
        // A commit that is not there is rare, so it is only looked for when git could not say.
        self.mirror.is_ancestor(sha, base).or_else(|error| match self.mirror.commit_exists(sha)? {
            true => Err(error),
            false => Ok(false),
        })
    }

    /// Reads the facts, and remembers the head if it has moved.
    pub(super) fn pull_request_facts(&self, pr: &PullRequest) -> Result<PullRequestFacts, Error> {
        let remembered = self.mirror.read_ref(&remembered_at(pr.number))?;
        let head = self.branch(&pr.head)?;
        match pr.state {
            // Its branch may be somebody else's by now.
            IssueState::Closed => Ok(PullRequestFacts { head: remembered.or(head), landed_as: None }),
            IssueState::Open => self.standing_of_open(pr, head, remembered),
        }
    }

    fn standing_of_open(
        &self,
        pr: &PullRequest,
        head: Option<Sha>,
        remembered: Option<Sha>,
    ) -> Result<PullRequestFacts, Error> {
        let unmerged = |head| PullRequestFacts { head, landed_as: None };
        let Some(base) = self.branch(&pr.base)? else { return Ok(unmerged(head)) };
        let Some(latest) = head.clone().or_else(|| remembered.clone()) else { return Ok(unmerged(head)) };
        if !self.was_landed(pr.number, &latest, &base)? {
            if head.is_some() {
                self.remember(pr.number, &latest, remembered)?;
            }
            return Ok(unmerged(head));
        }
        match &remembered {
            Some(before) if *before == latest || self.is_on(before, &base)? => {
                self.remember(pr.number, &latest, remembered)?;
                self.forget_question(pr.number);
                Ok(PullRequestFacts { head: Some(latest.clone()), landed_as: Some(latest) })
            }
            // No work yet, or the branch was reset to the base: nothing of it has landed.
            Some(_) | None => Ok(unmerged(head)),
        }
    }

    /// Remembers where a head stands.
    pub(super) fn remember(&self, pr: Number, head: &Sha, before: Option<Sha>) -> Result<(), Error> {
        if before.as_ref() == Some(head) {
            return Ok(());
        }
        let _one = self.remembering.lock().unwrap_or_else(PoisonError::into_inner);
        let expect = before.map_or(Expect::Absent, Expect::At);
        // Stale: another process has seen the same move, or a later one.
        self.mirror.update_ref(&remembered_at(pr), head, &expect).map(drop)
    }

    fn was_landed(&self, pr: Number, head: &Sha, base: &Sha) -> Result<bool, Error> {
        let question = UnmergedHead { head: head.clone(), base: base.clone() };
        if self.unmerged.lock().unwrap_or_else(PoisonError::into_inner).get(&pr) == Some(&question) {
            return Ok(false);
        }
        let landed = self.is_on(head, base)?;
        if !landed {
            self.unmerged.lock().unwrap_or_else(PoisonError::into_inner).insert(pr, question);
        }
        Ok(landed)
    }

    /// A closed pull request is not asked about again.
    pub(super) fn forget_question(&self, pr: Number) {
        self.unmerged.lock().unwrap_or_else(PoisonError::into_inner).remove(&pr);
    }
}

fn remembered_at(pr: Number) -> RefName {
    RefName::new(&format!("refs/pull/{pr}/head")).expect("a number makes a good name")
}
