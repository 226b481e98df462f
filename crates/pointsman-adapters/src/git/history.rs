//! The history of main, read back: which commits it is made of, and whose they are. Which of them should not be there
//! is decided elsewhere.

use std::collections::BTreeSet;

use pointsman_core::ids::Sha;
use pointsman_core::text::clean_line;

use super::Error;
use super::inspect::shown;
use super::mirror::Mirror;

/// The most commits that one walk reads.
const WALK_LIMIT: usize = 10_000;
/// The most commits that take others back that one look reads.
const REVERTS: usize = 200;
/// The longest name, address or subject that is shown.
const LINE: usize = 200;
/// The fields of a commit, NUL between them; a message is never asked for, a subject has no line break.
const FORMAT: &str = "--format=tformat:%H%x00%P%x00%an%x00%ae%x00%cn%x00%ce%x00%s";
const FIELDS: usize = 7;

/// The age of a file's last change, in commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Commits since; all of them if it never was there.
    pub commits: u64,
    pub is_there: bool,
}

impl Mirror {
    /// The number of commits up to `head` since a file was last written, changed or removed.
    pub fn touched(&self, head: &Sha, path: &str) -> Result<Touched, Error> {
        let call = |operation| self.call(operation);
        let last = call("rev-list").args(["--max-count=1", head.as_str(), "--", path]).text()?;
        let commits = match Sha::new(&last) {
            Some(last) => self.ahead(&last, head)?,
            None => {
                let text = call("rev-list").args(["--count", head.as_str(), "--"]).text()?;
                text.parse().map_err(|_| Error::Unexpected {
                    operation: "rev-list",
                    inputs: text,
                    what: "no number",
                })?
            }
        };
        let listed =
            call("ls-tree").args(["--name-only", "--full-tree", head.as_str(), "--", path]).text()?;
        Ok(Touched { commits, is_there: !listed.is_empty() })
    }
}

/// A person or program on a commit, cleaned for display. Anybody can write anything there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    pub name: String,
    pub email: String,
}

/// A commit of main.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MainCommit {
    pub sha: Sha,
    /// Its parents; the first one is where main was before.
    pub parents: Vec<Sha>,
    /// Who wrote it, as it says.
    pub author: Signature,
    /// Who made the commit, as it says.
    pub committer: Signature,
    /// The first line of its message, cleaned for display.
    pub subject: String,
}

/// The development of main since it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MainChange {
    /// Main moved forward, or not at all.
    Forward {
        /// Its new commits along first parents, oldest first.
        commits: Vec<MainCommit>,
        /// The next ones could not be read in one go: walk again from the last commit of these.
        cut: bool,
    },
    /// Where it was is not in its history along first parents any more: it was rewound, replaced, or moved to a
    /// history that has the old main on a side.
    Rewritten {
        /// The last commit along first parents that both have, if any.
        common: Option<Sha>,
        /// What is on main beyond that, along first parents, oldest first; the newest of them if it is cut.
        commits: Vec<MainCommit>,
        /// There were too many to list all.
        cut: bool,
    },
}

/// The commits of main in `(after, upto]`, along first parents.
pub fn first_parents(mirror: &Mirror, after: &Sha, upto: &Sha) -> Result<MainChange, Error> {
    first_parents_limited(mirror, after, upto, WALK_LIMIT)
}

pub(super) fn first_parents_limited(
    mirror: &Mirror,
    after: &Sha,
    upto: &Sha,
    limit: usize,
) -> Result<MainChange, Error> {
    // The cheap part first: ids only, so that the oldest of very many can be picked.
    let Range { shas, parent } = mirror.first_parent_range(after, upto)?;
    // Nothing new means that main is `after` or some ancestor of it.
    let forward = if shas.is_empty() { after == upto } else { parent.as_ref() == Some(after) };
    let cut = shas.len() > limit;
    if forward {
        let commits = read(mirror, &shas[..shas.len().min(limit)])?;
        return Ok(MainChange::Forward { commits, cut });
    }
    let common = if shas.is_empty() { Some(upto.clone()) } else { parent };
    let commits = read(mirror, &shas[shas.len().saturating_sub(limit)..])?;
    Ok(MainChange::Rewritten { common, commits, cut })
}

/// The commits that a landing put on main: those of `candidate` along first parents that `base` has not. With the
/// landings of the ledger it tells which commits of a [`MainChange`] came through the queue.
pub fn landed_commits(mirror: &Mirror, base: &Sha, candidate: &Sha) -> Result<BTreeSet<Sha>, Error> {
    Ok(mirror.first_parent_range(base, candidate)?.shas.into_iter().collect())
}

/// Every commit that `upto` has and `after` has not, along all parents, oldest first. An error if there are too many to
/// judge.
pub fn introduced(mirror: &Mirror, after: &Sha, upto: &Sha) -> Result<Vec<MainCommit>, Error> {
    let listed = mirror
        .call("rev-list")
        .args(["--topo-order", "--reverse", "--end-of-options"])
        .args([format!("^{after}^{{commit}}"), format!("{upto}^{{commit}}")])
        .text();
    let text = listed.map_err(|error| mirror.explain_failure(error, &[after, upto]))?;
    let shas: Vec<Sha> = text.lines().filter_map(Sha::new).collect();
    if shas.len() > WALK_LIMIT {
        let inputs = format!("{after}..{upto}");
        return Err(Error::Unexpected {
            operation: "rev-list",
            inputs,
            what: "more commits than can be judged",
        });
    }
    read(mirror, &shas)
}

/// The commits of main in `(after, upto]` that say that they take another one back, with their messages; the newest of
/// very many.
pub fn reverting(mirror: &Mirror, after: &Sha, upto: &Sha) -> Result<Vec<(Sha, String)>, Error> {
    let listed = mirror
        .call("log")
        .args(["-z", "--no-show-signature", "--no-color", "--no-mailmap", "--no-notes", "--no-patch"])
        .args(["--encoding=UTF-8", "--fixed-strings", "--grep=This reverts commit "])
        .args([format!("--max-count={REVERTS}"), "--format=tformat:%H%n%B".to_owned()])
        .args(["--end-of-options".to_owned(), format!("^{after}^{{commit}}"), format!("{upto}^{{commit}}")])
        .text();
    let text = listed.map_err(|error| mirror.explain_failure(error, &[after, upto]))?;
    let commits = text.split('\0').filter_map(|commit| commit.split_once('\n'));
    Ok(commits.filter_map(|(sha, message)| Some((Sha::new(sha)?, message.to_owned()))).collect())
}

/// A commit that touched some paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TouchingCommit {
    pub sha: Sha,
    /// The address of its author.
    pub author: String,
    pub message: String,
}

/// The last commits up to `upto` that touched one of these paths, newest first; `most` of them. Merges are left out: what they
/// bring in is there by itself.
pub fn touching(
    mirror: &Mirror,
    upto: &Sha,
    paths: &[String],
    most: usize,
) -> Result<Vec<TouchingCommit>, Error> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let listed = mirror
        .call("log")
        .args(["-z", "--no-show-signature", "--no-color", "--no-mailmap", "--no-notes", "--no-patch"])
        .args(["--encoding=UTF-8", "--no-merges", "--no-renames", "--format=tformat:%H%n%ae%n%B"])
        .arg(format!("--max-count={most}"))
        .args([upto.as_str(), "--"])
        .args(paths)
        .text();
    let text = listed.map_err(|error| mirror.explain_failure(error, &[upto]))?;
    let commit = |told: &str| {
        let (sha, rest) = told.trim_start_matches('\n').split_once('\n')?;
        let (author, message) = rest.split_once('\n')?;
        Some(TouchingCommit { sha: Sha::new(sha)?, author: author.to_owned(), message: message.to_owned() })
    };
    Ok(text.split('\0').filter_map(commit).collect())
}

/// Commits along first parents, oldest first.
pub(super) struct Range {
    pub(super) shas: Vec<Sha>,
    /// The first parent of the oldest, if there is an oldest and it has one.
    pub(super) parent: Option<Sha>,
}

impl Mirror {
    /// The commits in `after..upto` that are no merges, oldest first; the newest of very many.
    pub(super) fn commits_between(&self, after: &Sha, upto: &Sha, most: usize) -> Result<Vec<Sha>, Error> {
        let listed = self
            .call("rev-list")
            .args(["--topo-order", "--reverse", "--no-merges"])
            .args([format!("--max-count={most}"), "--end-of-options".to_owned()])
            .args([format!("^{after}^{{commit}}"), format!("{upto}^{{commit}}")])
            .text();
        let text = listed.map_err(|error| self.explain_failure(error, &[after, upto]))?;
        Ok(text.lines().filter_map(Sha::new).collect())
    }

    /// What is in `after..upto` along first parents.
    pub(super) fn first_parent_range(&self, after: &Sha, upto: &Sha) -> Result<Range, Error> {
        // Said to be commits: a tree in their place would be an empty answer.
        let listed = self
            .call("rev-list")
            .args(["--first-parent", "--parents", "--reverse", "--end-of-options"])
            .args([format!("^{after}^{{commit}}"), format!("{upto}^{{commit}}")])
            .text();
        let text = listed.map_err(|error| self.explain_failure(error, &[after, upto]))?;
        let oldest = text.lines().next().unwrap_or_default();
        Ok(Range {
            parent: oldest.split(' ').nth(1).and_then(Sha::new),
            shas: text.lines().filter_map(|line| Sha::new(line.split(' ').next()?)).collect(),
        })
    }
}

fn read(mirror: &Mirror, shas: &[Sha]) -> Result<Vec<MainCommit>, Error> {
    if shas.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = shas.iter().map(|sha| format!("{sha}\n")).collect();
    let listed = mirror
        .call("log")
        .args(["--no-walk=unsorted", "--stdin", "-z", "--no-show-signature", "--no-color", "--no-mailmap"])
        .args(["--no-notes", "--no-patch", "--encoding=UTF-8", FORMAT])
        .stdin(input)
        .bytes()?;
    let fields: Vec<&[u8]> = listed.strip_suffix(b"\0").unwrap_or(&listed).split(|b| *b == 0).collect();
    let commits: Option<Vec<MainCommit>> = fields.chunks(FIELDS).map(commit).collect();
    match commits {
        Some(commits) if commits.iter().map(|c| &c.sha).eq(shas) => Ok(commits),
        Some(_) | None => Err(Error::Unexpected {
            operation: "log",
            inputs: format!("{} commits", shas.len()),
            what: "other commits than were asked for",
        }),
    }
}

fn commit(fields: &[&[u8]]) -> Option<MainCommit> {
    let [sha, parents, author, author_email, committer, committer_email, subject] = fields else {
        return None;
    };
    let line = |bytes: &[u8]| clean_line(&shown(bytes), LINE);
    Some(MainCommit {
        sha: Sha::new(std::str::from_utf8(sha).ok()?)?,
        parents: std::str::from_utf8(parents)
            .ok()?
            .split_whitespace()
            .map(Sha::new)
            .collect::<Option<_>>()?,
        author: Signature { name: line(author), email: line(author_email) },
        committer: Signature { name: line(committer), email: line(committer_email) },
        subject: line(subject),
    })
}
