//! Artifacts: files that a session or CI leaves for the people who review its pull request.
//!
//! Agents write them, so names, sizes and numbers are judged here before anything is copied. What is left out is told.

use serde::{Deserialize, Serialize};

use crate::ids::Sha;
use crate::text;
use crate::time::Timestamp;

/// The variable that names the directory for artifacts.
pub const VARIABLE: &str = "POINTSMAN_ARTIFACTS";

/// The limits of what is kept from one session or one run of CI.
pub const FILES: usize = 50;
pub const FILE_BYTES: u64 = 10 << 20;
pub const TOTAL_BYTES: u64 = 50 << 20;
/// Directories below each other.
pub const DEPTH: usize = 4;
/// The most that is kept of one project. The oldest pull requests lose theirs first.
pub const PROJECT_BYTES: u64 = 1 << 30;
/// The longest name of one file or directory.
const NAME_BYTES: usize = 120;
/// How many files that are left out are told by name.
pub const TOLD_LEFT_OUT: usize = 20;

/// The place that artifacts come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Session,
    Ci,
}

impl Origin {
    pub const ALL: [Self; 2] = [Self::Session, Self::Ci];

    /// The name that scripts see.
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Ci => "ci",
        }
    }
}

/// The artifacts that are kept from one origin, as their manifest has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The directory beside the manifest that has the files.
    pub dir: String,
    /// The commit that they are about, if that is known.
    pub sha: Option<Sha>,
    pub at: Timestamp,
    pub files: Vec<File>,
    /// What was left out, and why, a sentence each.
    pub left_out: Vec<String>,
}

/// One kept file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Below the directory, with `/` between the parts.
    pub name: String,
    pub bytes: u64,
}

/// A reason why a file is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Its name could mislead a person or a program.
    Name,
    /// A link, a pipe, a device, a file with several names, or one that cannot be read.
    NotPlain,
    TooLarge,
    /// The total is used up.
    TooMuch,
    TooMany,
    TooDeep,
}

/// Whether one part of a path is a name that everybody reads alike.
pub fn is_plain_name(name: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(name).ok()?;
    let starts_well = !name.starts_with(['.', '-', '~']);
    let reads_alike = !name.contains(|c: char| c.is_control() || c == '\\') && text::visible(name) == name;
    (!name.is_empty() && name.len() <= NAME_BYTES && starts_well && reads_alike).then_some(name)
}

/// The room that is left while artifacts are collected.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    files: usize,
    bytes: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self { files: FILES, bytes: TOTAL_BYTES }
    }
}

impl Room {
    /// Takes the room for a file of this size.
    pub fn take(&mut self, bytes: u64) -> Result<(), LeftOut> {
        if bytes > FILE_BYTES {
            return Err(LeftOut::TooLarge);
        }
        if self.files == 0 {
            return Err(LeftOut::TooMany);
        }
        let left = self.bytes.checked_sub(bytes).ok_or(LeftOut::TooMuch)?;
        (self.files, self.bytes) = (self.files - 1, left);
        Ok(())
    }
}

/// The artifacts of one pull request, as a limit of the project sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    pub key: String,
    pub at: Timestamp,
    pub bytes: u64,
}

/// The pull requests whose artifacts go, oldest first, so that the rest fits. `newest` was kept just now and stays.
pub fn superseded(mut kept: Vec<Kept>, limit: u64, newest: &str) -> Vec<String> {
    kept.sort_by(|a, b| a.at.cmp(&b.at).then_with(|| a.key.cmp(&b.key)));
    let mut total: u64 = kept.iter().map(|one| one.bytes).sum();
    let mut gone = Vec::new();
    for one in kept.into_iter().filter(|one| one.key != newest) {
        if total <= limit {
            break;
        }
        total = total.saturating_sub(one.bytes);
        gone.push(one.key);
    }
    gone
}

#[cfg(test)]
mod tests {
    use super::{FILE_BYTES, FILES, Kept, LeftOut, Room, TOTAL_BYTES, is_plain_name, superseded};
    use crate::time::Timestamp;

    #[test]
    fn names_that_mislead_are_left_out() {
        let long = "x".repeat(121);
        let cases: [(&[u8], bool); 13] = [
            (b"report.html", true),
            (b"Screen shot 1.png", true),
            ("größe.txt".as_bytes(), true),
            (b"", false),
            (b".", false),
            (b"..", false),
            (b".bashrc", false),
            (b"-rf", false),
            (b"~root", false),
            (b"two\nlines", false),
            (b"red\x1b[31m", false),
            ("invoice\u{202e}gpj.exe".as_bytes(), false),
            (b"not\xffutf8", false),
        ];
        for (name, fits) in cases {
            assert_eq!(is_plain_name(name).is_some(), fits, "{:?}", String::from_utf8_lossy(name));
        }
        assert_eq!(is_plain_name(long.as_bytes()), None);
    }

    #[test]
    fn the_room_ends() {
        let mut room = Room::default();
        assert_eq!(room.take(FILE_BYTES + 1), Err(LeftOut::TooLarge));
        for _ in 0..TOTAL_BYTES / FILE_BYTES {
            room.take(FILE_BYTES).unwrap();
        }
        assert_eq!(room.take(1), Err(LeftOut::TooMuch));
        room.take(0).unwrap();
        let mut room = Room::default();
        for _ in 0..FILES {
            room.take(1).unwrap();
        }
        assert_eq!(room.take(1), Err(LeftOut::TooMany));
    }

    #[test]
    fn the_oldest_go_first_and_the_newest_stays() {
        let kept = |key: &str, at, bytes| Kept { key: key.to_owned(), at: Timestamp(at), bytes };
        let all = vec![kept("c", 3, 40), kept("a", 1, 40), kept("b", 2, 40)];
        assert_eq!(superseded(all.clone(), 120, "c"), Vec::<String>::new());
        assert_eq!(superseded(all.clone(), 80, "c"), ["a"]);
        assert_eq!(superseded(all.clone(), 50, "c"), ["a", "b"]);
        assert_eq!(superseded(all, 10, "a"), ["b", "c"], "what was just kept is never the one that goes");
    }
}
