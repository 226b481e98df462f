//! Merging with a git before 2.41, which can neither be told a merge base nor take attributes from a commit. Both come
//! out the same by detours, at the cost of a few calls more:
//!
//! * A merge has the base that it should have if two commits are merged that have it as their only parent and are
//!   otherwise like the two sides. They are needed for that moment only and never become part of the mirror.
//! * Attributes are read from a working tree that holds nothing but the commit's files of attributes.

use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use pointsman_core::ids::Sha;

use super::commit::Commit;
use super::incoming::Incoming;
use super::inspect::nul_fields;
use super::mirror::Mirror;
use super::{Call, Error, files};

/// Where attributes are in a tree.
const ATTRIBUTES: &str = ".gitattributes";

/// What an older git needs beside the objects of a merge.
pub(super) struct OlderGit {
    attributes: PathBuf,
    stand_ins: PathBuf,
}

impl OlderGit {
    /// Prepares merges with the attributes of this commit, in the scratch directory of `incoming`.
    pub(super) fn prepare(
        mirror: &Mirror,
        incoming: &Incoming<'_>,
        attributes_of: &Sha,
    ) -> Result<Self, Error> {
        let attributes = incoming.scratch().join("attributes-tree");
        files::create_dir_all(&attributes)?;
        write_attributes(mirror, attributes_of, &attributes)?;
        let stand_ins = incoming.scratch().join("stand-ins");
        files::create_dir_all(&stand_ins)?;
        let borrowed = incoming.scratch().join("objects/info/alternates");
        let append = |line: &[u8]| OpenOptions::new().append(true).open(&borrowed)?.write_all(line);
        // Relative to the directory of objects.
        append(b"../stand-ins\n").map_err(files::error("write", &borrowed))?;
        Ok(Self { attributes, stand_ins })
    }

    /// The call with the attributes of the commit.
    pub(super) fn with_attributes(&self, call: Call) -> Call {
        call.work_tree(&self.attributes)
    }

    /// Commits of these trees with `base` as their only merge base, whatever the history of the sides is. (If the trees
    /// are the same, so are the commits, and there is nothing to merge.)
    pub(super) fn stand_ins(
        &self,
        incoming: &Incoming<'_>,
        base: &Sha,
        trees: [&Sha; 2],
    ) -> Result<[Sha; 2], Error> {
        let write = |tree| {
            let hash_object = incoming.call("hash-object").env("GIT_OBJECT_DIRECTORY", &self.stand_ins);
            Commit::stand_in(tree, base).write(hash_object)
        };
        Ok([write(trees[0])?, write(trees[1])?])
    }
}

/// Writes the commit's files of attributes, byte for byte, to where they are in its tree. As in git a link is none.
fn write_attributes(mirror: &Mirror, commit: &Sha, dir: &Path) -> Result<(), Error> {
    let tree = format!("{commit}^{{commit}}");
    let listed = mirror.call("ls-tree").args(["-r", "-z", "--full-tree", &tree]).bytes()?;
    let (blobs, places): (Vec<Sha>, Vec<PathBuf>) = nul_fields(&listed).filter_map(attributes_file).unzip();
    if blobs.is_empty() {
        return Ok(());
    }
    for (place, content) in places.iter().zip(mirror.read_blobs(&blobs)?) {
        let place = dir.join(place);
        files::create_dir_all(place.parent().unwrap_or(dir))?;
        fs::write(&place, content).map_err(files::error("write", &place))?;
    }
    Ok(())
}

/// `<mode> SP <type> SP <object> TAB <path>`, if it is a regular file of attributes in a place that is within the tree.
fn attributes_file(entry: &[u8]) -> Option<(Sha, PathBuf)> {
    let tab = entry.iter().position(|b| *b == b'\t')?;
    let meta = std::str::from_utf8(&entry[..tab]).ok()?;
    let path = Path::new(OsStr::from_bytes(&entry[tab + 1..]));
    let (mode, object) = (meta.split(' ').next()?, meta.split(' ').nth(2)?);
    let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
    let counts = mode.starts_with("100") && path.file_name() == Some(OsStr::new(ATTRIBUTES)) && is_inside;
    if counts { Some((Sha::new(object)?, path.to_owned())) } else { None }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::attributes_file;

    #[test]
    fn only_regular_files_of_attributes_within_the_tree_are_taken() {
        let id = "1".repeat(40);
        let taken = |mode: &str, path: &str| {
            let entry = format!("{mode} blob {id}\t{path}");
            attributes_file(entry.as_bytes()).map(|(_, path)| path)
        };
        for good in [".gitattributes", "a\tb/.gitattributes", "a/b\n/.gitattributes"] {
            assert_eq!(taken("100644", good), Some(PathBuf::from(good)));
        }
        assert!(taken("100755", ".gitattributes").is_some());
        for bad in ["../.gitattributes", "/.gitattributes", "a/../../.gitattributes", "x.gitattributes", "a"]
        {
            assert_eq!(taken("100644", bad), None, "{bad}");
        }
        for mode in ["120000", "160000", "040000"] {
            assert_eq!(taken(mode, ".gitattributes"), None, "{mode}");
        }
        assert_eq!(attributes_file(b"100644 blob\t.gitattributes"), None);
    }
}
