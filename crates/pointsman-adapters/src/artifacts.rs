//! Keeps artifacts: copies what an agent or CI left in a directory of theirs to a place that only we write.
//!
//! Whoever wrote the directory may still be writing, so nothing is opened by a path of several parts: every directory and
//! file is opened beneath the one before it, and a link is never followed. The core judges names and sizes.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pointsman_core::artifact::{
    self, DEPTH, FILE_BYTES, Kept, LeftOut, Manifest, Origin, Room, TOLD_LEFT_OUT,
};
use pointsman_core::ids::Sha;
use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};

use crate::phase_file;
use crate::secret::known;

/// A manifest has at most some thousand short names.
const MANIFEST_BYTES: u64 = 1 << 20;
/// How many names of one directory are looked at.
const ENTRIES: usize = 10_000;

/// The place of one pull request's artifacts.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory of all artifacts of a project.
    pub root: PathBuf,
    /// The name of the pull request below it.
    pub key: String,
}

impl Place {
    fn dir(&self) -> PathBuf {
        self.root.join(&self.key)
    }

    /// Keeps what is in `from` in place of what this origin left before. Nothing happens if there is nothing to keep.
    pub fn keep(&self, from: &Path, origin: Origin, sha: Option<&Sha>, at: Timestamp) -> io::Result<usize> {
        let Ok(source) = open_dir(CWD, from) else { return Ok(0) };
        let dir = self.dir();
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        let name = format!("{}-{}", origin.name(), at.0);
        let target = dir.join(&name);
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        fs::DirBuilder::new().mode(0o700).create(&target)?;
        let mut copy =
            Copy { target: &target, room: Room::default(), files: Vec::new(), left_out: Vec::new() };
        copy.directory(&source, "", DEPTH)?;
        let Copy { files, left_out, .. } = copy;
        if files.is_empty() && left_out.is_empty() {
            fs::remove_dir_all(&target)?;
            return Ok(0);
        }
        let count = files.len();
        let manifest = Manifest { dir: name.clone(), sha: sha.cloned(), at, files, left_out };
        // From here on it is this one that is shown.
        phase_file::write_state_file(&self.manifest(origin), &serde_json::to_vec(&manifest)?)?;
        self.sweep(origin, &name)?;
        for gone in artifact::superseded(sizes(&self.root), artifact::PROJECT_BYTES, &self.key) {
            fs::remove_dir_all(self.root.join(gone))?;
        }
        Ok(count)
    }

    /// The artifacts of one origin, with the directory that has them.
    pub fn read(&self, origin: Origin) -> Option<(Manifest, PathBuf)> {
        let bytes = phase_file::read_result_file(&self.manifest(origin), MANIFEST_BYTES).ok()??;
        let manifest: Manifest = serde_json::from_slice(&bytes).ok()?;
        let dir = self.dir().join(&manifest.dir);
        Some((manifest, dir))
    }

    fn manifest(&self, origin: Origin) -> PathBuf {
        self.dir().join(format!("{}.json", origin.name()))
    }

    /// Removes the directories of an origin that no manifest names any more, of a killed daemon too.
    fn sweep(&self, origin: Origin, current: &str) -> io::Result<()> {
        let prefix = format!("{}-", origin.name());
        for entry in fs::read_dir(self.dir())? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(&prefix) && name != current && entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }
}

/// What each pull request keeps.
fn sizes(root: &Path) -> Vec<Kept> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let kept = |entry: fs::DirEntry| {
        let place = Place { root: root.to_owned(), key: entry.file_name().into_string().ok()? };
        let found: Vec<Manifest> =
            Origin::ALL.into_iter().filter_map(|origin| Some(place.read(origin)?.0)).collect();
        let at = found.iter().map(|manifest| manifest.at).max()?;
        let bytes = found.iter().flat_map(|manifest| &manifest.files).map(|file| file.bytes).sum();
        Some(Kept { key: place.key, at, bytes })
    };
    entries.filter_map(kept).collect()
}

struct Copy<'a> {
    target: &'a Path,
    room: Room,
    files: Vec<artifact::File>,
    left_out: Vec<String>,
}

impl Copy<'_> {
    /// `below` is the path of the directory, made of names that were judged.
    fn directory(&mut self, dir: &OwnedFd, below: &str, depth: usize) -> io::Result<()> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for entry in Dir::read_from(dir)?.take(ENTRIES) {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        // The same files are left out every time.
        names.sort();
        for name in names {
            let Some(plain) = artifact::is_plain_name(&name) else {
                self.leave_out(below, &String::from_utf8_lossy(&name), LeftOut::Name);
                continue;
            };
            let path = if below.is_empty() { plain.to_owned() } else { format!("{below}/{plain}") };
            match open_dir(dir, plain) {
                Ok(_) if depth == 0 => self.leave_out(below, plain, LeftOut::TooDeep),
                Ok(inner) => self.directory(&inner, &path, depth - 1)?,
                Err(_) => {
                    if let Err(why) = self.file(dir, plain, &path)? {
                        self.leave_out(below, plain, why);
                    }
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, dir: &OwnedFd, name: &str, path: &str) -> io::Result<Result<(), LeftOut>> {
        // Without NONBLOCK a pipe would hold us until someone opens its other end.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let Ok(fd) = openat(dir, name, flags, Mode::empty()) else { return Ok(Err(LeftOut::NotPlain)) };
        let stat = fstat(&fd)?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1;
        if !is_plain {
            return Ok(Err(LeftOut::NotPlain));
        }
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        if let Err(why) = self.room.take(size) {
            return Ok(Err(why));
        }
        let mut bytes = Vec::new();
        // It may grow meanwhile: no more than what there is room for.
        File::from(fd).take(size.min(FILE_BYTES)).read_to_end(&mut bytes)?;
        // Shown to people, who may pass it on.
        let bytes = known().mask_bytes(&bytes).unwrap_or(bytes);
        let target = self.target.join(path);
        if let Some(parent) = target.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&target)?;
        file.write_all(&bytes)?;
        self.files.push(artifact::File { name: path.to_owned(), bytes: bytes.len() as u64 });
        Ok(Ok(()))
    }

    fn leave_out(&mut self, below: &str, name: &str, why: LeftOut) {
        match self.left_out.len() {
            n if n < TOLD_LEFT_OUT => self.left_out.push(words::artifact::left_out(below, name, why)),
            TOLD_LEFT_OUT => self.left_out.push(words::artifact::MORE_LEFT_OUT.to_owned()),
            _ => {}
        }
    }
}

fn open_dir(beneath: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(beneath, path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use pointsman_core::artifact::Origin;
    use pointsman_core::time::Timestamp;

    use super::Place;

    fn names(place: &Place, origin: Origin) -> Vec<String> {
        place.read(origin).unwrap().0.files.into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn what_a_hostile_directory_holds_is_left_out_and_told() {
        let world = tempfile::tempdir().unwrap();
        let (from, secret) = (world.path().join("from"), world.path().join("secret"));
        fs::create_dir_all(from.join("shots/inner")).unwrap();
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("key"), "hunter2").unwrap();
        fs::write(from.join("report.txt"), "fine").unwrap();
        fs::write(from.join("shots/inner/a.png"), "png").unwrap();
        symlink(secret.join("key"), from.join("key")).unwrap();
        symlink(&secret, from.join("all")).unwrap();
        symlink("/proc/self/environ", from.join("environment")).unwrap();
        fs::hard_link(secret.join("key"), from.join("hard")).unwrap();
        fs::write(from.join(".profile"), "no").unwrap();
        fs::write(from.join("a\nb"), "no").unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, from.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        fs::File::create(from.join("huge")).unwrap().set_len(11 << 20).unwrap();
        fs::create_dir_all(from.join("d/e/f/g/h")).unwrap();
        fs::write(from.join("d/e/f/g/h/deep"), "no").unwrap();
        let place = Place { root: world.path().join("kept"), key: "issue-1".to_owned() };
        assert_eq!(place.keep(&from, Origin::Session, None, Timestamp(5)).unwrap(), 2);
        assert_eq!(names(&place, Origin::Session), ["report.txt", "shots/inner/a.png"]);
        let (manifest, dir) = place.read(Origin::Session).unwrap();
        let told = manifest.left_out.join("\n");
        for name in ["key", "all", "environment", "hard", "pipe", "huge", ".profile", "d/e/f/g/h"] {
            assert!(told.contains(name), "{name}: {told}");
        }
        assert!(!told.contains("a\nb") && !told.contains("hunter2"), "{told}");
        assert_eq!(fs::read_to_string(dir.join("shots/inner/a.png")).unwrap(), "png");
    }

    #[test]
    fn the_newest_take_the_place_of_what_was_there() {
        let world = tempfile::tempdir().unwrap();
        let from = world.path().join("from");
        fs::create_dir(&from).unwrap();
        let place = Place { root: world.path().join("kept"), key: "issue-1".to_owned() };
        assert_eq!(place.keep(&from, Origin::Ci, None, Timestamp(1)).unwrap(), 0, "nothing to keep");
        assert!(place.read(Origin::Ci).is_none());
        fs::write(from.join("one"), "1").unwrap();
        place.keep(&from, Origin::Ci, None, Timestamp(2)).unwrap();
        // A daemon that died left half a copy.
        fs::create_dir(world.path().join("kept/issue-1/ci-3")).unwrap();
        fs::rename(from.join("one"), from.join("two")).unwrap();
        place.keep(&from, Origin::Ci, None, Timestamp(4)).unwrap();
        assert_eq!(names(&place, Origin::Ci), ["two"]);
        let left: Vec<_> = fs::read_dir(world.path().join("kept/issue-1")).unwrap().flatten().collect();
        assert_eq!(left.len(), 2, "the files and their manifest: {left:?}");
        assert_eq!(place.keep(&world.path().join("none"), Origin::Ci, None, Timestamp(9)).unwrap(), 0);
    }
}
