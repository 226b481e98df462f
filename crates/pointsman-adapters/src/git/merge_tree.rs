//! Merging commits without a working tree: `git merge-tree`, and what its answers mean.

use std::path::PathBuf;

use pointsman_core::ids::Sha;

use super::commit::Commit;
use super::incoming::Incoming;
use super::inspect::{nul_list, shown};
use super::mirror::Mirror;
use super::union::UnionGlobs;
use super::{Call, Error, files};
use crate::process::{End, Finished};
use crate::retry::Retry;

/// What came of a merge.
pub(super) enum Merged {
    /// The tree of both.
    Clean(Sha),
    /// Where they do not fit, sorted.
    Conflict(Vec<String>),
}

/// Makes merges and commits. They are in the mirror after [`Self::keep`]; without it nothing is left behind, so that a
/// mere look costs the mirror nothing.
///
/// Attributes are those of one commit, main's: a branch does not say how it is merged. Of its drivers only git's own
/// exist (`union`, `binary`, `text`), the others need configuration; a name without a driver means `text`. Where main
/// says nothing about a file, the project's globs do.
pub(super) struct Merger<'a> {
    incoming: Incoming<'a>,
    attributes_of: Sha,
    /// A file of attributes that are weaker than those of the commit.
    globs: Option<PathBuf>,
}

impl<'a> Merger<'a> {
    pub(super) fn new(mirror: &'a Mirror, union: &UnionGlobs, attributes_of: &Sha) -> Result<Self, Error> {
        let incoming = Incoming::new(mirror)?;
        let mut globs = None;
        if !union.is_empty() {
            // A file per merger: another thread may merge with other globs.
            let path = incoming.scratch().join("attributes");
            std::fs::write(&path, union.attributes()).map_err(files::error("write", &path))?;
            globs = Some(path);
        }
        Ok(Self { incoming, attributes_of: attributes_of.clone(), globs })
    }

    fn call(&self) -> Call {
        let mut call = self.incoming.call("merge-tree");
        if let Some(globs) = &self.globs {
            call = call.config("core.attributesFile", globs);
        }
        let source = format!("{}^{{commit}}", self.attributes_of);
        call.attributes_of(&source).args(["--write-tree", "-z", "--name-only", "--no-messages"])
    }

    /// Merges two commits that exist. Exit code 1 is a conflict only if a tree was written: a missing commit exits
    /// with 1 too, with nothing on its output.
    pub(super) fn merge(&self, base: Option<&Sha>, ours: &Sha, theirs: &Sha) -> Result<Merged, Error> {
        let mut call = self.call();
        if let Some(base) = base {
            call = call.arg(format!("--merge-base={base}"));
        }
        let done = call.args([ours.as_str(), theirs.as_str()]).finish()?;
        let (first, rest) = match done.stdout.iter().position(|b| *b == 0) {
            Some(nul) => (&done.stdout[..nul], &done.stdout[nul + 1..]),
            None => (&done.stdout[..], &[][..]),
        };
        match (done.end, Sha::new(&shown(first))) {
            (End::Exited(0), Some(tree)) => Ok(Merged::Clean(tree)),
            (End::Exited(1), Some(_)) => Ok(Merged::Conflict(sorted(nul_list(rest)))),
            _ => Err(failed(format!("{ours} {theirs}"), &done)),
        }
    }

    /// Merges many commits with the same one, each for itself, in one process.
    pub(super) fn merge_each(&self, ours: &Sha, theirs: &[Sha]) -> Result<Vec<Merged>, Error> {
        if theirs.is_empty() {
            return Ok(Vec::new());
        }
        let lines: String = theirs.iter().map(|head| format!("{ours} {head}\n")).collect();
        let done = self.call().arg("--stdin").stdin(lines).finish()?;
        // It stops at the first commit that it cannot merge.
        match parse_each(&done.stdout) {
            Some(merged) if done.end == End::Exited(0) && merged.len() == theirs.len() => Ok(merged),
            Some(_) | None => Err(failed(format!("{ours} and {} heads", theirs.len()), &done)),
        }
    }

    pub(super) fn write(&self, commit: &Commit) -> Result<Sha, Error> {
        commit.write(self.incoming.call("hash-object"))
    }

    /// Makes what was merged and written a durable part of the mirror.
    pub(super) fn keep(&self) -> Result<(), Error> {
        self.incoming.keep()
    }
}

/// Each record is `<status> NUL <tree> NUL (<path> NUL)* NUL`; here a status of 1 is a clean merge and 0 a conflict.
fn parse_each(output: &[u8]) -> Option<Vec<Merged>> {
    let mut fields = output.strip_suffix(b"\0")?.split(|b| *b == 0);
    let mut merged = Vec::new();
    while let Some(status) = fields.next() {
        let tree = Sha::new(std::str::from_utf8(fields.next()?).ok()?)?;
        let paths = fields.by_ref().take_while(|field| !field.is_empty()).map(shown).collect();
        merged.push(match status {
            b"1" => Merged::Clean(tree),
            b"0" => Merged::Conflict(sorted(paths)),
            _ => return None,
        });
    }
    Some(merged)
}

fn sorted(mut files: Vec<String>) -> Vec<String> {
    files.sort();
    files.dedup();
    files
}

fn failed(inputs: String, done: &Finished) -> Error {
    Error::Failed {
        operation: "merge-tree",
        inputs,
        end: done.end,
        stderr: super::error::excerpt(&done.stderr),
        retry: Retry::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::{Merged, parse_each};

    #[test]
    fn many_answers_are_told_apart() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let output = format!("1\0{a}\0\x000\0{b}\0z\0x\ny\0\x001\0{b}\0\0");
        let merged = parse_each(output.as_bytes()).unwrap();
        assert_eq!(merged.len(), 3);
        assert!(matches!(&merged[0], Merged::Clean(tree) if tree.as_str() == a));
        assert!(matches!(&merged[1], Merged::Conflict(files) if files == &["x\ny", "z"]));
        for broken in ["1\0", "2\0", "1\0x\0\0", "", "1"] {
            assert!(parse_each(broken.as_bytes()).is_none(), "{broken:?}");
        }
        assert!(parse_each(format!("-1\0{a}\0\0").as_bytes()).is_none());
    }
}
