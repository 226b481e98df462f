//! A checkout of one commit as two layers: a warm tree of another commit that nobody ever writes, and a private layer with the
//! difference. It costs what the difference costs, however many files there are.
//!
//! The layers are put together by an overlay mount in a user namespace ([`crate::sandbox::mount_layers`]), where the program
//! runs. Whatever it writes goes to the private layer, which is removed with it: no other run ever sees it.

use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use pointsman_core::ids::Sha;
use serde::{Deserialize, Serialize};

use super::checkout::{checkout_exact, remove_checkout, write_repository};
use super::inspect::nul_fields;
use super::mirror::Mirror;
use super::{Error, files};
use crate::machine::boot_id;

/// More differences than this, and a warm tree is of no use for a commit.
const DIFFERENCES: usize = 5_000;
/// In the directory of a warm tree: its commit, and when the machine was switched on. Written last.
const MARKER: &str = "at";
const MARKER_CAP: u64 = 1024;

/// A checkout of a landed commit in which nothing ever ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmTree {
    dir: PathBuf,
    pub at: Sha,
}

/// The layers of one checkout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layers {
    pub lower: PathBuf,
    pub upper: PathBuf,
    pub work: PathBuf,
    /// The file with the paths that the commit does not have, each ended by a NUL.
    pub gone: PathBuf,
    /// In how many files the commit differs from the lower layer.
    pub changed: usize,
}

impl WarmTree {
    /// Makes a warm tree of a commit. What was at `dir` before is removed.
    pub fn make(mirror: &Mirror, dir: &Path, at: &Sha) -> Result<Self, Error> {
        remove_checkout(dir)?;
        files::create_dir_all(dir)?;
        let warm = Self { dir: dir.to_owned(), at: at.clone() };
        checkout_exact(mirror, at, &warm.tree())?;
        let marker = dir.join(MARKER);
        fs::write(&marker, warm.marker()).map_err(files::error("write", &marker))?;
        Ok(warm)
    }

    /// The warm tree at a place, if it was finished since this machine was switched on: its files are never synced.
    pub fn find(dir: &Path) -> Option<Self> {
        let text = files::read_untrusted(&dir.join(MARKER), MARKER_CAP).ok()??;
        let text = String::from_utf8(text).ok()?;
        let warm = Self { dir: dir.to_owned(), at: Sha::new(text.lines().next()?)? };
        (warm.marker() == text).then_some(warm)
    }

    /// The directory that holds it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn marker(&self) -> String {
        format!("{}\n{}\n", self.at, boot_id().unwrap_or_default())
    }

    fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// Moves the files of the tree to `dir`, without their repository, and answers its index. The warm tree is used up. Nothing if
    /// it is gone already.
    pub(super) fn become_bare_files(&self, dir: &Path) -> Result<Option<Vec<u8>>, Error> {
        if fs::rename(self.tree(), dir).is_err() {
            return Ok(None);
        }
        let git_dir = dir.join(".git");
        let index = git_dir.join("index");
        let bytes = fs::read(&index).map_err(files::error("read", &index))?;
        remove_checkout(&git_dir)?;
        remove_checkout(&self.dir)?;
        Ok(Some(bytes))
    }

    /// Makes the private layer for a checkout of `sha` below `place`. None if the commit is too different, or differs in
    /// something that only a checkout of its own can show.
    pub fn layers_for(&self, mirror: &Mirror, sha: &Sha, place: &Path) -> Result<Option<Layers>, Error> {
        let Some(differences) = self.differences(mirror, sha)? else { return Ok(None) };
        remove_checkout(place)?;
        let layers = Layers {
            lower: self.tree(),
            upper: place.join("upper"),
            work: place.join("work"),
            gone: place.join("gone"),
            changed: differences.there.len() + differences.gone.len(),
        };
        files::create_dir_all(&layers.work)?;
        let git_dir = layers.upper.join(".git");
        write_repository(mirror, sha, &layers.upper)?;
        let index = git_dir.join("index");
        fs::copy(layers.lower.join(".git/index"), &index).map_err(files::error("copy", &index))?;
        let call = |operation| mirror.git.call(operation).git_dir(&git_dir).work_tree(&layers.lower);
        if self.at != *sha {
            call("read-tree").args(["-m", sha.as_str()]).ok()?;
        }
        if !differences.there.is_empty() {
            let mut prefix = std::ffi::OsString::from("--prefix=");
            prefix.push(&layers.upper);
            prefix.push("/");
            let paths = differences.there.concat();
            call("checkout-index").args(["--quiet", "-z", "--stdin"]).arg(prefix).stdin(paths).ok()?;
        }
        fs::write(&layers.gone, differences.gone.concat()).map_err(files::error("write", &layers.gone))?;
        Ok(Some(layers))
    }

    fn differences(&self, mirror: &Mirror, sha: &Sha) -> Result<Option<Differences>, Error> {
        let mut found = Differences::default();
        if self.at == *sha {
            return Ok(Some(found));
        }
        let listed = mirror
            .call("diff-tree")
            .args(["-r", "-z", "--raw", "--no-renames", self.at.as_str(), sha.as_str()])
            .bytes()?;
        let mut fields = nul_fields(&listed);
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let head = String::from_utf8_lossy(head).into_owned();
            let mut words = head.trim_start_matches(':').split(' ');
            let (before, after) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let is_special = [before, after].contains(&SUBMODULE) || path.ends_with(ATTRIBUTES);
            // How a file is written out, and what lies in another repository, git alone knows.
            if is_special || found.there.len() + found.gone.len() >= DIFFERENCES {
                return Ok(None);
            }
            let list = if after == ABSENT { &mut found.gone } else { &mut found.there };
            list.push([path, b"\0"].concat());
        }
        Ok(Some(found))
    }
}

/// Mode of a submodule.
const SUBMODULE: &str = "160000";
/// Mode of what is not there.
const ABSENT: &str = "000000";
const ATTRIBUTES: &[u8] = b".gitattributes";

/// Paths in which a commit differs from the warm tree, each ended by a NUL.
#[derive(Default)]
struct Differences {
    there: Vec<Vec<u8>>,
    gone: Vec<Vec<u8>>,
}

impl Layers {
    /// Takes the paths out of the mounted checkout that its commit does not have, with directories that are empty then.
    pub fn remove_gone(&self, checkout: &Path) -> std::io::Result<()> {
        let list = fs::read(&self.gone)?;
        for path in nul_fields(&list) {
            let path = checkout.join(std::ffi::OsString::from_vec(path.to_vec()));
            match fs::symlink_metadata(&path) {
                // A directory of the commit has taken its place.
                Ok(meta) if meta.is_dir() => continue,
                Ok(_) => fs::remove_file(&path)?,
                // A file of the commit stands above it.
                Err(_) => continue,
            }
            let mut above = path.parent();
            while let Some(dir) = above.filter(|dir| *dir != checkout && dir.starts_with(checkout)) {
                if fs::remove_dir(dir).is_err() {
                    break;
                }
                above = dir.parent();
            }
        }
        Ok(())
    }

    /// A file of the checkout, where one of the layers has it.
    pub fn file(&self, path: &Path) -> Option<PathBuf> {
        [&self.upper, &self.lower].into_iter().map(|layer| layer.join(path)).find(|file| file.exists())
    }

    /// The options of the overlay mount, without what a path could add to them.
    pub fn mount_options(&self) -> Option<Vec<u8>> {
        let mut options = b"userxattr".to_vec();
        for (name, dir) in [("lowerdir", &self.lower), ("upperdir", &self.upper), ("workdir", &self.work)] {
            let dir = dir.as_os_str().as_bytes();
            if dir.iter().any(|byte| b",:\\\"".contains(byte)) {
                return None;
            }
            options.extend(format!(",{name}=").into_bytes());
            options.extend(dir);
        }
        Some(options)
    }
}
