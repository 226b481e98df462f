//! Merging commits without a working tree: `git merge-tree`, and what its answers mean.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use pointsman_core::ids::Sha;

use super::commit::Commit;
use super::incoming::Incoming;
use super::inspect::shown;
use super::mirror::Mirror;
use super::older_git::OlderGit;
use super::union::UnionGlobs;
use super::{Call, Error, files};
use crate::process::{End, Finished};
use crate::retry::Retry;

/// Only the files: messages are for people.
const QUIETLY: &str = "--no-messages";

/// What came of a merge.
pub(super) enum Merged {
    Clean(Sha),
    /// Where they do not fit, sorted.
    Conflict(Vec<String>),
}

/// One side of a merge with a given base.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) commit: &'a Sha,
    pub(super) tree: &'a Sha,
}

/// What `theirs` changed against `base`, to be brought to `ours`, which may be a tree.
pub(super) struct Pick<'a> {
    pub(super) base: &'a Sha,
    pub(super) ours: &'a Sha,
    pub(super) theirs: &'a Sha,
}

impl Merged {
    fn tree(self) -> Option<Sha> {
        match self {
            Self::Clean(tree) => Some(tree),
            Self::Conflict(_) => None,
        }
    }
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
    /// With a git that needs it.
    older: Option<OlderGit>,
    merges_trees: bool,
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
        let older = if mirror.git().version()?.merges_as_told() {
            None
        } else {
            Some(OlderGit::prepare(mirror, &incoming, attributes_of)?)
        };
        let merges_trees = mirror.git().version()?.merges_trees();
        Ok(Self { incoming, attributes_of: attributes_of.clone(), globs, older, merges_trees })
    }

    fn call(&self, messages: &str) -> Call {
        let mut call = self.incoming.call("merge-tree");
        if let Some(globs) = &self.globs {
            call = call.config("core.attributesFile", globs);
        }
        let call = match &self.older {
            Some(older) => older.with_attributes(call),
            None => call.attributes_of(&format!("{}^{{commit}}", self.attributes_of)),
        };
        call.args(["--write-tree", "-z", "--name-only", messages])
    }

    /// Merges two commits.
    pub(super) fn merge(&self, ours: &Sha, theirs: &Sha) -> Result<Merged, Error> {
        self.merge_from(None, ours, theirs)
    }

    /// Brings to `ours` what `theirs` changed against `base`, whatever their histories are.
    pub(super) fn pick(&self, base: &Sha, ours: Side<'_>, theirs: Side<'_>) -> Result<Merged, Error> {
        let Some(older) = &self.older else {
            return self.merge_from(Some(base), ours.commit, theirs.commit);
        };
        let [ours, theirs] = older.stand_ins(&self.incoming, base, [ours.tree, theirs.tree])?;
        self.merge_from(None, &ours, &theirs)
    }

    /// Exit code 1 is a conflict only if a tree was written: a missing commit exits with 1 too, with nothing on its
    /// output.
    fn merge_from(&self, base: Option<&Sha>, ours: &Sha, theirs: &Sha) -> Result<Merged, Error> {
        let (end, fields) = self.merge_once(base, ours, theirs, QUIETLY)?;
        let mut fields = fields.split(|b| *b == 0);
        let tree = fields.next().and_then(|first| Sha::new(&shown(first)));
        match (end, tree) {
            (0, Some(tree)) => Ok(Merged::Clean(tree)),
            (_, Some(_)) => {
                let files = real_files(fields.filter(|path| !path.is_empty()), &[ours, theirs]);
                self.named(files, base, ours, theirs).map(Merged::Conflict)
            }
            (_, None) => Err(Error::Unexpected {
                operation: "merge-tree",
                inputs: format!("{ours} {theirs}"),
                what: "no tree",
            }),
        }
    }

    /// Merges many commits with the same one, each for itself, in one process.
    pub(super) fn merge_each(&self, ours: &Sha, theirs: &[Sha]) -> Result<Vec<Merged>, Error> {
        if theirs.is_empty() {
            return Ok(Vec::new());
        }
        let lines: String = theirs.iter().map(|head| format!("{ours} {head}\n")).collect();
        let done = self.call(QUIETLY).arg("--stdin").stdin(lines).finish()?;
        // It stops at the first commit that it cannot merge.
        let sides: Vec<[&Sha; 2]> = theirs.iter().map(|head| [ours, head]).collect();
        let merged = match parse_each(&done.stdout, &sides) {
            Some(merged) if done.end == End::Exited(0) => merged,
            Some(_) | None => return Err(failed(format!("{ours} and {} heads", theirs.len()), &done)),
        };
        let named = |(merged, head)| match merged {
            Merged::Clean(_) => Ok(merged),
            Merged::Conflict(files) => self.named(files, None, ours, head).map(Merged::Conflict),
        };
        merged.into_iter().zip(theirs).map(named).collect()
    }

    /// Whether many picks can be made in one process; see [`Self::pick_each`].
    pub(super) fn picks_many(&self) -> bool {
        self.merges_trees
    }

    /// Makes many picks in one process, each for itself. A conflict is told without its files.
    pub(super) fn pick_each(&self, picks: &[Pick<'_>]) -> Result<Vec<Option<Sha>>, Error> {
        if picks.is_empty() {
            return Ok(Vec::new());
        }
        let line = |pick: &Pick<'_>| format!("{} -- {} {}\n", pick.base, pick.ours, pick.theirs);
        let lines: String = picks.iter().map(line).collect();
        let done = self.call(QUIETLY).arg("--stdin").stdin(lines).finish()?;
        let sides: Vec<[&Sha; 2]> = picks.iter().map(|pick| [pick.ours, pick.theirs]).collect();
        match parse_each(&done.stdout, &sides) {
            Some(merged) if done.end == End::Exited(0) => Ok(merged.into_iter().map(Merged::tree).collect()),
            Some(_) | None => Err(failed(format!("{} picks", picks.len()), &done)),
        }
    }

    /// Some conflicts leave every file merged (a file is in the way of a renamed directory): they are only in git's
    /// messages. A conflict without a file would help nobody.
    fn named(
        &self,
        files: Vec<String>,
        base: Option<&Sha>,
        ours: &Sha,
        theirs: &Sha,
    ) -> Result<Vec<String>, Error> {
        if !files.is_empty() {
            return Ok(files);
        }
        let (_, output) = self.merge_once(base, ours, theirs, "--messages")?;
        Ok(real_files(in_messages(&output).into_iter(), &[ours, theirs]))
    }

    /// The exit code, 0 or 1, and what was printed, which is something.
    fn merge_once(
        &self,
        base: Option<&Sha>,
        ours: &Sha,
        theirs: &Sha,
        messages: &str,
    ) -> Result<(i32, Vec<u8>), Error> {
        let mut call = self.call(messages);
        if let Some(base) = base {
            call = call.arg(format!("--merge-base={base}"));
        }
        let done = call.args([ours.as_str(), theirs.as_str()]).finish()?;
        match done.end {
            End::Exited(code @ (0 | 1)) if !done.stdout.is_empty() => Ok((code, done.stdout)),
            _ => Err(failed(format!("{ours} {theirs}"), &done)),
        }
    }

    pub(super) fn write(&self, commit: &Commit) -> Result<Sha, Error> {
        commit.write(self.incoming.call("hash-object"))
    }

    /// Writes a chain of commits in one process. Their ids were computed by us; git must come to the same.
    pub(super) fn write_each(&self, commits: &[(Sha, Commit)]) -> Result<(), Error> {
        if let [(_, commit)] = commits {
            return self.write(commit).map(drop);
        }
        let mut paths = Vec::new();
        for (at, (_, commit)) in commits.iter().enumerate() {
            let path = self.incoming.scratch().join(format!("commit-{at}"));
            std::fs::write(&path, commit.to_bytes()).map_err(files::error("write", &path))?;
            paths.extend(path.as_os_str().as_bytes());
            paths.push(b'\n');
        }
        let call = self.incoming.call("hash-object").args(["-t", "commit", "-w", "--no-filters"]);
        let written = call.arg("--stdin-paths").stdin(paths).text()?;
        if written.lines().eq(commits.iter().map(|(sha, _)| sha.as_str())) {
            return Ok(());
        }
        let inputs = format!("{} commits", commits.len());
        Err(Error::Unexpected { operation: "hash-object", inputs, what: "other ids than ours" })
    }

    /// Makes what was merged and written a durable part of the mirror.
    pub(super) fn keep(&self) -> Result<(), Error> {
        self.incoming.keep()
    }
}

/// The paths of all conflicts that are told. After the tree and the files, which an empty field ends, each message is
/// `<count> NUL (<path> NUL){count} <type> NUL <text> NUL`.
fn in_messages(output: &[u8]) -> Vec<&[u8]> {
    let mut fields = output.split(|b| *b == 0).skip_while(|field| !field.is_empty()).skip(1);
    let mut found = Vec::new();
    while let Some(count) = fields.next().and_then(|count| shown(count).parse::<usize>().ok()) {
        let paths: Vec<&[u8]> = fields.by_ref().take(count).collect();
        let kind = fields.next().unwrap_or_default();
        // What is merely told, such as `Auto-merging`, is no conflict.
        if kind.starts_with(b"CONFLICT") {
            found.extend(paths);
        }
        fields.next();
    }
    found
}

/// Each record is `<status> NUL <tree> NUL (<path> NUL)* NUL`; here a status of 1 is a clean merge and 0 a conflict.
fn parse_each(output: &[u8], sides: &[[&Sha; 2]]) -> Option<Vec<Merged>> {
    let mut fields = output.strip_suffix(b"\0")?.split(|b| *b == 0);
    let mut merged = Vec::with_capacity(sides.len());
    for pair in sides {
        let status = fields.next()?;
        let tree = Sha::new(std::str::from_utf8(fields.next()?).ok()?)?;
        let paths = fields.by_ref().take_while(|field| !field.is_empty());
        let files = real_files(paths, pair);
        merged.push(match status {
            b"1" => Merged::Clean(tree),
            b"0" => Merged::Conflict(files),
            _ => return None,
        });
    }
    fields.next().is_none().then_some(merged)
}

/// The files of a conflict, sorted. Where a file of one side is a directory or a link on the other, git lists it under
/// a name of its own making too, `<path>~<commit>`: nobody has such a file, so it is told as what it is.
fn real_files<'a>(paths: impl Iterator<Item = &'a [u8]>, sides: &[&Sha]) -> Vec<String> {
    let real = |path: String| match path.rsplit_once('~') {
        Some((real, end)) if sides.iter().any(|side| is_label(end, side)) => real.to_owned(),
        Some(_) | None => path,
    };
    let files: BTreeSet<String> = paths.map(|path| real(shown(path))).collect();
    files.into_iter().collect()
}

/// The commit, or with `_0` and so on if that name is taken.
fn is_label(end: &str, side: &Sha) -> bool {
    let Some(more) = end.strip_prefix(side.as_str()) else { return false };
    more.is_empty() || more.strip_prefix('_').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
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
    use pointsman_core::ids::Sha;

    #[test]
    fn many_answers_are_told_apart() {
        let [a, b, c] = ["a", "b", "c"].map(|digit| Sha::new(&digit.repeat(40)).unwrap());
        let parse = |output: &str, heads: &[&Sha]| {
            let sides: Vec<[&Sha; 2]> = heads.iter().map(|&head| [&c, head]).collect();
            parse_each(output.as_bytes(), &sides)
        };
        let output = format!("1\0{a}\0\x000\0{b}\0z\0z~{b}\0y~{c}_0\0x~{a}\0x\ny\0\x001\0{b}\0\0");
        let merged = parse(&output, &[&a, &b, &a]).unwrap();
        assert!(matches!(&merged[0], Merged::Clean(tree) if *tree == a));
        let expected = ["x\ny".to_owned(), format!("x~{a}"), "y".to_owned(), "z".to_owned()];
        assert!(matches!(&merged[1], Merged::Conflict(files) if *files == expected));
        assert!(parse(&output, &[&a, &b]).is_none() && parse(&output, &[&a, &b, &a, &a]).is_none());
        for broken in ["1\0", "2\0", "1\0x\0\0", "", "1", &format!("-1\0{a}\0\0")] {
            assert!(parse(broken, &[&a]).is_none(), "{broken:?}");
        }
    }
}
