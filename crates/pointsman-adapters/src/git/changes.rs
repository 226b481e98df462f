//! The paths that a range of commits changes. Paths are compared as bytes, without looking for renames; a changed
//! mode, a link and a submodule count like content.

use std::collections::BTreeSet;

use pointsman_core::ids::Sha;

use super::inspect::{nul_fields, shown};
use super::mirror::Mirror;
use super::{Call, Error};

/// How many files a search for renames compares, as in git's own merge.
const RENAME_LIMIT: &str = "-l7000";

/// The paths that `candidate` changes against `base` although none of the branches with these `heads` changed them
/// since it left `base`. Anything but an empty answer is a candidate that must not land: it takes back what others did,
/// or brings something that nobody asked for.
///
/// An edit that git carried over to the new name of a file that main has renamed is not astray. A branch of several
/// commits that takes back its own change can still be told here, if main has made the same change and keeps it: the
/// branch as a whole did not touch the file, its replayed commits would revert main.
pub fn stray_paths(
    mirror: &Mirror,
    base: &Sha,
    candidate: &Sha,
    heads: &[Sha],
) -> Result<Vec<String>, Error> {
    let mut stray = between(mirror, base, candidate)?;
    if stray.is_empty() {
        return Ok(Vec::new());
    }
    let mut since = String::new();
    let mut main_since = String::new();
    for head in heads {
        for left in merge_bases(mirror, base, head)? {
            since.push_str(&format!("{head} {left}\n"));
            main_since.push_str(&format!("{base} {left}\n"));
        }
    }
    let changed = paths(&pairs(mirror, &["--no-renames", "--name-only"], since)?);
    stray.retain(|path| !changed.contains(path));
    if stray.is_empty() {
        return Ok(Vec::new());
    }
    let renames =
        pairs(mirror, &["--find-renames", RENAME_LIMIT, "--diff-filter=R", "--name-status"], main_since)?;
    let fields: Vec<&[u8]> = nul_fields(&renames).collect();
    for rename in fields.chunks_exact(3) {
        if changed.contains(rename[1]) {
            stray.remove(rename[2]);
        }
    }
    Ok(stray.iter().map(|path| shown(path)).collect())
}

/// The paths in which two commits differ, in the words of a conflict's list of files: what was landed between them can
/// be what a later branch conflicts with.
pub fn touched(mirror: &Mirror, base: &Sha, tip: &Sha) -> Result<BTreeSet<String>, Error> {
    Ok(between(mirror, base, tip)?.iter().map(|path| shown(path)).collect())
}

/// The changes of `head` since it left `base`, as `git diff --raw -z` and as `git diff -U0`. A renamed file counts as
/// deleted and added.
pub fn lines(mirror: &Mirror, base: &Sha, head: &Sha) -> Result<(Vec<u8>, Vec<u8>), Error> {
    let explained = |error| mirror.explain_failure(error, &[base, head]);
    let raw = mirror.diff_call(base, head, &["--raw", "-z", "--no-renames"]).bytes().map_err(explained)?;
    let patch =
        mirror.diff_call(base, head, &["--patch", "-U0", "--no-renames"]).bytes().map_err(explained)?;
    Ok((raw, patch))
}

/// The last commits up to `upto` that touched one of these paths, with what they changed there line by line, each after a
/// line in this `format`. At most so many commits, and at most `cap` bytes.
pub fn recent(
    mirror: &Mirror,
    upto: &Sha,
    paths: &[String],
    format: &str,
    commits: usize,
    cap: usize,
) -> Result<String, Error> {
    if paths.is_empty() {
        return Ok(String::new());
    }
    mirror
        .call("log")
        .args(["--no-show-signature", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"])
        .args(["--no-merges", "--no-notes", "--patch", "-U0", format])
        .arg(format!("--max-count={commits}"))
        .args([upto.as_str(), "--"])
        .args(paths)
        .capped_text(cap)
        .map_err(|error| mirror.explain_failure(error, &[upto]))
}

fn between(mirror: &Mirror, base: &Sha, tip: &Sha) -> Result<BTreeSet<Vec<u8>>, Error> {
    let listed = diff_tree(mirror)
        .args(["--no-renames", "--name-only", "--end-of-options"])
        .args([format!("{base}^{{commit}}"), format!("{tip}^{{commit}}")])
        .bytes();
    listed.map(|bytes| paths(&bytes)).map_err(|error| mirror.explain_failure(error, &[base, tip]))
}

/// All best common ancestors. None at all is an error: then nothing can be said about what the branch changed.
fn merge_bases(mirror: &Mirror, base: &Sha, head: &Sha) -> Result<Vec<Sha>, Error> {
    let call = mirror.call("merge-base").args(["--all", base.as_str(), head.as_str()]);
    match call.answer().map_err(|error| mirror.explain_failure(error, &[base, head]))? {
        Some(text) => Ok(text.lines().filter_map(Sha::new).collect()),
        None => Err(Error::Unrelated { head: head.clone(), onto: base.clone() }),
    }
}

/// Many differences in one process, a line `<new> <old>` for each. The commits must be known to exist: git passes over
/// a line that it cannot read.
fn pairs(mirror: &Mirror, form: &[&str], lines: String) -> Result<Vec<u8>, Error> {
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    diff_tree(mirror).args(["--stdin", "--no-commit-id"]).args(form).stdin(lines).bytes()
}

fn diff_tree(mirror: &Mirror) -> Call {
    mirror.call("diff-tree").args(["-r", "-z", "--no-ext-diff", "--no-textconv"])
}

fn paths(listed: &[u8]) -> BTreeSet<Vec<u8>> {
    nul_fields(listed).map(<[u8]>::to_vec).collect()
}
