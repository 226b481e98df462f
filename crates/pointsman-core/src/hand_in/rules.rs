//! The rules that select the files of a working tree to hand in.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::ids::Sha;
use crate::review::is_code;
use crate::role::{HandsIn, Role};

/// The largest file that is handed in, in bytes.
pub const FILE_BYTES: u64 = 64 << 10;
/// The most files that are handed in at once.
pub const FILES: usize = 10;
/// The longest path, in bytes.
const PATH_BYTES: usize = 200;

/// The kind of a path, by its mode in git.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Regular,
    /// A file that can be run.
    Executable,
    /// A symlink, a repository, or something that git does not know yet.
    Other,
}

impl Kind {
    /// From a mode as git writes it; nothing for a path that is not there.
    pub fn of_mode(mode: &str) -> Option<Self> {
        match mode {
            "000000" => None,
            "100644" => Some(Self::Regular),
            "100755" => Some(Self::Executable),
            _ => Some(Self::Other),
        }
    }
}

/// A path in which a working tree differs from where its session began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which; odd bytes are replaced by U+FFFD.
    pub path: String,
    pub before: Option<Kind>,
    pub after: Option<Kind>,
    /// How large it is now, in bytes.
    pub size: u64,
}

/// A path that is not handed in, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub path: String,
    pub why: RefusalReason,
}

/// The reasons why a path is not handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalReason {
    /// It is none of the role's files.
    NotTheirs,
    Deleted,
    /// It is no plain file, or became another kind of file.
    NotPlain,
    /// It takes the place of something else.
    InTheWay,
    TooLarge,
    NotText,
    /// A value in it must not leave.
    HoldsSecret,
    /// There are more than enough without it.
    TooMany,
}

/// The paths that are handed in, and those that are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub taken: Vec<String>,
    pub refused: Vec<Refusal>,
}

/// Picks, for a role, among everything that changed. What is taken must still be text ([`is_text`]).
pub fn choose(role: Role, changes: &[Change]) -> Choice {
    let gone: BTreeSet<&str> =
        changes.iter().filter(|change| change.after.is_none()).map(|change| change.path.as_str()).collect();
    let mut choice = Choice::default();
    for change in changes {
        let why = match refusal(role, change, &gone) {
            None if choice.taken.len() >= FILES => Some(RefusalReason::TooMany),
            other => other,
        };
        match why {
            None => choice.taken.push(change.path.clone()),
            Some(why) => choice.refused.push(Refusal { path: change.path.clone(), why }),
        }
    }
    choice
}

fn refusal(role: Role, change: &Change, gone: &BTreeSet<&str>) -> Option<RefusalReason> {
    if !is_theirs(role, &change.path) {
        return Some(RefusalReason::NotTheirs);
    }
    match (change.before, change.after) {
        (_, None) => return Some(RefusalReason::Deleted),
        (None, Some(Kind::Regular)) => {}
        (Some(before), Some(after)) if before == after && after != Kind::Other => {}
        (_, Some(_)) => return Some(RefusalReason::NotPlain),
    }
    // A file where a folder was, or a folder where a file was.
    let above = |path: &str, below: &str| below.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'));
    if gone.iter().any(|gone| above(gone, &change.path) || above(&change.path, gone)) {
        return Some(RefusalReason::InTheWay);
    }
    (change.size > FILE_BYTES).then_some(RefusalReason::TooLarge)
}

/// The table: whose files are which.
fn is_theirs(role: Role, path: &str) -> bool {
    if !is_plain(path) {
        return false;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match role.hands_in() {
        Some(HandsIn::Guides) => name == "AGENTS.md",
        Some(HandsIn::Notes) => {
            path == format!("{role}/MEMORY.md")
                || (folder == format!("{role}/journal") && name.ends_with(".md") && is_word(name))
        }
        None => false,
    }
}

/// A path in folders that nobody hides: `.claude/agents/AGENTS.md` would be more than a text about a folder. It stands in a
/// commit's message as well, so it has no room for words such as `closes #7`.
fn is_plain(path: &str) -> bool {
    path.len() <= PATH_BYTES
        && path.chars().all(|c| c.is_alphanumeric() || "/-_.+@".contains(c))
        && path.split('/').all(|part| !part.is_empty() && !part.starts_with(['.', '-']))
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Whether it can be handed in as a text.
pub fn is_text(content: &[u8]) -> bool {
    std::str::from_utf8(content).is_ok_and(|text| !text.contains('\0'))
}

/// Tells one content of files from another: their paths, each with git's name for what is in it.
pub fn content<'f>(files: impl IntoIterator<Item = (&'f str, &'f Sha)>) -> String {
    let mut hash = Sha256::new();
    for (path, blob) in files {
        hash.update(format!("{path}\0{blob}\0"));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The facts about a commit that CI has said nothing about in all its time.
#[derive(Clone, Copy, Debug)]
pub struct UnreportedCi<'a> {
    /// Whether anything was reported: one that has begun is not one that leaves such files out.
    pub begun: bool,
    /// Whether the project names checks that there have to be.
    pub required: bool,
    /// Whether the merge queue tests with a command of its own.
    pub gate: bool,
    pub files: &'a [String],
}

impl UnreportedCi<'_> {
    /// Whether CI leaves such changes out, as the review agent does with those without code: then the merge queue's own test
    /// is enough. If that asks the same CI, it would only be waited for once more.
    pub fn leaves_out(self) -> bool {
        !self.begun && !self.required && self.gate && !self.files.iter().any(|file| is_code(file))
    }
}

/// Whether the next session of a role begins with what the last one handed in and what is not on the main branch yet: its
/// own notes. What steers other agents is not carried on before it landed.
pub fn carries_on(role: Role) -> bool {
    role.hands_in() == Some(HandsIn::Notes)
}
