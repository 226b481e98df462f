//! Failures of a call, in words without secrets, and what may be done about them.

use std::time::Duration;

use crate::retry::Retry;

/// A call that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {host} {trouble}")]
pub struct Error {
    pub operation: &'static str,
    /// Whom it was asked of.
    pub host: String,
    pub trouble: ErrorKind,
    pub(super) retry: Retry,
}

/// The cause of a failed call. It is displayed after the host's name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    #[error("cannot be reached: {reason}")]
    Unreachable { reason: String },
    /// Something was sent, and no whole answer came.
    #[error("did not answer: {reason}")]
    Broken { reason: String },
    /// It failed too often and is left alone.
    #[error("failed too often or asked for a pause; it is asked again in {} s", for_.as_secs() + 1)]
    Resting { for_: Duration },
    /// It has had enough of us for now.
    #[error("has a limit on requests that is used up; it has room again in {} s", for_.as_secs() + 1)]
    Limited { for_: Duration },
    /// It said no, or that it cannot.
    #[error("answered {status}{}", said(reason))]
    Status { status: u16, reason: String },
    /// It points somewhere else. We do not follow with a token in hand.
    #[error(
        "answered {status} and points to {to}: is the address right, or is a proxy's login page in between?"
    )]
    Moved { status: u16, to: String },
    /// A web page came instead of data.
    #[error(
        "answered with a web page{} instead of data: is the address right, or is a proxy's login page in between?",
        titled(title)
    )]
    WebPage { title: String },
    /// The data ends in the middle.
    #[error("answered with data that is cut off or garbled")]
    Cut,
    /// The data is whole, but not what was expected.
    #[error("answered with something unexpected: {what}")]
    Unexpected { what: String },
    #[error("answered with more than {limit} bytes")]
    TooLarge {
        /// The most that is taken.
        limit: u64,
    },
    /// More pages than is taken.
    #[error("has more than {pages} pages of them")]
    Endless {
        /// The most that is taken.
        pages: u32,
    },
}

fn said(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

fn titled(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!(" (\"{title}\")") }
}

impl Error {
    /// Whether the same call may be made again, must be looked at first, or fails for good.
    pub fn retry(&self) -> Retry {
        self.retry
    }

    /// The status the server answered with, if it was that.
    pub fn status(&self) -> Option<u16> {
        match self.trouble {
            ErrorKind::Status { status, .. } => Some(status),
            ErrorKind::Unreachable { .. }
            | ErrorKind::Broken { .. }
            | ErrorKind::Resting { .. }
            | ErrorKind::Limited { .. }
            | ErrorKind::Moved { .. }
            | ErrorKind::WebPage { .. }
            | ErrorKind::Cut
            | ErrorKind::Unexpected { .. }
            | ErrorKind::TooLarge { .. }
            | ErrorKind::Endless { .. } => None,
        }
    }

    /// The time to wait before the next call, as the server or our own circuit breaker asks for it.
    pub fn pause(&self) -> Option<Duration> {
        match self.trouble {
            ErrorKind::Resting { for_ } | ErrorKind::Limited { for_ } => Some(for_),
            ErrorKind::Unreachable { .. }
            | ErrorKind::Broken { .. }
            | ErrorKind::Status { .. }
            | ErrorKind::Moved { .. }
            | ErrorKind::WebPage { .. }
            | ErrorKind::Cut
            | ErrorKind::Unexpected { .. }
            | ErrorKind::TooLarge { .. }
            | ErrorKind::Endless { .. } => None,
        }
    }

    /// The server's own words, if it said no.
    pub fn words(&self) -> &str {
        match &self.trouble {
            ErrorKind::Status { reason, .. } => reason,
            _ => "",
        }
    }
}
