//! Landing candidates: the commits that are tested and then pushed as they are, built in the mirror with
//! `git merge-tree`, without a working tree. The same inputs always give the same commit.

use pointsman_core::ids::Sha;

use super::commit::Commit;
use super::history::Range;
use super::merge_tree::{Merged, Merger, Side};
use super::mirror::Mirror;
use super::{Error, UnionGlobs};

/// The longest branch that is replayed commit by commit; a longer one lands as one commit.
const LONGEST_REPLAY: usize = 500;
/// The longest message of a commit that stands for a whole branch.
const LONGEST_MESSAGE: usize = 64 << 10;

/// How a branch gets onto main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Its commits are replayed on main.
    Rebase,
    /// A merge commit joins it to main.
    Merge,
    /// All of it becomes one commit on main.
    Squash,
}

/// What came of building a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    /// It is in the mirror. No reference points to it yet.
    Built(Built),
    /// The branch and main changed the same things.
    Conflict {
        /// Where, sorted; odd bytes are replaced for display.
        files: Vec<String>,
    },
    /// Main has all of the branch's changes already.
    Nothing,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The commit to test and to land.
    pub commit: Sha,
    pub tree: Sha,
    /// The candidate is the branch's head itself.
    pub same_as_head: bool,
}

/// Builds a candidate in the style asked for. The message is for the styles that make a commit of their own.
pub fn build(
    mirror: &Mirror,
    style: Style,
    onto: &Sha,
    head: &Sha,
    message: &str,
) -> Result<Candidate, Error> {
    build_with(mirror, &UnionGlobs::none(), style, onto, head, message)
}

/// Like [`build`], with files of which both sides are taken.
pub fn build_with(
    mirror: &Mirror,
    union: &UnionGlobs,
    style: Style,
    onto: &Sha,
    head: &Sha,
    message: &str,
) -> Result<Candidate, Error> {
    let built = Merger::new(mirror, union, onto).and_then(|merger| {
        let site = Site { mirror, merger, onto, head };
        match style {
            Style::Rebase => site.rebase(),
            Style::Merge => site.merge_commit(message),
            Style::Squash => site.squash(message),
        }
    });
    built.map_err(|error| explained(mirror, onto, std::slice::from_ref(head), error))
}

/// Replays the branch's commits on `onto`. A branch that sits on `onto` already is its own candidate. A merge in the
/// branch is replayed as what it changed for the branch (bringing main in changes nothing on main); if that does not
/// fit, or the branch is very long, the whole branch is merged at once into one commit.
///
/// Unlike `git rebase` it never leaves out a commit because main had the same patch once: what main has makes no
/// commit, what main has taken back since comes again.
pub fn rebase(mirror: &Mirror, onto: &Sha, head: &Sha) -> Result<Candidate, Error> {
    build(mirror, Style::Rebase, onto, head, "")
}

/// Joins the branch to `onto` with a merge commit, also where a fast-forward would do.
pub fn merge_commit(mirror: &Mirror, onto: &Sha, head: &Sha, message: &str) -> Result<Candidate, Error> {
    build(mirror, Style::Merge, onto, head, message)
}

/// Makes one commit on `onto` of the whole branch, by the author of its last commit.
pub fn squash(mirror: &Mirror, onto: &Sha, head: &Sha, message: &str) -> Result<Candidate, Error> {
    build(mirror, Style::Squash, onto, head, message)
}

/// Which of the heads would conflict with `main`, each for itself: nothing if it merges cleanly, else the files. One
/// process for all of them, and nothing is written to the mirror.
pub fn check_conflicts(
    mirror: &Mirror,
    main: &Sha,
    heads: &[Sha],
) -> Result<Vec<Option<Vec<String>>>, Error> {
    check_conflicts_with(mirror, &UnionGlobs::none(), main, heads)
}

/// Like [`check_conflicts`], with files of which both sides are taken.
pub fn check_conflicts_with(
    mirror: &Mirror,
    union: &UnionGlobs,
    main: &Sha,
    heads: &[Sha],
) -> Result<Vec<Option<Vec<String>>>, Error> {
    let merged = Merger::new(mirror, union, main)
        .and_then(|merger| merger.merge_each(main, heads))
        .map_err(|error| explained(mirror, main, heads, error))?;
    let files = |merged| match merged {
        Merged::Clean(_) => None,
        Merged::Conflict(files) => Some(files),
    };
    Ok(merged.into_iter().map(files).collect())
}

/// Git's own answer to a missing commit or a foreign history looks like a conflict or like nothing in particular.
fn explained(mirror: &Mirror, onto: &Sha, heads: &[Sha], error: Error) -> Error {
    for head in heads {
        match mirror.merge_base(onto, head) {
            Ok(Some(_)) => {}
            Ok(None) => return Error::Unrelated { head: head.clone(), onto: onto.clone() },
            Err(missing @ Error::NoCommit { .. }) => return missing,
            // As broken as what failed first.
            Err(_) => return error,
        }
    }
    error
}

/// Where one candidate is built.
struct Site<'a> {
    mirror: &'a Mirror,
    merger: Merger<'a>,
    onto: &'a Sha,
    head: &'a Sha,
}

impl Site<'_> {
    fn rebase(&self) -> Result<Candidate, Error> {
        let Range { shas, parent } = self.mirror.first_parent_range(self.onto, self.head)?;
        if shas.is_empty() {
            return Ok(Candidate::Nothing);
        }
        let Some(parent) = parent else {
            // It began as another history and took main in later.
            return self.squash(&joined_message(&self.links(&shas)?));
        };
        let ends = [self.onto.clone(), parent];
        let mut links = self.links(&[&ends[..], &shas].concat())?;
        let chain = links.split_off(ends.len());
        // Not merely an ancestor: main must stay on the line of first parents, or its history would be rewritten.
        if ends[0] == ends[1] {
            let tree = chain[chain.len() - 1].tree.clone();
            return Ok(Candidate::Built(Built { commit: self.head.clone(), tree, same_as_head: true }));
        }
        let has_merges = chain.iter().any(|c| c.parents.len() > 1);
        if chain.len() <= LONGEST_REPLAY {
            match self.replay(&links[0], &links[1], &chain)? {
                Replayed::Tip { commit, .. } if commit == *self.onto => return Ok(Candidate::Nothing),
                Replayed::Tip { commit, tree } => return self.built(commit, tree),
                Replayed::Conflict(files) if !has_merges => return Ok(Candidate::Conflict { files }),
                Replayed::Conflict(_) => {}
            }
        }
        self.squash(&joined_message(&chain))
    }

    fn merge_commit(&self, message: &str) -> Result<Candidate, Error> {
        self.one_commit(|commit, tree| {
            commit.moved(tree, &[self.onto, self.head]).by_us().with_message(message)
        })
    }

    fn squash(&self, message: &str) -> Result<Candidate, Error> {
        self.one_commit(|commit, tree| commit.moved(tree, &[self.onto]).with_message(message))
    }

    fn one_commit(&self, make: impl FnOnce(&Commit, &Sha) -> Commit) -> Result<Candidate, Error> {
        let commits = self.mirror.read_commits(&[self.onto.clone(), self.head.clone()])?;
        let tree = match self.merger.merge(self.onto, self.head)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(files) => return Ok(Candidate::Conflict { files }),
        };
        // So it is too if all of the branch is in main's history.
        if tree == commits[0].tree {
            return Ok(Candidate::Nothing);
        }
        let commit = self.merger.write(&make(&commits[1], &tree))?;
        self.built(commit, tree)
    }

    fn built(&self, commit: Sha, tree: Sha) -> Result<Candidate, Error> {
        self.merger.keep()?;
        Ok(Candidate::Built(Built { same_as_head: commit == *self.head, commit, tree }))
    }

    fn links(&self, shas: &[Sha]) -> Result<Vec<Link>, Error> {
        let commits = self.mirror.read_commits(shas)?;
        Ok(shas.iter().cloned().zip(commits).map(|(sha, commit)| Link { sha, commit }).collect())
    }

    /// Puts the commits of `chain`, which sits on `parent`, on `onto`.
    fn replay(&self, onto: &Link, parent: &Link, chain: &[Link]) -> Result<Replayed, Error> {
        let (mut tip, mut tip_tree) = (onto.sha.clone(), onto.tree.clone());
        let mut before = parent;
        for link in chain {
            let ours = Side { commit: &tip, tree: &tip_tree };
            let theirs = Side { commit: &link.sha, tree: &link.tree };
            let tree = match self.merger.pick(&before.sha, ours, theirs)? {
                Merged::Clean(tree) => tree,
                Merged::Conflict(files) => return Ok(Replayed::Conflict(files)),
            };
            // A change that main has already makes no commit; one that was meant to be empty stays.
            let meant_to_be_empty = link.tree == before.tree;
            before = link;
            if tree == tip_tree && !meant_to_be_empty {
                continue;
            }
            tip = self.merger.write(&link.moved(&tree, &[&tip]))?;
            tip_tree = tree;
        }
        Ok(Replayed::Tip { commit: tip, tree: tip_tree })
    }
}

/// A commit of the branch and who it is.
struct Link {
    sha: Sha,
    commit: Commit,
}

impl std::ops::Deref for Link {
    type Target = Commit;
    fn deref(&self) -> &Commit {
        &self.commit
    }
}

enum Replayed {
    Tip { commit: Sha, tree: Sha },
    Conflict(Vec<String>),
}

/// The message of one commit that stands for many: theirs, oldest first, merges left out if anything else is there.
fn joined_message(chain: &[Link]) -> String {
    let plain: Vec<&Link> = chain.iter().filter(|c| c.parents.len() == 1).collect();
    let told: Vec<&Link> = if plain.is_empty() { chain.iter().collect() } else { plain };
    let messages: Vec<String> =
        told.iter().map(|c| String::from_utf8_lossy(&c.message).trim_end().to_owned()).collect();
    let joined = messages.join("\n\n");
    match joined.char_indices().nth(LONGEST_MESSAGE) {
        Some((at, _)) => joined[..at].to_owned(),
        None => joined,
    }
}
