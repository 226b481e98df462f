//! Failures of git, in words that hold no credential.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use pointsman_core::ids::Sha;

use crate::process::{self, End};
use crate::retry::Retry;

/// How much of git's own words an error carries.
const EXCERPT: usize = 2000;
/// How much of a call's arguments an error carries.
const INPUTS: usize = 400;

/// An operation of git failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program could not be run.
    #[error("git {operation} [{inputs}] could not be run")]
    Run { operation: &'static str, inputs: String, source: process::Error },
    /// Git ran and did not succeed.
    #[error("git {operation} [{inputs}] failed ({end}): {stderr}")]
    Failed {
        operation: &'static str,
        inputs: String,
        end: End,
        /// The last of what it said.
        stderr: String,
        /// What may be done about it.
        retry: Retry,
    },
    /// Git answered something that it should not.
    #[error("git {operation} [{inputs}] gave an unexpected answer: {what}")]
    Unexpected {
        operation: &'static str,
        inputs: String,
        /// What was wrong with it.
        what: &'static str,
    },
    /// A file of a repository could not be read or written.
    #[error("could not {what} {}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    /// What is at a path is not what we put there.
    #[error("{} is not {expected}", path.display())]
    NotOurs { path: PathBuf, expected: &'static str },
    /// An address that git could take for something else.
    #[error("`{url}` is not a usable remote address")]
    BadRemote { url: String },
    /// A commit that should be there is not.
    #[error("commit {sha} is not in {}", repository.display())]
    NoCommit {
        sha: Sha,
        /// Where it was looked for.
        repository: PathBuf,
    },
    /// Two commits have no history in common.
    #[error("{head} and {onto} have no common history")]
    Unrelated {
        head: Sha,
        /// The commit it should go onto.
        onto: Sha,
    },
    /// A branch of more commits than are replayed.
    #[error("the branch has {commits} commits, and at most {most} are replayed: squash or merge it instead")]
    TooLong { commits: usize, most: usize },
    /// A reference that should be new exists already and is something else.
    #[error("{refname} exists already")]
    RefTaken { refname: String },
}

impl Error {
    /// The advice for the caller: try again, look first, or give up.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Run { source, .. } => source.retry(),
            Self::Failed { retry, .. } => *retry,
            Self::File { .. } => Retry::Later,
            Self::Unexpected { .. }
            | Self::NotOurs { .. }
            | Self::BadRemote { .. }
            | Self::NoCommit { .. }
            | Self::Unrelated { .. }
            | Self::TooLong { .. }
            | Self::RefTaken { .. } => Retry::Never,
        }
    }
}

/// A call's arguments for an error message.
pub(super) fn describe(args: &[OsString]) -> String {
    let words: Vec<String> = args.iter().map(|arg| redact(&arg.to_string_lossy())).collect();
    let text = words.join(" ");
    match text.char_indices().nth(INPUTS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// The end of what git said, on one line, without control characters.
pub(super) fn excerpt(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(EXCERPT)..]);
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.split(' ').map(redact).collect::<Vec<_>>().join(" "))
        .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>())
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines.join("; ")
}

/// Cuts the user and password out of an address.
pub(super) fn redact(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{excerpt, redact};

    #[test]
    fn an_address_loses_its_credentials() {
        assert_eq!(redact("https://me:secret@host/x@y.git"), "https://…@host/x@y.git");
        assert_eq!(redact("https://host/x@y.git"), "https://host/x@y.git");
        assert_eq!(excerpt(b"fatal: 'https://a:b@h/'\n\n\x1b[31mbad\n"), "fatal: 'https://…@h/'; [31mbad");
    }
}
