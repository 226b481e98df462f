//! Files of repositories: written whole or not at all, and read without trusting whoever wrote them.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::Error;

/// Where a directory is put that is in the way and may hold somebody's work.
const QUARANTINE: &str = "quarantine";
/// How many directories of one name can be in quarantine.
const QUARANTINE_LIMIT: u32 = 10_000;

pub(super) fn error(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

/// The absolute form of a path, so that it can never be taken for an option or a remote address, and so that it can
/// stand in a line of a file.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, Error> {
    let path = std::path::absolute(path).map_err(error("make absolute", path))?;
    if path.as_os_str().as_bytes().contains(&b'\n') {
        return Err(Error::NotOurs { path, expected: "a path without line breaks" });
    }
    Ok(path)
}

pub(super) fn create_dir_all(dir: &Path) -> Result<(), Error> {
    fs::create_dir_all(dir).map_err(error("create", dir))
}

/// Replaces a file in one step; nobody ever sees half of it.
pub(super) fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let write = || -> io::Result<()> {
        // Another process of ours may write the same file at this moment: each has a draft of its own.
        let mut file = tempfile::Builder::new()
            .prefix(".draft-")
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(directory)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(error("write", path))
}

/// The same below a directory that somebody else changes at this moment: directories on the way are made, and no link is followed.
pub(super) fn write_beneath(root: &Path, below: &Path, bytes: &[u8], mode: u32) -> Result<(), Error> {
    let path = root.join(below);
    let write = || -> io::Result<()> {
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let dir = open_beneath(root, below.parent().unwrap_or(Path::new("")))?;
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let draft = format!(".draft-{}-{number}", std::process::id());
        // A draft of this name is from a process that is gone.
        let _ = unlinkat(&dir, &draft, AtFlags::empty());
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&dir, &draft, flags, Mode::from_raw_mode(mode))?);
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(renameat(&dir, &draft, &dir, name)?)
    };
    write().map_err(error("write", &path))
}

/// Makes a directory below one that somebody else changes at this moment, or takes the one that is there. No link is followed.
pub(super) fn create_beneath(root: &Path, below: &Path) -> Result<(), Error> {
    let path = root.join(below);
    open_beneath(root, below).map(drop).map_err(|source| {
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP | Errno::NOTDIR) => Error::NotOurs { path, expected: "a directory" },
            Some(_) | None => error("create", &path)(source),
        }
    })
}

fn open_beneath(root: &Path, below: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = openat(CWD, root, flags, Mode::empty())?;
    for part in below {
        match mkdirat(&dir, part, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => dir = openat(&dir, part, flags, Mode::empty())?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(dir)
}

/// Reads a file that anybody may have put there: no symlink, no device or pipe, not more than `cap` bytes. Nothing if
/// it does not exist.
pub(super) fn read_untrusted(path: &Path, cap: u64) -> Result<Option<Vec<u8>>, Error> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file: File = match opened {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(error("open", path)(e)),
    };
    let meta = file.metadata().map_err(error("look at", path))?;
    if !meta.is_file() || meta.len() > cap {
        return Err(Error::NotOurs { path: path.to_owned(), expected: "a regular file of a sensible size" });
    }
    let mut bytes = Vec::new();
    file.take(cap).read_to_end(&mut bytes).map_err(error("read", path))?;
    Ok(Some(bytes))
}

/// The path with something added to its last part.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

/// Moves a finished directory to its place, which must be free.
pub(super) fn move_into_place(from: &Path, to: &Path) -> Result<(), Error> {
    rename_new(from, to).map_err(error("move into place", to))
}

/// Moves what is at `dir` to `quarantine/` beside it and answers where it is now. Nothing is ever deleted.
pub(super) fn set_aside(dir: &Path) -> Result<PathBuf, Error> {
    let nameless = || Error::NotOurs { path: dir.to_owned(), expected: "a directory with a name" };
    let parent = dir.parent().ok_or_else(nameless)?.join(QUARANTINE);
    let name = dir.file_name().ok_or_else(nameless)?;
    create_dir_all(&parent)?;
    for n in 1..=QUARANTINE_LIMIT {
        let place = with_suffix(&parent.join(name), &format!("-{n}"));
        match rename_new(dir, &place) {
            Ok(()) => return Ok(place),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(error("set aside", dir)(e)),
        }
    }
    Err(Error::NotOurs { path: parent, expected: "a quarantine with room" })
}

/// Where the directories of this name are that were set aside.
pub(super) fn set_aside_from(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let nameless = || Error::NotOurs { path: dir.to_owned(), expected: "a directory with a name" };
    let parent = dir.parent().ok_or_else(nameless)?.join(QUARANTINE);
    let name = dir.file_name().ok_or_else(nameless)?;
    let places = (1..=QUARANTINE_LIMIT).map(|n| with_suffix(&parent.join(name), &format!("-{n}")));
    Ok(places.filter(|place| place.is_dir()).collect())
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot: a directory is never renamed over one that holds anything anyway.
        Err(Errno::INVAL | Errno::NOSYS) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        other => other.map_err(io::Error::from),
    }
}

/// A value for a git configuration file, in quotes.
pub(super) fn config_value(value: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in value {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::{config_value, read_untrusted, set_aside, write_atomic};

    #[test]
    fn a_symlink_or_a_large_file_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        write_atomic(&file, b"12345", 0o600).unwrap();
        assert_eq!(read_untrusted(&file, 5).unwrap().unwrap(), b"12345");
        assert!(read_untrusted(&file, 4).is_err());
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        assert!(read_untrusted(&dir.path().join("link"), 5).is_err());
        assert!(read_untrusted(dir.path(), 5).is_err());
        assert!(read_untrusted(&dir.path().join("none"), 5).unwrap().is_none());
    }

    #[test]
    fn what_is_set_aside_never_replaces_what_was_set_aside_before() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        for n in 1..=3 {
            std::fs::create_dir(&tree).unwrap();
            std::fs::write(tree.join("work"), n.to_string()).unwrap();
            let place = set_aside(&tree).unwrap();
            assert_eq!(std::fs::read_to_string(place.join("work")).unwrap(), n.to_string());
        }
        assert_eq!(std::fs::read_dir(dir.path().join("quarantine")).unwrap().count(), 3);
    }

    #[test]
    fn a_configuration_value_cannot_end_its_quotes() {
        assert_eq!(config_value(b"a\"b\\c\nd;#"), b"\"a\\\"b\\\\c\\nd;#\"");
    }
}
