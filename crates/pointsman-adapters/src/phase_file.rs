//! Files that agents write and we read, in a directory that others can write to as well.
//!
//! The phase file and its neighbours live in `/tmp` by default, so nothing about a path can be trusted before the file
//! is open: every file is opened without following a link and without waiting, and then it must be a regular file of
//! our own with one name. Anything else is refused with a reason, never followed, truncated or removed.
//!
//! What a phase means is the core's to say; this file only carries lines.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, openat, statat, unlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A phase and its reason are two short lines; more than this is no phase file.
pub const PHASE_FILE_LIMIT: u64 = 4096;

/// How the name of a file begins that is not finished yet; so many letters and digits follow.
const DRAFT: &str = ".pointsman-draft-";
const DRAFT_LETTERS: usize = 6;
/// A sweeper may come between a draft and its lock, each time anew. A try costs microseconds; this often in a row means
/// something else.
const DRAFT_TRIES: u32 = 100;

/// The reason why a file was not touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is a symbolic link.
    #[error("it is a symbolic link")]
    SymbolicLink,
    /// It is a FIFO, a directory, a socket or a device.
    #[error("it is {0}, not a regular file")]
    NotRegular(&'static str),
    /// It belongs to someone else.
    #[error("it belongs to user {0}")]
    ForeignOwner(u32),
    /// It has further names, which may be anywhere.
    #[error("it has {0} links")]
    SeveralLinks(u64),
    /// It is larger than it can rightly be.
    #[error("it has {size} bytes, more than {limit}")]
    TooLarge { size: u64, limit: u64 },
    /// It should not have been there.
    #[error("it exists already")]
    Exists,
    /// There is no such file.
    #[error("it does not exist")]
    Missing,
    #[error("{0}")]
    Os(String),
}

impl Refusal {
    /// Whether it is the same trouble. How large a file is that grows too large depends on when it is looked at.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TooLarge { .. }, Self::TooLarge { .. }) => true,
            (this, other) => this == other,
        }
    }
}

/// Tells two states of a file apart without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    pub ino: u64,
    /// The last change of its content, in nanoseconds since the epoch.
    pub mtime_ns: i64,
    pub size: u64,
}

/// The content of a phase file at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading {
    Missing,
    /// Nothing but white space: created and not written yet, or just being written. No change.
    Empty,
    /// It has a first line.
    Text {
        /// The first line without any white space.
        first_line: String,
        /// What follows `Reason:` on the second line, if that is what the second line is.
        reason: Option<String>,
        /// The state that was read.
        stamp: Stamp,
    },
    /// It is not a file to be read.
    Refused(Refusal),
}

/// The way in which [`reuse_or_create`] got its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opened {
    /// It was there, and is ours.
    Reused,
    Created,
}

/// Creates the file, which must not exist, readable and writable by us alone.
pub fn create_exclusive(path: &Path) -> Result<(), Refusal> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match openat(CWD, path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(_) => Ok(()),
        Err(Errno::EXIST) => Err(Refusal::Exists),
        Err(errno) => Err(os(errno)),
    }
}

/// For recovery: takes the file that is there if it is ours, creates it if there is none, and leaves everything else
/// as it is.
pub fn reuse_or_create(path: &Path) -> Result<Opened, Refusal> {
    match create_exclusive(path) {
        Ok(()) => Ok(Opened::Created),
        Err(Refusal::Exists) => open_own(path, OFlags::RDONLY).map(|_| Opened::Reused),
        Err(refusal) => Err(refusal),
    }
}

/// Reads a phase file.
pub fn read(path: &Path) -> Reading {
    let (bytes, stat) = match read_own(path, PHASE_FILE_LIMIT) {
        Ok(read) => read,
        Err(Refusal::Missing) => return Reading::Missing,
        Err(refusal) => return Reading::Refused(refusal),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let first_line: String =
        lines.next().unwrap_or_default().chars().filter(|c| !c.is_whitespace()).collect();
    if first_line.is_empty() {
        return Reading::Empty;
    }
    let reason = lines.next().and_then(|line| line.trim().strip_prefix("Reason:")).map(clean);
    Reading::Text { first_line, reason: reason.filter(|reason| !reason.is_empty()), stamp: stamp(&stat) }
}

/// Writes a phase as `echo` does: the file that is there is emptied and filled, so that its watchers see one close.
pub fn write_phase(path: &Path, phase_line: &str, reason: Option<&str>) -> Result<(), Refusal> {
    let (mut file, _) = open_own(path, OFlags::WRONLY)?;
    let mut text = format!("{}\n", clean(phase_line));
    if let Some(reason) = reason {
        text.push_str(&format!("Reason: {}\n", clean(reason)));
    }
    let size = text.len() as u64;
    if size > PHASE_FILE_LIMIT {
        return Err(Refusal::TooLarge { size, limit: PHASE_FILE_LIMIT });
    }
    file.set_len(0)
        .and_then(|()| file.write_all(text.as_bytes()))
        .map_err(|error| Refusal::Os(error.to_string()))
}

/// Reads a result that an agent wrote, such as a refusal or a review, if there is one.
pub fn read_result_file(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, Refusal> {
    match read_own(path, limit) {
        Ok((bytes, _)) => Ok(Some(bytes)),
        Err(Refusal::Missing) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

/// Reads the last `limit` bytes of a file of our own that grows.
pub fn read_end(path: &Path, limit: u64) -> Result<Vec<u8>, Refusal> {
    let (mut file, stat) = open_own(path, OFlags::RDONLY)?;
    let begin = u64::try_from(stat.st_size).unwrap_or(0).saturating_sub(limit);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(begin))
        .and_then(|_| Read::take(&file, limit).read_to_end(&mut bytes))
        .map_err(|error| Refusal::Os(error.to_string()))?;
    Ok(bytes)
}

/// Writes one of our own small files, whole or not at all, for us alone. A link of that name is replaced, not followed.
pub fn write_state_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for _ in 0..DRAFT_TRIES {
        let mut draft =
            tempfile::Builder::new().prefix(DRAFT).rand_bytes(DRAFT_LETTERS).tempfile_in(directory)?;
        // The lock goes with its holder, so a draft without one has no writer. What cannot be locked is never swept.
        let _ = flock(draft.as_file(), FlockOperation::LockExclusive);
        if fstat(draft.as_file())?.st_nlink == 0 {
            continue;
        }
        draft.write_all(bytes)?;
        return draft.persist(path).map(drop).map_err(|error| error.error);
    }
    Err(io::Error::other("every draft was swept away before it was written"))
}

/// Removes the drafts that killed writers left in a directory; answers how many. Those of a living writer stay, whoever
/// it is: several daemons of one user may share the directory.
pub fn sweep_drafts(directory: &Path) -> io::Result<usize> {
    let mut swept = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if !is_draft(entry.file_name().as_encoded_bytes()) {
            continue;
        }
        let path = entry.path();
        let Ok((file, _)) = open_own(&path, OFlags::RDONLY) else { continue };
        // Held until after the removal: a writer that waits for it finds its draft gone and makes another.
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && remove_own_file(&path).is_ok() {
            swept += 1;
        }
    }
    Ok(swept)
}

fn is_draft(name: &[u8]) -> bool {
    name.strip_prefix(DRAFT.as_bytes())
        .is_some_and(|rest| rest.len() == DRAFT_LETTERS && rest.iter().all(u8::is_ascii_alphanumeric))
}

/// Whether this is a regular file of our own, and no link.
pub fn is_own_file(path: &Path) -> bool {
    open_own(path, OFlags::RDONLY).is_ok()
}

/// Moves a file of our own, however large, to a place that only we can write. It is fine if there is none.
pub fn move_own_file(from: &Path, to: &Path) -> Result<(), Refusal> {
    let (mut source, _) = match open_own(from, OFlags::RDONLY) {
        Ok(opened) => opened,
        Err(Refusal::Missing) => return Ok(()),
        Err(refusal) => return Err(refusal),
    };
    let copied = File::create(to).and_then(|mut target| {
        io::copy(&mut source, &mut target)?;
        target.sync_all()
    });
    copied.map_err(|error| Refusal::Os(error.to_string()))?;
    remove_own_file(from)
}

/// Removes a file or a link of our own; the target of a link stays. It is fine if there is none.
pub fn remove_own_file(path: &Path) -> Result<(), Refusal> {
    let stat = match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(os(errno)),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Symlink => {}
        other => return Err(Refusal::NotRegular(kind(other))),
    }
    check_owner(&stat)?;
    match unlinkat(CWD, path, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(os(errno)),
    }
}

fn read_own(path: &Path, limit: u64) -> Result<(Vec<u8>, Stat), Refusal> {
    let (file, stat) = open_own(path, OFlags::RDONLY)?;
    let size = u64::try_from(stat.st_size).unwrap_or_default();
    let mut bytes = Vec::new();
    if size <= limit {
        // One byte more than allowed shows a file that grows while it is read.
        file.take(limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| Refusal::Os(error.to_string()))?;
    }
    let size = size.max(bytes.len() as u64);
    if size > limit {
        return Err(Refusal::TooLarge { size, limit });
    }
    Ok((bytes, stat))
}

/// Opens an existing file and looks at what was opened; looking at the path first would be a race.
fn open_own(path: &Path, access: OFlags) -> Result<(File, Stat), Refusal> {
    // Without NONBLOCK a FIFO would hold us until someone opens its other end.
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = openat(CWD, path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOENT => Refusal::Missing,
        Errno::LOOP => Refusal::SymbolicLink,
        Errno::ISDIR => Refusal::NotRegular("a directory"),
        // A socket, or a FIFO that is opened for writing while nobody reads it.
        Errno::NXIO => Refusal::NotRegular("a FIFO or a socket"),
        other => os(other),
    })?;
    let stat = fstat(&fd).map_err(os)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        other => return Err(Refusal::NotRegular(kind(other))),
    }
    check_owner(&stat)?;
    // The type of the count differs between architectures.
    #[allow(clippy::useless_conversion)]
    match u64::from(stat.st_nlink) {
        1 => Ok((File::from(fd), stat)),
        0 => Err(Refusal::Missing),
        links => Err(Refusal::SeveralLinks(links)),
    }
}

fn check_owner(stat: &Stat) -> Result<(), Refusal> {
    if stat.st_uid == rustix::process::geteuid().as_raw() {
        Ok(())
    } else {
        Err(Refusal::ForeignOwner(stat.st_uid))
    }
}

// The types of the time fields differ between architectures.
#[allow(clippy::unnecessary_cast)]
fn stamp(stat: &Stat) -> Stamp {
    let mtime_ns =
        (stat.st_mtime as i64).saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64);
    Stamp { ino: stat.st_ino, mtime_ns, size: u64::try_from(stat.st_size).unwrap_or_default() }
}

fn kind(file_type: FileType) -> &'static str {
    match file_type {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}

fn os(errno: Errno) -> Refusal {
    Refusal::Os(io::Error::from(errno).to_string())
}

/// One line without control characters or white space around it.
fn clean(line: &str) -> String {
    let printable: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    printable.trim().to_owned()
}
