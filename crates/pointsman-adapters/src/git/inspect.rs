//! Questions about commits, asked in the mirror. Nothing of a repository's content can make git run a program here:
//! drivers need configuration, and ours has none; the flags say so once more.

use std::path::{Component, Path};

use pointsman_core::ids::Sha;

use super::mirror::Mirror;
use super::{Call, Error};

/// The most lines of a log that are listed.
const LOG_LINES: usize = 200;
/// The most text of a change list.
const STAT_CAP: usize = 16 << 10;
/// How far back commits are looked for that changed a few files.
const LATELY: &str = "--since=90.days.ago";
/// The most text of a log.
const LOG_CAP: usize = 64 << 10;

/// The identity of a change, whatever it is based on: equal for two commits if a reviewer would see the same patch,
/// white space, modes and binary content included.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PatchId(String);

impl PatchId {
    /// The name as git writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Mirror {
    /// Whether the mirror has this commit.
    pub fn commit_exists(&self, sha: &Sha) -> Result<bool, Error> {
        self.resolve(&format!("{sha}^{{commit}}")).map(|found| found.is_some())
    }

    /// Like [`Self::commit_exists`], as a condition for going on.
    pub(super) fn require_commit(&self, sha: &Sha) -> Result<(), Error> {
        if self.commit_exists(sha)? {
            return Ok(());
        }
        Err(Error::NoCommit { sha: sha.clone(), repository: self.dir().to_owned() })
    }

    /// Why a question about these commits failed: git's own words for a missing one are of no use. Asked only after a
    /// failure, so that a success need not wait for it.
    pub(super) fn explain_failure(&self, error: Error, commits: &[&Sha]) -> Error {
        let missing = commits.iter().find(|sha| matches!(self.commit_exists(sha), Ok(false)));
        match missing {
            Some(&sha) => Error::NoCommit { sha: sha.clone(), repository: self.dir().to_owned() },
            None => error,
        }
    }

    /// The tree of a commit.
    pub fn tree_of(&self, sha: &Sha) -> Result<Sha, Error> {
        self.resolve(&format!("{sha}^{{tree}}"))?
            .ok_or_else(|| Error::NoCommit { sha: sha.clone(), repository: self.dir().to_owned() })
    }

    /// The first parent of a commit; nothing for the first commit of all.
    pub fn parent_of(&self, sha: &Sha) -> Result<Option<Sha>, Error> {
        self.resolve(&format!("{sha}^1^{{commit}}"))
    }

    fn resolve(&self, revision: &str) -> Result<Option<Sha>, Error> {
        let call = self.call("rev-parse").args(["--verify", "--quiet", "--end-of-options", revision]);
        Ok(call.answer()?.and_then(|text| Sha::new(&text)))
    }

    /// Whether `descendant` holds all of `ancestor`'s history (a commit is its own ancestor).
    pub fn is_ancestor(&self, ancestor: &Sha, descendant: &Sha) -> Result<bool, Error> {
        self.call("merge-base").args(["--is-ancestor", ancestor.as_str(), descendant.as_str()]).yes()
    }

    /// The best common ancestor, if there is one.
    pub fn merge_base(&self, a: &Sha, b: &Sha) -> Result<Option<Sha>, Error> {
        self.require_commit(a)?;
        self.require_commit(b)?;
        let call = self.call("merge-base").args([a.as_str(), b.as_str()]);
        Ok(call.answer()?.and_then(|text| Sha::new(&text)))
    }

    /// The number of commits that `head` has and `base` has not.
    pub fn ahead(&self, base: &Sha, head: &Sha) -> Result<u64, Error> {
        let call = self.call("rev-list").args(["--count", &format!("{base}..{head}"), "--"]);
        let text = call.text()?;
        text.parse().map_err(|_| Error::Unexpected { operation: "rev-list", inputs: text, what: "no number" })
    }

    /// The files that `head` changed since it left `base`, with their counts of lines.
    pub fn diff_stat(&self, base: &Sha, head: &Sha) -> Result<String, Error> {
        self.diff_call(base, head, &["--stat=120", "--summary"]).capped_text(STAT_CAP)
    }

    /// The patch from the merge base with `base` to `head`, at most `cap` bytes long. The middle of a longer one is
    /// left out.
    pub fn diff(&self, base: &Sha, head: &Sha, cap: usize) -> Result<String, Error> {
        self.diff_call(base, head, &["--patch"]).capped_text(cap)
    }

    /// The patch from one commit to another with so many lines of context, at most `cap` bytes long.
    pub fn diff_between(&self, from: &Sha, to: &Sha, context: u32, cap: usize) -> Result<String, Error> {
        self.call("diff")
            .args([
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
                "--submodule=short",
                "--patch",
                "--no-renames",
            ])
            .args([&format!("--unified={context}"), from.as_str(), to.as_str(), "--"])
            .capped_text(cap)
    }

    /// Two versions of a branch, each from its base to its head, commit by commit, at most `cap` bytes long.
    pub fn range_diff(&self, old: (&Sha, &Sha), new: (&Sha, &Sha), cap: usize) -> Result<String, Error> {
        self.call("range-diff")
            .args(["--no-color", "--no-ext-diff", "--no-textconv"])
            .args([format!("{}..{}", old.0, old.1), format!("{}..{}", new.0, new.1)])
            .arg("--")
            .capped_text(cap)
    }

    /// The number of lines that `head` added and removed since it left `base`. A file that is not text counts as one.
    pub fn changed_lines(&self, base: &Sha, head: &Sha) -> Result<u64, Error> {
        let listed = self.diff_call(base, head, &["--numstat", "--no-renames"]).bytes()?;
        let of_file = |line: &str| {
            let mut counts = line.split('\t').map(str::parse::<u64>);
            match (counts.next(), counts.next()) {
                (Some(Ok(added)), Some(Ok(removed))) => added.saturating_add(removed),
                _ => 1,
            }
        };
        Ok(String::from_utf8_lossy(&listed).lines().map(of_file).fold(0, u64::saturating_add))
    }

    /// The paths that `head` changed since it left `base`.
    pub fn changed_paths(&self, base: &Sha, head: &Sha) -> Result<Vec<String>, Error> {
        self.diff_call(base, head, &["--name-only", "--no-renames", "-z"])
            .bytes()
            .map(|bytes| nul_list(&bytes))
    }

    /// The commits that `head` has and `base` has not, newest first, a line for each.
    pub fn log_oneline(&self, base: &Sha, head: &Sha) -> Result<String, Error> {
        self.call("log")
            .args(["--no-show-signature", "--no-color", "--format=%h %s"])
            .arg(format!("--max-count={LOG_LINES}"))
            .args([&format!("{base}..{head}"), "--"])
            .capped_text(LOG_CAP)
    }

    /// The newest commits of a history that changed one of these paths, a line for each. Paths that `head` has not got are left out.
    pub fn log_of_paths(&self, head: &Sha, paths: &[String], most: usize) -> Result<String, Error> {
        let paths: Vec<&str> = paths.iter().map(String::as_str).filter(|path| is_inside(path)).collect();
        if paths.is_empty() {
            return Ok(String::new());
        }
        let there = self.present(head, &paths)?;
        if there.is_empty() {
            return Ok(String::new());
        }
        self.call("log")
            .args(["--no-show-signature", "--no-color", "--format=%h %s"])
            .arg(format!("--max-count={most}"))
            // Git walks back until it has found enough, which may be to the beginning of a long history.
            .arg(LATELY)
            .args([head.as_str(), "--"])
            .args(&there)
            .capped_text(LOG_CAP)
    }

    /// Identifies what `head` changed since it left `base`.
    ///
    /// Not `git patch-id`: that one ignores white space or binary content, and an approval must not cover either.
    pub fn patch_id(&self, base: &Sha, head: &Sha) -> Result<PatchId, Error> {
        let patch =
            self.diff_call(base, head, &["--patch", "--binary", "--full-index", "--no-renames"]).bytes()?;
        let sha = self
            .call("hash-object")
            .args(["-t", "blob", "--stdin"])
            .stdin(without_positions(&patch))
            .sha()?;
        Ok(PatchId(sha.as_str().to_owned()))
    }

    /// A regular file of a commit, of at most `cap` bytes; nothing if there is no such file (a symlink is none).
    pub fn read_file_at(&self, sha: &Sha, path: &str, cap: usize) -> Result<Option<Vec<u8>>, Error> {
        let listed = self.call("ls-tree").args(["-z", "--full-tree", sha.as_str(), "--", path]).bytes()?;
        let Some(blob) = regular_blob(&listed, path) else { return Ok(None) };
        let size = self.call("cat-file").args(["-s", blob.as_str()]).text()?;
        if size.parse::<usize>().map_or(true, |size| size > cap) {
            let inputs = format!("{sha}:{path}");
            return Err(Error::Unexpected { operation: "cat-file", inputs, what: "the file is too large" });
        }
        self.call("cat-file").args(["blob", blob.as_str()]).bytes().map(Some)
    }

    /// The number of files of a commit, at most so many.
    pub fn file_count(&self, sha: &Sha, most: usize) -> Result<usize, Error> {
        let listed =
            self.call("ls-tree").args(["-r", "-z", "--name-only", "--full-tree", sha.as_str()]).bytes()?;
        Ok(nul_fields(&listed).take(most).count())
    }

    /// Those of these paths that are in a commit.
    pub fn present(&self, sha: &Sha, paths: &[&str]) -> Result<Vec<String>, Error> {
        let listed = self.call("ls-tree").args(["-z", "--name-only", "--full-tree", sha.as_str(), "--"]);
        let listed = listed.args(paths.iter().copied()).bytes()?;
        let names = listed.split(|b| *b == 0).filter(|name| !name.is_empty());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    pub(super) fn diff_call(&self, base: &Sha, head: &Sha, form: &[&str]) -> Call {
        self.call("diff")
            .args(["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short"])
            .args(form)
            .args([&format!("{base}...{head}"), "--"])
    }
}

/// Whether a path stays inside of a repository; git calls the others an error.
fn is_inside(path: &str) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    !path.is_empty() && Path::new(path).components().all(plain)
}

/// NUL-terminated paths, as text for people.
pub(super) fn nul_list(bytes: &[u8]) -> Vec<String> {
    nul_fields(bytes).map(shown).collect()
}

/// What NUL ends, without the empty ones.
pub(super) fn nul_fields(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|b| *b == 0).filter(|field| !field.is_empty())
}

/// A path for people: odd bytes are replaced.
pub(super) fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// `<mode> SP <type> SP <object> TAB <path> NUL`
fn regular_blob(listed: &[u8], path: &str) -> Option<Sha> {
    let text = String::from_utf8_lossy(listed);
    let (meta, name) = text.strip_suffix('\0')?.split_once('\t')?;
    let mut fields = meta.split(' ');
    let (mode, _type, object) = (fields.next()?, fields.next()?, fields.next()?);
    if name == path && mode.starts_with("100") { Sha::new(object) } else { None }
}

/// A patch without what changes when it is moved: line numbers, and the names of the whole files before and after.
/// Lines of content begin with a blank, `+`, `-` or `\`, those of binary content hold no blank: neither is touched.
fn without_positions(patch: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(patch.len());
    for line in patch.split_inclusive(|b| *b == b'\n') {
        if line.starts_with(b"@@ -") {
            kept.extend(b"@@\n");
        } else if line.starts_with(b"index ") {
            // Only the mode stays.
            kept.extend(line.splitn(3, |b| *b == b' ').nth(2).unwrap_or(b"\n"));
        } else {
            kept.extend(line);
        }
    }
    kept
}
