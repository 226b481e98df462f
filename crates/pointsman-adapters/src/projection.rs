//! Files that people and scripts read: written whole, durable, never through a link, never read back
//! as truth.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, statat};

use crate::phase_file::Stamp;

/// How the name of a file begins that is not finished yet.
const DRAFT: &str = ".draft-";

/// Replaces `root/folders…/name` in one step: temporary file, fsync, rename, fsync of the directory.
/// Missing folders are made; a link where a folder should be is refused. Answers the state of the
/// file, to notice later whether somebody else touched it.
pub fn write(root: &Path, folders: &[&str], name: &str, bytes: &[u8]) -> io::Result<Stamp> {
    let directory = real_folder(root, folders)?;
    let path = directory.join(name);
    let mut file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(&directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    File::open(&directory)?.sync_all()?;
    stamp(&path).ok_or_else(|| io::Error::other("the file was gone as soon as it was written"))
}

/// Removes the drafts that a killed writer left. Only for a time when nobody writes.
pub fn sweep(root: &Path, folders: &[&str]) -> io::Result<()> {
    let directory = folders.iter().fold(root.to_owned(), |path, folder| path.join(folder));
    if !directory.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(real_folder(root, folders)?)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(DRAFT.as_bytes()) && entry.file_type()?.is_file()
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes a projection; it is fine if there is none.
pub fn remove(root: &Path, folders: &[&str], name: &str) -> io::Result<()> {
    match fs::remove_file(real_folder(root, folders)?.join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The state of a projection as it is on disk: none if it is not a regular file.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let stat = statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    // The types of the time fields differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    let mtime_ns =
        (stat.st_mtime as i64).saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
    Some(Stamp { ino: stat.st_ino, mtime_ns, size: u64::try_from(stat.st_size).unwrap_or_default() })
}

fn real_folder(root: &Path, folders: &[&str]) -> io::Result<PathBuf> {
    let mut directory = root.to_owned();
    for folder in folders {
        directory.push(folder);
        match fs::symlink_metadata(&directory) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(io::Error::other(format!("{} is not a directory", directory.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(&directory)?,
            Err(error) => return Err(error),
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::{remove, stamp, sweep, write};

    const FOLDERS: [&str; 2] = ["state", "hooks"];

    #[test]
    fn a_projection_is_replaced_whole_and_its_state_tells_whether_it_was_touched() {
        let root = tempfile::tempdir().unwrap();
        let first = write(root.path(), &FOLDERS, "a.json", b"{}").unwrap();
        let path = root.path().join("state/hooks/a.json");
        assert_eq!(stamp(&path), Some(first));
        let second = write(root.path(), &FOLDERS, "a.json", b"{\"b\":1}").unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"b\":1}");
        std::fs::write(&path, "torn").unwrap();
        assert_ne!(stamp(&path), Some(second), "somebody touched it");
        remove(root.path(), &FOLDERS, "a.json").unwrap();
        remove(root.path(), &FOLDERS, "a.json").unwrap();
        assert_eq!(stamp(&path), None);
    }

    #[test]
    fn a_link_is_replaced_and_a_linked_folder_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let secret = root.path().join("secret");
        std::fs::write(&secret, "keep").unwrap();
        write(root.path(), &FOLDERS, "a.json", b"1").unwrap();
        let path = root.path().join("state/hooks/a.json");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        write(root.path(), &FOLDERS, "a.json", b"2").unwrap();
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "keep");
        std::os::unix::fs::symlink("/", root.path().join("linked")).unwrap();
        assert!(write(root.path(), &["linked", "x"], "a.json", b"3").is_err());
    }

    #[test]
    fn a_killed_writers_drafts_are_swept_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        sweep(root.path(), &FOLDERS).unwrap();
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "nothing is made by it");
        write(root.path(), &FOLDERS, "a.json", b"1").unwrap();
        let folder = root.path().join("state/hooks");
        std::fs::write(folder.join(".draft-x1"), "half").unwrap();
        sweep(root.path(), &FOLDERS).unwrap();
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["a.json"]);
    }
}
