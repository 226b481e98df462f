//! Landing candidates: the commits that are tested and then pushed as they are, built in the mirror with
//! `git merge-tree`, without a working tree. The same inputs always give the same commit.

use pointsman_core::ids::Sha;
use pointsman_core::words::commit::{self as words, BranchCommit, Heading};

use super::commit::Commit;
use super::history::Range;
use super::merge_tree::{Merged, Merger, Pick, Side};
use super::mirror::Mirror;
use super::{Error, UnionGlobs};

/// The longest branch that is replayed commit by commit. A longer one is refused: nobody asked for one commit.
const LONGEST_REPLAY: usize = 10_000;
/// The most commits that a message is made from, the newest.
const TOLD_COMMITS: usize = 1000;
/// How many commits are replayed at a time after a guess was wrong.
const CAREFUL: usize = 8;

/// The way in which a branch becomes part of main.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Its commits are replayed on main.
    Rebase,
    /// A merge commit joins it to main.
    Merge,
    /// All of it becomes one commit on main.
    Squash,
}

/// The result of building a candidate.
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

/// A candidate that was built, ready to be tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// The commit to test and to land.
    pub commit: Sha,
    pub tree: Sha,
    /// The candidate is the branch's head itself.
    pub same_as_head: bool,
}

/// A branch that shall land, and how.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    pub style: Style,
    pub onto: &'a Sha,
    pub head: &'a Sha,
    /// What a commit of our own says it is about.
    pub heading: &'a Heading,
    /// When the branch entered the merge queue. What we commit carries this time, or that of `onto` if it is later: so
    /// the same inputs give the same commit, and main's dates do not run backwards.
    pub queued_at_secs: i64,
}

/// Builds a candidate.
///
/// * **Rebase** replays the branch's commits. A branch that sits on `onto` already is its own candidate. A merge in the
///   branch is replayed as what it changed for the branch (bringing main in changes nothing on main); if that does not
///   fit, the whole branch is merged at once into one commit. Unlike `git rebase` it never leaves out a commit because
///   main had the same patch once: what main has makes no commit, what main has taken back since comes again.
/// * **Merge** joins the branch to `onto` with a merge commit, also where a fast-forward would do, and also if the branch
///   changes no file: whoever merges with `-s ours` wants the history on main.
/// * **Squash** makes one commit of the whole branch, by the author of its last commit.
pub fn build(mirror: &Mirror, union: &UnionGlobs, order: &Order<'_>) -> Result<Candidate, Error> {
    let Order { style, onto, head, heading, queued_at_secs } = *order;
    let built = Merger::new(mirror, union, onto).and_then(|merger| {
        let site = CandidateBuilder { mirror, merger, onto, head, heading, queued_at_secs };
        match style {
            Style::Rebase => site.rebase(),
            Style::Merge => site.merge_commit(),
            Style::Squash => site.squash(),
        }
    });
    built.map_err(|error| explained(mirror, onto, std::slice::from_ref(head), error))
}

/// Builds a commit on `main` that takes back what lies between two commits of its history, `before` and `landed`.
pub fn build_revert(
    mirror: &Mirror,
    union: &UnionGlobs,
    main: &Sha,
    (before, landed): (&Sha, &Sha),
    message: &str,
    seconds: i64,
) -> Result<Candidate, Error> {
    let reverted = || -> Result<Candidate, Error> {
        let merger = Merger::new(mirror, union, main)?;
        let commits = mirror.read_commits(&[main.clone(), before.clone()])?;
        let ours = Side { commit: main, tree: &commits[0].tree };
        let theirs = Side { commit: before, tree: &commits[1].tree };
        let tree = match merger.pick(landed, ours, theirs)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(files) => return Ok(Candidate::Conflict { files }),
        };
        if tree == commits[0].tree {
            return Ok(Candidate::Nothing);
        }
        let seconds = commits[0].seconds().max(seconds);
        let commit = merger.write(&Commit::ours(&tree, main, seconds, message))?;
        merger.keep()?;
        Ok(Candidate::Built(Built { same_as_head: false, commit, tree }))
    };
    reverted().map_err(|error| explained(mirror, main, &[before.clone(), landed.clone()], error))
}

/// Checks each of the heads alone against `main`: none for a head that merges cleanly, else the files in conflict.
/// One process checks them all, and nothing is written to the mirror.
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

/// The tree of merging `head` into `base`; none if they conflict or share no history. Nothing is written to the mirror.
pub fn merged_tree(mirror: &Mirror, base: &Sha, head: &Sha) -> Result<Option<Sha>, Error> {
    let merged = Merger::new(mirror, &UnionGlobs::none(), base)
        .and_then(|merger| merger.merge(base, head))
        .map_err(|error| explained(mirror, base, std::slice::from_ref(head), error));
    match merged {
        Ok(Merged::Clean(tree)) => Ok(Some(tree)),
        Ok(Merged::Conflict(_)) | Err(Error::Unrelated { .. }) => Ok(None),
        Err(error) => Err(error),
    }
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
struct CandidateBuilder<'a> {
    mirror: &'a Mirror,
    merger: Merger<'a>,
    onto: &'a Sha,
    head: &'a Sha,
    heading: &'a Heading,
    queued_at_secs: i64,
}

impl CandidateBuilder<'_> {
    fn rebase(&self) -> Result<Candidate, Error> {
        let Range { shas, parent } = self.mirror.first_parent_range(self.onto, self.head)?;
        if shas.is_empty() {
            return Ok(Candidate::Nothing);
        }
        // Without a parent it began as another history and took main in later.
        let Some(parent) = parent else { return self.squash() };
        // Not merely an ancestor: main must stay on the line of first parents, or its history would be rewritten.
        if parent == *self.onto {
            let tree = self.mirror.tree_of(self.head)?;
            return Ok(Candidate::Built(Built { commit: self.head.clone(), tree, same_as_head: true }));
        }
        if shas.len() > LONGEST_REPLAY {
            return Err(Error::TooLong { commits: shas.len(), most: LONGEST_REPLAY });
        }
        let ends = [self.onto.clone(), parent];
        let mut links = self.links(&[&ends[..], &shas].concat())?;
        let chain = links.split_off(ends.len());
        let has_merges = chain.iter().any(|c| c.parents.len() > 1);
        let replayed = match self.merger.picks_many() {
            true => self.replay(&links[0], &links[1], &chain)?,
            false => self.replay_one_by_one(&links[0], &links[1], &chain)?,
        };
        match replayed {
            Replayed::Tip { commit, .. } if commit == *self.onto => Ok(Candidate::Nothing),
            Replayed::Tip { commit, tree } => self.built(commit, tree),
            Replayed::Conflict(files) if !has_merges => Ok(Candidate::Conflict { files }),
            Replayed::Conflict(_) => self.squash(),
        }
    }

    fn merge_commit(&self) -> Result<Candidate, Error> {
        if self.mirror.is_ancestor(self.head, self.onto)? {
            return Ok(Candidate::Nothing);
        }
        let message = words::merge(self.heading, &self.branch_commits()?);
        self.one_commit(|onto, head, tree| {
            let joined = head.moved(tree, &[self.onto, self.head], self.seconds(onto));
            Some(joined.by_us().with_message(&message))
        })
    }

    fn squash(&self) -> Result<Candidate, Error> {
        let commits = self.branch_commits()?;
        self.one_commit(|onto, head, tree| {
            // So it is too if all of the branch is in main's history.
            let changes_something = *tree != onto.tree;
            changes_something.then(|| {
                let message = words::squash(self.heading, &head.author(), &commits);
                head.moved(tree, &[self.onto], self.seconds(onto)).with_message(&message)
            })
        })
    }

    /// Merges and makes a commit from main, the head and the merged tree; nothing if there is none to make.
    fn one_commit(
        &self,
        make: impl FnOnce(&Commit, &Commit, &Sha) -> Option<Commit>,
    ) -> Result<Candidate, Error> {
        let commits = self.mirror.read_commits(&[self.onto.clone(), self.head.clone()])?;
        let tree = match self.merger.merge(self.onto, self.head)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(files) => return Ok(Candidate::Conflict { files }),
        };
        let Some(commit) = make(&commits[0], &commits[1], &tree) else { return Ok(Candidate::Nothing) };
        let commit = self.merger.write(&commit)?;
        self.built(commit, tree)
    }

    /// When a commit of ours on top of `onto` is made.
    fn seconds(&self, onto: &Commit) -> i64 {
        onto.seconds().max(self.queued_at_secs)
    }

    /// What the branch's own commits say, oldest first; merges only if nothing else is there.
    fn branch_commits(&self) -> Result<Vec<BranchCommit>, Error> {
        let mut shas = self.mirror.commits_between(self.onto, self.head, TOLD_COMMITS)?;
        if shas.is_empty() {
            shas.push(self.head.clone());
        }
        let commits = self.mirror.read_commits(&shas)?;
        Ok(commits.iter().map(|c| BranchCommit { author: c.author(), message: c.text() }).collect())
    }

    fn built(&self, commit: Sha, tree: Sha) -> Result<Candidate, Error> {
        self.merger.keep()?;
        Ok(Candidate::Built(Built { same_as_head: commit == *self.head, commit, tree }))
    }

    fn links(&self, shas: &[Sha]) -> Result<Vec<SourceCommit>, Error> {
        let commits = self.mirror.read_commits(shas)?;
        Ok(shas.iter().cloned().zip(commits).map(|(sha, commit)| SourceCommit { sha, commit }).collect())
    }

    /// Puts the commits of `chain`, which sits on `parent`, on `onto`.
    fn replay(
        &self,
        onto: &SourceCommit,
        parent: &SourceCommit,
        chain: &[SourceCommit],
    ) -> Result<Replayed, Error> {
        let trees = match self.replay_trees(onto, parent, chain)? {
            Trees::All(trees) => trees,
            Trees::Conflict(files) => return Ok(Replayed::Conflict(files)),
        };
        let seconds = self.seconds(onto);
        let (mut tip, mut tip_tree) = (onto.sha.clone(), onto.tree.clone());
        let mut made = Vec::new();
        for ((link, before), tree) in chain.iter().zip(std::iter::once(parent).chain(chain)).zip(trees) {
            if !makes_a_commit(link, before, &tree, &tip_tree) {
                continue;
            }
            let commit = link.moved(&tree, &[&tip], seconds);
            tip = commit.id();
            tip_tree = tree;
            made.push((tip.clone(), commit));
        }
        if !made.is_empty() {
            self.merger.write_each(&made)?;
        }
        Ok(Replayed::Tip { commit: tip, tree: tip_tree })
    }

    /// The tree after each commit of the chain. Each depends on the one before, and a process for each would take
    /// seconds for a long branch. So all of them are guessed at once, as if the commits up to each were one change, and
    /// then each step is made from the guess before it: if it comes to the guess after it, both are right. The first
    /// step needs no guess. What follows a wrong guess is done anew, with fewer at a time.
    fn replay_trees(
        &self,
        onto: &SourceCommit,
        parent: &SourceCommit,
        chain: &[SourceCommit],
    ) -> Result<Trees, Error> {
        let mut trees: Vec<Sha> = Vec::with_capacity(chain.len());
        let mut at_a_time = chain.len();
        while trees.len() < chain.len() {
            let done = trees.len();
            let before = done.checked_sub(1).map_or(parent, |last| &chain[last]);
            let ours = trees.last().unwrap_or(&onto.tree).clone();
            let rest = &chain[done..chain.len().min(done + at_a_time)];
            let picks: Vec<Pick<'_>> =
                rest.iter().map(|link| Pick { base: &before.sha, ours: &ours, theirs: &link.sha }).collect();
            let guesses: Vec<Sha> =
                self.merger.pick_each(&picks)?.into_iter().map_while(|tree| tree).collect();
            if guesses.is_empty() {
                let ours = Side { commit: &ours, tree: &ours };
                let theirs = Side { commit: &rest[0].sha, tree: &rest[0].tree };
                match self.merger.pick(&before.sha, ours, theirs)? {
                    Merged::Clean(tree) => trees.push(tree),
                    Merged::Conflict(files) => return Ok(Trees::Conflict(files)),
                }
                continue;
            }
            let steps: Vec<Pick<'_>> = (1..guesses.len())
                .map(|at| Pick { base: &rest[at - 1].sha, ours: &guesses[at - 1], theirs: &rest[at].sha })
                .collect();
            let made = self.merger.pick_each(&steps)?;
            trees.push(guesses[0].clone());
            for (guess, tree) in guesses[1..].iter().zip(made.into_iter().map_while(|tree| tree)) {
                let is_right = tree == *guess;
                trees.push(tree);
                if !is_right {
                    break;
                }
            }
            let all_were_right = trees.len() == done + rest.len();
            at_a_time = if all_were_right { at_a_time.saturating_mul(4) } else { CAREFUL };
        }
        Ok(Trees::All(trees))
    }

    /// The same with a git that merges commits only: each must be there before the next.
    fn replay_one_by_one(
        &self,
        onto: &SourceCommit,
        parent: &SourceCommit,
        chain: &[SourceCommit],
    ) -> Result<Replayed, Error> {
        let seconds = self.seconds(onto);
        let (mut tip, mut tip_tree) = (onto.sha.clone(), onto.tree.clone());
        let mut before = parent;
        for link in chain {
            let ours = Side { commit: &tip, tree: &tip_tree };
            let theirs = Side { commit: &link.sha, tree: &link.tree };
            let tree = match self.merger.pick(&before.sha, ours, theirs)? {
                Merged::Clean(tree) => tree,
                Merged::Conflict(files) => return Ok(Replayed::Conflict(files)),
            };
            if makes_a_commit(link, before, &tree, &tip_tree) {
                tip = self.merger.write(&link.moved(&tree, &[&tip], seconds))?;
                tip_tree = tree;
            }
            before = link;
        }
        Ok(Replayed::Tip { commit: tip, tree: tip_tree })
    }
}

/// A change that main has already makes no commit; one that was meant to be empty stays.
fn makes_a_commit(link: &SourceCommit, before: &SourceCommit, tree: &Sha, tip_tree: &Sha) -> bool {
    tree != tip_tree || link.tree == before.tree
}

enum Trees {
    All(Vec<Sha>),
    Conflict(Vec<String>),
}

/// A commit of the branch and who it is.
struct SourceCommit {
    sha: Sha,
    commit: Commit,
}

impl std::ops::Deref for SourceCommit {
    type Target = Commit;
    fn deref(&self) -> &Commit {
        &self.commit
    }
}

enum Replayed {
    Tip { commit: Sha, tree: Sha },
    Conflict(Vec<String>),
}
