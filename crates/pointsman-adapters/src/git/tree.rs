//! The working tree of a session.
//!
//! The default is a private clone that borrows the mirror's objects: its configuration and hooks are the agent's own
//! affair and reach nobody else. A linked `git worktree` shares both with the mirror, so what an agent writes there
//! would be run by the daemon's git: **it is no boundary**, and is for those who trust their agents and want the
//! literal thing.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;

use super::beside::{self, Setting};
use super::gateway::Gateway;
use super::layers::WarmTree;
use super::mirror::{Mirror, RefUpdate};
use super::private_clone::{Content, build};
use super::push::Expect;
use super::{BranchName, Error, RefName, files};

/// In a tree's git directory: the branch it was made for. Written last, so a tree without it was never finished.
const MARKER: &str = "pointsman-tree";
/// It is one line of a name.
const MARKER_CAP: u64 = 1024;

/// The tree to make.
#[derive(Clone, Debug)]
pub struct TreeSpec<'a> {
    pub dir: PathBuf,
    pub mirror: &'a Mirror,
    /// Its `origin`.
    pub gateway: &'a Gateway,
    /// The task's branch, which is checked out.
    pub branch: BranchName,
    /// The project's primary branch, seen as `origin/<primary>`.
    pub primary: BranchName,
    /// Where the primary branch is, and where the task's branch starts if it is new.
    pub base: Sha,
    /// The agent's name on its commits.
    pub user_name: String,
    /// The agent's address on its commits.
    pub user_email: String,
    /// Paths that are ours and no part of the work.
    pub exclude: Vec<String>,
    /// A linked worktree of the mirror instead of a private clone.
    pub linked: bool,
    pub start: TreeStart,
    /// A warm tree that may be used up for a private clone, so that only files that differ are written.
    pub spare: Option<WarmTree>,
}

/// The commit that a new tree begins at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeStart {
    /// Where the gateway has the branch, else where the forge has it, else the base.
    Work,
    /// The base, whatever there was before.
    Base,
}

/// A session's working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    pub dir: PathBuf,
    /// It was there already and is as it was left.
    pub reused: bool,
}

impl Tree {
    /// Makes the tree, or reuses, untouched, the one that is there for that branch, whatever the agent has in it.
    /// Anything else in its place is moved to `quarantine/` beside it.
    ///
    /// The branch starts where the gateway has it, else where the forge has it, else at `base`.
    pub fn create(spec: &TreeSpec<'_>) -> Result<Self, Error> {
        let Some(place) = TreePaths::for_new(spec)? else { return Self::reused(spec) };
        let start = starting_point(spec)?;
        if spec.linked {
            make_linked(spec, &place.dir, &start.at)?;
        } else {
            make_private(spec, &place.building, &start, None)?;
            files::move_into_place(&place.building, &place.dir)?;
        }
        Ok(Self { dir: place.dir, reused: false })
    }

    fn reused(spec: &TreeSpec<'_>) -> Result<Self, Error> {
        Ok(Self { dir: files::absolute(&spec.dir)?, reused: true })
    }

    /// Moves a tree that is no longer needed to `quarantine/` beside it and answers where it is now. Trees are never
    /// deleted by us; capture first.
    pub fn set_aside(dir: &Path) -> Result<PathBuf, Error> {
        files::set_aside(dir)
    }

    /// The trees that were set aside from this place.
    pub fn set_aside_from(dir: &Path) -> Result<Vec<PathBuf>, Error> {
        files::set_aside_from(dir)
    }
}

/// Makes the tree of a task anew from a checkpoint (see [`checkpoint`](super::checkpoint)), if it is gone: the task's
/// branch is where the agent had it, unpushed commits included, and what was not committed is not committed again. A
/// tree that is there is reused, untouched.
///
/// What the agent pushed after the checkpoint is `origin/<branch>`. The branch of a linked tree is in the mirror and
/// cannot be behind: if it has moved on since the checkpoint, the tree is made from the branch alone.
///
/// `captures` is the repository that keeps the checkpoint. The tree gets a copy of what it needs of it.
pub fn rebuild_from(spec: &TreeSpec<'_>, captures: &Mirror, checkpoint: &Sha) -> Result<Tree, Error> {
    captures.require_commit(checkpoint)?;
    let Some(place) = TreePaths::for_new(spec)? else { return Tree::reused(spec) };
    let mut start = starting_point(spec)?;
    // Without a parent the agent's repository was unreadable, and its files are all there is.
    if let Some(parent) = captures.parent_of(checkpoint)? {
        start.at = parent;
    }
    if spec.linked {
        captures.lend(spec.mirror.call("fetch"), checkpoint.as_str())?;
        make_linked(spec, &place.dir, &start.at)?;
        if spec.mirror.read_ref(&spec.branch.full())?.as_ref() == Some(&start.at) {
            put_files(spec, &place.dir, checkpoint)?;
        } else {
            tracing::warn!(%checkpoint, branch = %spec.branch, "the branch has moved on since the checkpoint");
        }
    } else {
        make_private(spec, &place.building, &start, Some((captures, checkpoint)))?;
        put_files(spec, &place.building, checkpoint)?;
        files::move_into_place(&place.building, &place.dir)?;
    }
    Ok(Tree { dir: place.dir, reused: false })
}

/// Replaces the files of a tree that was just made with those of a commit. Its index stays HEAD's.
fn put_files(spec: &TreeSpec<'_>, dir: &Path, commit: &Sha) -> Result<(), Error> {
    let git_dir = git_dir_of(dir)?
        .ok_or_else(|| Error::NotOurs { path: dir.to_owned(), expected: "a working tree" })?;
    let call = |operation| spec.mirror.git.call(operation).git_dir(&git_dir).work_tree(dir);
    call("read-tree").args(["--reset", "-u", commit.as_str()]).ok()?;
    call("reset").args(["--quiet", "--mixed"]).ok()
}

/// Where a tree will be, with nothing in the way.
struct TreePaths {
    dir: PathBuf,
    /// Where it is put together.
    building: PathBuf,
}

impl TreePaths {
    /// Nothing if the tree is there already.
    fn for_new(spec: &TreeSpec<'_>) -> Result<Option<Self>, Error> {
        let dir = files::absolute(&spec.dir)?;
        if is_tree_for(&dir, &spec.branch)? {
            return Ok(None);
        }
        let building = files::with_suffix(&dir, ".tmp-tree");
        for in_the_way in [&dir, &building] {
            if in_the_way.symlink_metadata().is_ok() {
                let place = files::set_aside(in_the_way)?;
                tracing::warn!(tree = %in_the_way.display(), now = %place.display(), "set an unfinished tree aside");
            }
        }
        Ok(Some(Self { dir, building }))
    }
}

/// Where a tree's branch begins.
struct Start {
    at: Sha,
    /// Where the gateway has the branch.
    pushed: Option<Sha>,
}

fn is_tree_for(dir: &Path, branch: &BranchName) -> Result<bool, Error> {
    let Some(git_dir) = git_dir_of(dir)? else { return Ok(false) };
    let marker = files::read_untrusted(&git_dir.join(MARKER), MARKER_CAP).unwrap_or_default();
    Ok(git_dir.join("HEAD").is_file() && marker.is_some_and(|m| m == format!("{branch}\n").as_bytes()))
}

/// A private clone has a directory `.git`, a linked tree a file that names one.
fn git_dir_of(dir: &Path) -> Result<Option<PathBuf>, Error> {
    let dot_git = dir.join(".git");
    match fs::symlink_metadata(&dot_git) {
        Ok(meta) if meta.is_dir() => Ok(Some(dot_git)),
        Ok(meta) if meta.is_file() => {
            let text = files::read_untrusted(&dot_git, MARKER_CAP * 8)?.unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            Ok(text.trim_end_matches('\n').strip_prefix("gitdir: ").map(PathBuf::from))
        }
        Ok(_) | Err(_) => Ok(None),
    }
}

fn starting_point(spec: &TreeSpec<'_>) -> Result<Start, Error> {
    if spec.start == TreeStart::Work && spec.gateway.head()?.is_some() {
        let to = RefName::new(&format!("refs/pointsman/gateway/{}", spec.branch))
            .ok_or(Error::NotOurs { path: spec.dir.clone(), expected: "for a branch with a shorter name" })?;
        if let Some(pushed) = spec.gateway.fetch_into(spec.mirror, &to)? {
            return Ok(Start { at: pushed.clone(), pushed: Some(pushed) });
        }
    }
    let at_forge = match spec.start {
        TreeStart::Work => spec.mirror.remote_head(&spec.branch)?,
        TreeStart::Base => None,
    };
    let start = at_forge.unwrap_or_else(|| spec.base.clone());
    spec.mirror.require_commit(&start)?;
    Ok(Start { at: start, pushed: None })
}

fn make_private(
    spec: &TreeSpec<'_>,
    building: &Path,
    start: &Start,
    copied: Option<(&Mirror, &Sha)>,
) -> Result<(), Error> {
    let mut refs = vec![(spec.primary.tracking(), spec.base.clone())];
    if let Some(pushed) = &start.pushed
        && spec.primary != spec.branch
    {
        refs.push((spec.branch.tracking(), pushed.clone()));
    }
    build(
        spec.mirror,
        building,
        &Content {
            at: &start.at,
            branch: &spec.branch,
            refs,
            config: private_config(spec)?,
            exclude: &spec.exclude,
            copied,
            spare: spec.spare.as_ref(),
        },
    )?;
    let git_dir = building.join(".git");
    let origin_head = git_dir.join("refs/remotes/origin/HEAD");
    files::write_atomic(&origin_head, format!("ref: {}\n", spec.primary.tracking()).as_bytes(), 0o644)?;
    write_marker(&git_dir, &spec.branch)
}

fn write_marker(git_dir: &Path, branch: &BranchName) -> Result<(), Error> {
    files::write_atomic(&git_dir.join(MARKER), format!("{branch}\n").as_bytes(), 0o644)
}

/// What a tree's configuration says, as (section, key, value).
fn settings(spec: &TreeSpec<'_>) -> Result<Vec<Setting>, Error> {
    let own = [
        ("remote.origin", "url", spec.gateway.dir().as_os_str().as_bytes().to_vec()),
        ("remote.origin", "fetch", b"+refs/heads/*:refs/remotes/origin/*".to_vec()),
        ("push", "default", b"current".to_vec()),
        ("user", "name", spec.user_name.clone().into_bytes()),
        ("user", "email", spec.user_email.clone().into_bytes()),
        // Nobody is there to unlock the operator's key.
        ("commit", "gpgSign", b"false".to_vec()),
        ("tag", "gpgSign", b"false".to_vec()),
        // What a rebase or a reset leaves behind stays until the tree goes.
        ("gc", "auto", b"0".to_vec()),
    ];
    let own = own.into_iter().map(|(section, key, value)| (section.to_owned(), key, value));
    Ok(own.chain(beside::settings(spec.mirror, &spec.base)?).collect())
}

fn private_config(spec: &TreeSpec<'_>) -> Result<Vec<u8>, Error> {
    let mut config = Vec::new();
    for (section, key, value) in settings(spec)? {
        let header = match section.split_once('.') {
            Some((section, sub)) => format!("[{section} \"{sub}\"]\n\t{key} = "),
            None => format!("[{section}]\n\t{key} = "),
        };
        config.extend(header.into_bytes());
        config.extend(files::config_value(&value));
        config.push(b'\n');
    }
    Ok(config)
}

/// `git worktree add` writes absolute paths, so it is made in its place; the marker at the end says it is whole.
fn make_linked(spec: &TreeSpec<'_>, dir: &Path, start: &Sha) -> Result<(), Error> {
    let mirror = spec.mirror;
    allow_worktree_settings(mirror)?;
    // The branch may be there from an earlier tree: then it is where the work was left.
    match mirror.update_ref(&spec.branch.full(), start, &Expect::Absent)? {
        RefUpdate::Done | RefUpdate::Stale { .. } => {}
    }
    mirror
        .call("worktree")
        // An earlier tree of the branch that was set aside still counts as using it.
        .args(["add", "--force", "--quiet", "--"])
        .arg(dir)
        .arg(spec.branch.as_str())
        .ok()?;
    let git_dir = git_dir_of(dir)?
        .ok_or_else(|| Error::NotOurs { path: dir.to_owned(), expected: "a linked working tree" })?;
    for (section, key, value) in settings(spec)? {
        mirror
            .git
            .call("config")
            .git_dir(&git_dir)
            .args(["--worktree", &format!("{section}.{key}")])
            .arg(std::ffi::OsStr::from_bytes(&value))
            .ok()?;
    }
    append_excludes(mirror, &spec.exclude)?;
    write_marker(&git_dir, &spec.branch)
}

/// Gives every worktree settings of its own. `core.bare` has to move out of the way first: as a common setting it
/// would make every linked tree bare.
fn allow_worktree_settings(mirror: &Mirror) -> Result<(), Error> {
    if mirror.call("config").args(["--get", "extensions.worktreeConfig"]).yes()? {
        return Ok(());
    }
    files::write_atomic(&mirror.dir().join("config.worktree"), b"[core]\n\tbare = true\n", 0o644)?;
    mirror.call("config").args(["extensions.worktreeConfig", "true"]).ok()?;
    mirror.call("config").args(["--unset", "core.bare"]).ok()
}

/// Linked trees share one exclude file, the mirror's.
fn append_excludes(mirror: &Mirror, lines: &[String]) -> Result<(), Error> {
    let file = mirror.dir().join("info/exclude");
    let mut text = files::read_untrusted(&file, 1 << 20)?.unwrap_or_default();
    for line in lines {
        if !text.split(|b| *b == b'\n').any(|l| l == line.as_bytes()) {
            text.extend(line.as_bytes());
            text.push(b'\n');
        }
    }
    files::write_atomic(&file, &text, 0o644)
}
