//! Captures and checkpoints, for people who look for lost work: which there are, what is in them, how to get the files
//! back. They are written by [`capture`](super::capture) and [`checkpoint`](super::checkpoint).

use std::path::Path;

use pointsman_core::ids::{Number, Sha, TaskKey};

use super::checkpoint::{self, CheckpointName, SESSION_TRAILER};
use super::mirror::Mirror;
use super::{Call, Error, RefName, files};

/// Where captures are kept.
const PREFIX: &str = "refs/pointsman/rescue";
/// The most text of a list of changes.
const STAT_CAP: usize = 64 << 10;

/// The occasion on which work was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It was captured before a tree or a session went.
    Rescue,
    /// It was saved while work went on.
    Checkpoint,
}

impl Kind {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rescue => "rescue",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// One capture or checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescue {
    pub kind: Kind,
    /// Its reference in the mirror.
    pub refname: RefName,
    pub commit: Sha,
    /// The session it is of, if that is known.
    pub session: Option<String>,
    /// The issue it is about, if that is known.
    pub task: Option<Number>,
    /// When it was made, in seconds since the epoch.
    pub at_secs: i64,
    /// The files that differ from what was committed before; all of them for a first commit.
    pub files: Vec<String>,
}

/// All captures and checkpoints: checkpoints first, each kind by session or task and then by number.
pub fn list(mirror: &Mirror) -> Result<Vec<Rescue>, Error> {
    let trailer = format!("%(trailers:key={SESSION_TRAILER},valueonly,separator=%20)");
    let listed = mirror
        .call("for-each-ref")
        .arg(format!("--format=%(refname) %(objectname) %(committerdate:unix) {trailer}"))
        .args(["--", checkpoint::PREFIX, PREFIX])
        .text()?;
    let mut found: Vec<Rescue> = listed.lines().filter_map(parse_line).collect();
    found.sort_by_cached_key(|rescue| sort_key(&rescue.refname));
    let changed = changed_files(mirror, &found)?;
    for (rescue, files) in found.iter_mut().zip(changed) {
        rescue.files = files;
    }
    Ok(found)
}

/// The files that a saved commit changes, with their counts of lines.
pub fn stat(mirror: &Mirror, commit: &Sha) -> Result<String, Error> {
    diff_call(mirror, &["--stat=120", "--summary"], commit).capped_text(STAT_CAP)
}

/// The patch of a saved commit, at most `cap` bytes long. The middle of a longer one is left out.
pub fn patch(mirror: &Mirror, commit: &Sha, cap: usize) -> Result<String, Error> {
    diff_call(mirror, &["--patch"], commit).capped_text(cap)
}

/// Writes all files of a commit into a directory, which must be empty or not exist. They are only files: there is no
/// repository around them, and nothing of a repository's configuration is used.
pub fn restore(mirror: &Mirror, commit: &Sha, dir: &Path) -> Result<(), Error> {
    let dir = files::absolute(dir)?;
    files::create_dir_all(&dir)?;
    let mut entries = std::fs::read_dir(&dir).map_err(files::error("list", &dir))?;
    if entries.next().is_some() {
        return Err(Error::NotOurs { path: dir, expected: "an empty directory" });
    }
    let scratch = tempfile::tempdir().map_err(files::error("make a directory for", &dir))?;
    mirror
        .call("read-tree")
        .work_tree(&dir)
        .env("GIT_INDEX_FILE", scratch.path().join("index"))
        .args(["--reset", "-u", commit.as_str()])
        .ok()
}

fn parse_line(line: &str) -> Option<Rescue> {
    let mut words = line.splitn(4, ' ');
    let (name, commit, at) = (words.next()?, words.next()?, words.next()?);
    let trailer = words.next().filter(|session| TaskKey::parse_session(session).is_some());
    let (kind, session, task) = match name.strip_prefix(PREFIX) {
        Some(rest) => {
            let session = rest.strip_prefix('/')?.rsplit_once('/')?.0;
            let task = TaskKey::parse_session(session).map(|(key, _)| key.issue);
            (Kind::Rescue, Some(session), task)
        }
        None => (Kind::Checkpoint, trailer, Some(CheckpointName::parse(name)?.task)),
    };
    Some(Rescue {
        kind,
        refname: RefName::new(name)?,
        commit: Sha::new(commit)?,
        session: session.map(str::to_owned),
        task,
        at_secs: at.parse().ok()?,
        files: Vec::new(),
    })
}

/// Numbers count as numbers: 10 comes after 9.
fn sort_key(refname: &RefName) -> Vec<(u64, String)> {
    let part = |part: &str| (part.parse().unwrap_or(0), part.to_owned());
    refname.as_str().split('/').map(part).collect()
}

/// The files of each, in one call of git.
fn changed_files(mirror: &Mirror, found: &[Rescue]) -> Result<Vec<Vec<String>>, Error> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let input: String = found.iter().map(|rescue| format!("{}\n", rescue.commit)).collect();
    let listed = mirror
        .call("diff-tree")
        .args([
            "--stdin",
            "--always",
            "--root",
            "-r",
            "-z",
            "--raw",
            "--no-renames",
            "--diff-merges=first-parent",
        ])
        .stdin(input)
        .bytes()?;
    let mut lists: Vec<Vec<String>> = Vec::new();
    let mut fields = listed.split(|b| *b == 0);
    while let Some(field) = fields.next() {
        // The commit's id, or `:<modes, objects, status>` and then the path.
        if !field.starts_with(b":") {
            lists.push(Vec::new());
        } else if let (Some(files), Some(path)) = (lists.last_mut(), fields.next()) {
            files.push(String::from_utf8_lossy(path).into_owned());
        }
    }
    lists.truncate(found.len());
    Ok(lists)
}

fn diff_call(mirror: &Mirror, form: &[&str], commit: &Sha) -> Call {
    mirror
        .call("diff-tree")
        .args(["--root", "-r", "--no-commit-id", "--diff-merges=first-parent"])
        .args(["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"])
        .args(form)
        .args([commit.as_str(), "--"])
}
