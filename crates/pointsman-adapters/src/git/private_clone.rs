//! A repository of its own with a working tree, which borrows the mirror's objects: what [`super::tree`]
//! is made of. No hook, template or setting of anybody comes with it.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use pointsman_core::ids::Sha;

use super::layers::WarmTree;
use super::mirror::Mirror;
use super::{BranchName, Error, RefName, files};

/// What goes into a new repository.
pub(super) struct Content<'a> {
    pub(super) at: &'a Sha,
    pub(super) branch: &'a BranchName,
    pub(super) refs: Vec<(RefName, Sha)>,
    /// Lines added to its configuration.
    pub(super) config: Vec<u8>,
    /// Lines of its `info/exclude`.
    pub(super) exclude: &'a [String],
    /// A commit that the mirror has not got, and the repository that has it.
    pub(super) copied: Option<(&'a Mirror, &'a Sha)>,
    /// A warm tree that becomes this one: only files that differ are written.
    pub(super) spare: Option<&'a WarmTree>,
}

/// Makes it in `dir`, which must not exist. Not atomic: build it beside its place and move it there.
pub(super) fn build(mirror: &Mirror, dir: &Path, content: &Content<'_>) -> Result<(), Error> {
    let git = &mirror.git;
    let index = match content.spare {
        Some(spare) => spare.become_bare_files(dir)?,
        None => None,
    };
    files::create_dir_all(dir)?;
    git.call("init")
        .args(["--quiet", "--template="])
        .arg(format!("--initial-branch={}", content.branch))
        .arg(dir)
        .ok()?;

    let git_dir = dir.join(".git");
    files::create_dir_all(&git_dir.join("info"))?;
    let exclude: String = content.exclude.iter().map(|line| format!("{line}\n")).collect();
    files::write_atomic(&git_dir.join("info/exclude"), exclude.as_bytes(), 0o644)?;
    borrow_objects(&git_dir, mirror)?;
    if let Some((from, commit)) = content.copied {
        from.lend(git.call("fetch").git_dir(&git_dir), commit.as_str())?;
    }
    let config = git_dir.join("config");
    let mut text = std::fs::read(&config).map_err(files::error("read", &config))?;
    text.extend(&content.config);
    files::write_atomic(&config, &text, 0o644)?;

    let mut updates: String =
        content.refs.iter().map(|(name, sha)| format!("create {name} {sha}\n")).collect();
    updates.push_str(&format!("create {} {}\n", content.branch.full(), content.at));
    git.call("update-ref").git_dir(&git_dir).arg("--stdin").stdin(updates).ok()?;
    if let Some(index) = index {
        let place = git_dir.join("index");
        std::fs::write(&place, index).map_err(files::error("write", &place))?;
    }
    // HEAD is set, so that no name has to be given.
    git.call("reset").git_dir(&git_dir).work_tree(dir).args(["--quiet", "--hard"]).ok()
}

/// Lets a repository use the mirror's objects without copying them.
pub(super) fn borrow_objects(git_dir: &Path, mirror: &Mirror) -> Result<(), Error> {
    let info = git_dir.join("objects/info");
    files::create_dir_all(&info)?;
    files::write_atomic(&info.join("alternates"), &borrowed_from(mirror), 0o644)?;
    mirror.lend_shallow(git_dir)
}

/// The line of `objects/info/alternates` that names the mirror's objects.
pub(super) fn borrowed_from(mirror: &Mirror) -> Vec<u8> {
    [mirror.objects().as_os_str().as_bytes(), b"\n"].concat()
}
