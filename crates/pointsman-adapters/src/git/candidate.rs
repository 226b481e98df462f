//! Landing candidates: the commits that are tested and then pushed as they are, built in the mirror with
//! `git merge-tree`, without a working tree. The same inputs always give the same commit.

use pointsman_core::ids::Sha;

use super::Error;
use super::commit::Commit;
use super::inspect::nul_list;
use super::mirror::Mirror;
use crate::process::End;

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
    /// Its tree.
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
    match style {
        Style::Rebase => rebase(mirror, onto, head),
        Style::Merge => merge_commit(mirror, onto, head, message),
        Style::Squash => squash(mirror, onto, head, message),
    }
}

/// Replays the branch's commits on `onto`. A branch that sits on `onto` already is its own candidate. A merge in the
/// branch is replayed as what it changed for the branch (bringing main in changes nothing on main); if that does not
/// fit, or the branch is very long, the whole branch is merged at once into one commit.
pub fn rebase(mirror: &Mirror, onto: &Sha, head: &Sha) -> Result<Candidate, Error> {
    if !something_to_land(mirror, onto, head)? {
        return Ok(Candidate::Nothing);
    }
    if mirror.is_ancestor(onto, head)? {
        return built(mirror, head.clone(), head);
    }
    let chain = first_parent_chain(mirror, onto, head)?;
    let has_merges = chain.iter().any(|c| c.parents.len() > 1);
    if chain.len() <= LONGEST_REPLAY {
        match replay(mirror, onto, &chain)? {
            Replayed::Tip(tip) if tip == *onto => return Ok(Candidate::Nothing),
            Replayed::Tip(tip) => return built(mirror, tip, head),
            Replayed::Conflict(files) if !has_merges => return Ok(Candidate::Conflict { files }),
            Replayed::Conflict(_) => {}
        }
    }
    squash(mirror, onto, head, &joined_message(&chain))
}

/// Joins the branch to `onto` with a merge commit, also where a fast-forward would do.
pub fn merge_commit(mirror: &Mirror, onto: &Sha, head: &Sha, message: &str) -> Result<Candidate, Error> {
    one_commit(mirror, onto, head, |commit, tree| {
        commit.moved(tree, &[onto, head]).by_us().with_message(message)
    })
}

/// Makes one commit on `onto` of the whole branch, by the author of its last commit.
pub fn squash(mirror: &Mirror, onto: &Sha, head: &Sha, message: &str) -> Result<Candidate, Error> {
    one_commit(mirror, onto, head, |commit, tree| commit.moved(tree, &[onto]).with_message(message))
}

fn one_commit(
    mirror: &Mirror,
    onto: &Sha,
    head: &Sha,
    make: impl FnOnce(&Commit, &Sha) -> Commit,
) -> Result<Candidate, Error> {
    if !something_to_land(mirror, onto, head)? {
        return Ok(Candidate::Nothing);
    }
    let tree = match merge_tree(mirror, None, onto, head)? {
        Merged::Clean(tree) => tree,
        Merged::Conflict(files) => return Ok(Candidate::Conflict { files }),
    };
    if tree == mirror.tree_of(onto)? {
        return Ok(Candidate::Nothing);
    }
    let commits = mirror.read_commits(std::slice::from_ref(head))?;
    let commit = commits.first().expect("as many are answered as were asked for");
    let commit = mirror.write_commit(&make(commit, &tree))?;
    Ok(Candidate::Built(Built { commit, tree, same_as_head: false }))
}

/// Checks the inputs: git's own answer to a missing commit looks like a conflict.
fn something_to_land(mirror: &Mirror, onto: &Sha, head: &Sha) -> Result<bool, Error> {
    if mirror.merge_base(onto, head)?.is_none() {
        return Err(Error::Unrelated { head: head.clone(), onto: onto.clone() });
    }
    mirror.is_ancestor(head, onto).map(|landed| !landed)
}

fn built(mirror: &Mirror, commit: Sha, head: &Sha) -> Result<Candidate, Error> {
    let tree = mirror.tree_of(&commit)?;
    Ok(Candidate::Built(Built { same_as_head: commit == *head, commit, tree }))
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

/// The branch's commits that `onto` has not, oldest first, along first parents.
fn first_parent_chain(mirror: &Mirror, onto: &Sha, head: &Sha) -> Result<Vec<Link>, Error> {
    let listed = mirror
        .call("rev-list")
        .args(["--reverse", "--first-parent", &format!("{onto}..{head}"), "--"])
        .text()?;
    let shas: Vec<Sha> = listed.lines().filter_map(Sha::new).collect();
    let commits = mirror.read_commits(&shas)?;
    Ok(shas.into_iter().zip(commits).map(|(sha, commit)| Link { sha, commit }).collect())
}

enum Replayed {
    Tip(Sha),
    Conflict(Vec<String>),
}

fn replay(mirror: &Mirror, onto: &Sha, chain: &[Link]) -> Result<Replayed, Error> {
    let mut tip = onto.clone();
    let mut tip_tree = mirror.tree_of(onto)?;
    for link in chain {
        let Some(parent) = link.parents.first() else {
            return Err(Error::Unrelated { head: link.sha.clone(), onto: onto.clone() });
        };
        let tree = match merge_tree(mirror, Some(parent), &tip, &link.sha)? {
            Merged::Clean(tree) => tree,
            Merged::Conflict(files) => return Ok(Replayed::Conflict(files)),
        };
        // A change that main has already makes no commit; one that was meant to be empty stays.
        if tree == tip_tree && link.tree != mirror.tree_of(parent)? {
            continue;
        }
        tip = mirror.write_commit(&link.moved(&tree, &[&tip]))?;
        tip_tree = tree;
    }
    Ok(Replayed::Tip(tip))
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

enum Merged {
    Clean(Sha),
    Conflict(Vec<String>),
}

/// Merges two commits that exist. Exit code 1 is a conflict only if a tree was written: a missing commit exits with 1
/// too, with nothing on its output.
fn merge_tree(mirror: &Mirror, base: Option<&Sha>, ours: &Sha, theirs: &Sha) -> Result<Merged, Error> {
    let mut call = mirror.call("merge-tree").args(["--write-tree", "-z", "--name-only", "--no-messages"]);
    if let Some(base) = base {
        call = call.arg(format!("--merge-base={base}"));
    }
    let done = call.args([ours.as_str(), theirs.as_str()]).finish()?;
    let (first, rest) = match done.stdout.iter().position(|b| *b == 0) {
        Some(nul) => (&done.stdout[..nul], &done.stdout[nul + 1..]),
        None => (&done.stdout[..], &[][..]),
    };
    let tree = std::str::from_utf8(first).ok().and_then(Sha::new);
    match (done.end, tree) {
        (End::Exited(0), Some(tree)) => Ok(Merged::Clean(tree)),
        (End::Exited(1), Some(_)) => {
            let mut files = nul_list(rest);
            files.sort();
            files.dedup();
            Ok(Merged::Conflict(files))
        }
        _ => Err(Error::Failed {
            operation: "merge-tree",
            inputs: format!("{ours} {theirs}"),
            end: done.end,
            stderr: super::error::excerpt(&done.stderr),
            retry: crate::retry::Retry::Never,
        }),
    }
}
