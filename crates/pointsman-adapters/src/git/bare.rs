//! Bare repositories of ours: the embedded forge's remote, and how any of them is made.

use std::path::Path;

use pointsman_core::ids::Sha;

use super::{BranchName, Error, Git, files, refs};
use crate::retry::Retry;

/// Added to the configuration of every bare repository of ours.
const CONFIG: &str = "\
[core]
\t# Git is the checkpoint: a reference that was written survives a power cut.
\tfsync = all
\t# Where every reference has been, so that nothing that was pushed over is lost.
\tlogAllRefUpdates = always
[gc]
\tauto = 0
[receive]
\tautogc = false
";

/// The treatment of a branch that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It is only ever moved forward; anything else is an error.
    FastForward,
    /// It is moved wherever the source has it.
    Replace,
}

/// The kind of ids of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    /// The kind of this id.
    pub fn of(sha: &Sha) -> Self {
        if sha.as_str().len() == 64 { Self::Sha256 } else { Self::Sha1 }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }
}

/// Makes a bare repository with `primary` as its first branch, or leaves the one that is there as it is.
pub fn init_bare(git: &Git, dir: &Path, primary: &BranchName) -> Result<(), Error> {
    init_bare_with(git, dir, primary, ObjectFormat::Sha1)
}

/// Like [`init_bare`], with ids of this kind.
pub(super) fn init_bare_with(
    git: &Git,
    dir: &Path,
    primary: &BranchName,
    format: ObjectFormat,
) -> Result<(), Error> {
    let dir = files::absolute(dir)?;
    if is_bare(&dir) {
        return Ok(());
    }
    if dir.symlink_metadata().is_ok() {
        return Err(Error::NotOurs { path: dir, expected: "a bare repository" });
    }
    let building = files::with_suffix(&dir, ".tmp-bare");
    if building.symlink_metadata().is_ok() {
        files::set_aside(&building)?;
    }
    files::create_dir_all(&building)?;
    git.call("init")
        .args(["--quiet", "--bare", "--template="])
        .arg(format!("--initial-branch={primary}"))
        .arg(format!("--object-format={}", format.as_str()))
        .arg(&building)
        .ok()?;
    let config = building.join("config");
    let mut text = std::fs::read(&config).map_err(files::error("read", &config))?;
    text.extend(CONFIG.as_bytes());
    files::write_atomic(&config, &text, 0o644)?;
    files::create_dir_all(&building.join("info"))?;
    files::move_into_place(&building, &dir)
}

/// Brings a branch of somebody's checkout into a bare repository of ours and answers its commit, or nothing if the
/// checkout has no such branch.
pub fn import_branch(
    git: &Git,
    checkout: &Path,
    branch: &BranchName,
    bare: &Path,
    existing: Existing,
) -> Result<Option<Sha>, Error> {
    let force = match existing {
        Existing::FastForward => "",
        Existing::Replace => "+",
    };
    let (source, bare) = (files::absolute(checkout)?, files::absolute(bare)?);
    let full = branch.full();
    let listed = git.call("ls-remote").arg("--").arg(&source).arg(full.as_str()).text()?;
    if !listed.lines().any(|line| line.split_once('\t').is_some_and(|(_, name)| name == full.as_str())) {
        return Ok(None);
    }
    git.call("fetch")
        .git_dir(&bare)
        .args(FETCH_QUIETLY)
        .arg(FROM_SHALLOW)
        .arg("--")
        .arg(&source)
        .arg(format!("{force}{full}:{full}"))
        .remote(Retry::Later)
        .ok()?;
    refs::read_ref(&bare, &full)
}

/// Options of every fetch: exactly the named references, nothing on the side.
pub(super) const FETCH_QUIETLY: [&str; 6] = [
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--no-auto-maintenance",
    "--no-recurse-submodules",
    "--refmap=",
];

/// Takes over where the history of a shallow clone ends. Only for sources that agents cannot write: whoever may say where
/// history ends can hide it.
pub(super) const FROM_SHALLOW: &str = "--update-shallow";

pub(super) fn is_bare(dir: &Path) -> bool {
    dir.join("HEAD").is_file() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}
