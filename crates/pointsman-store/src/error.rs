//! The one error of this crate, and what to do about it.

use std::path::PathBuf;

use pointsman_core::ids::Number;
use pointsman_core::snapshot::Unreadable;
use rusqlite::ErrorCode;
use rusqlite::ffi::SQLITE_IOERR_WRITE;

/// A failure of a database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no database (yet): no daemon was ever started here.
    #[error("there is no database at {}", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A newer program has written it; we would not understand it.
    #[error("{} has version {found}, this program knows only up to {known}", path.display())]
    TooNew { path: PathBuf, found: i64, known: i64 },
    /// An older program has written it and a reader may not migrate; starting the daemon does.
    #[error("{} has version {found} and must first be brought to {known} by starting the daemon", path.display())]
    TooOld { path: PathBuf, found: i64, known: i64 },
    /// The file itself cannot be made or opened.
    #[error("cannot open {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// The disk is full, or a quota or a limit on file size is reached. Nothing was written.
    #[error("no space left to {operation}")]
    Full { operation: &'static str, source: rusqlite::Error },
    /// The file is damaged, or not a database at all.
    #[error("the database is damaged: cannot {operation}")]
    Corrupt { operation: &'static str, source: rusqlite::Error },
    /// Another process held the database for longer than we wait.
    #[error("the database is busy: cannot {operation}")]
    Busy { operation: &'static str, source: rusqlite::Error },
    #[error("cannot {operation}")]
    Sql { operation: &'static str, source: rusqlite::Error },
    /// A stored value cannot be read, for example a task snapshot of another version.
    #[error("a stored value is not readable: cannot {operation}")]
    Data { operation: &'static str, source: rusqlite::Error },
    /// A snapshot cannot be read. What it belongs to stands still; nothing takes its place.
    #[error("what is stored of {} {} of {} cannot be read: {}", .0.what, .0.name, .0.project, .0.why)]
    Unreadable(Box<Unreadable>),
    /// The caller asked for something that makes no sense; nothing was written.
    #[error("refused: {what}")]
    Invalid {
        /// What is wrong with it.
        what: &'static str,
    },
    #[error("there is no {what}")]
    NotFound { what: String },
    /// An open pull request for the same two branches exists: this one.
    #[error("pull request #{0} already exists for this branch")]
    Exists(Number),
    /// The commit before, whose end was in doubt, is on disk. What was computed without it must be computed again.
    #[error("the commit before this one had happened after all")]
    Overtaken,
}

/// Whether trying again makes sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Later: nothing was written, and the cause can pass.
    Later,
    /// Never: the same answer would come again.
    Never,
    /// First look whether it was written after all.
    LookFirst,
}

impl Error {
    /// The advice whether to try again.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Missing { .. } | Self::Full { .. } | Self::Busy { .. } | Self::Overtaken => Retry::Later,
            Self::Sql { source, .. } => match source.sqlite_error_code() {
                Some(ErrorCode::SystemIoFailure) => Retry::LookFirst,
                Some(ErrorCode::OutOfMemory | ErrorCode::OperationInterrupted) => Retry::Later,
                _ => Retry::Never,
            },
            Self::TooNew { .. }
            | Self::TooOld { .. }
            | Self::File { .. }
            | Self::Corrupt { .. }
            | Self::Data { .. }
            | Self::Unreadable(_)
            | Self::Invalid { .. }
            | Self::NotFound { .. }
            | Self::Exists(_) => Retry::Never,
        }
    }
}

/// Sorts what SQLite says under the operation that was tried ("append an event").
pub(crate) fn failed_to(operation: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |source| {
        // A limit on file size shows as a failed write, not as a full disk.
        let refused_write =
            source.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_WRITE);
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Error::Full { operation, source },
            Some(_) if refused_write => Error::Full { operation, source },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Error::Corrupt { operation, source }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { operation, source },
            Some(_) => Error::Sql { operation, source },
            None if is_unreadable(&source) => Error::Data { operation, source },
            None => Error::Sql { operation, source },
        }
    }
}

fn is_unreadable(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
