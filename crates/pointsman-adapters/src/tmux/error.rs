//! Failures of the tmux server.

use std::io;
use std::path::PathBuf;

use super::server::SOCKET_PATH_LIMIT;
use crate::phase_file::Refusal;
use crate::process;
use crate::retry::Retry;

/// A failed operation on the tmux server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The path does not fit into a socket address.
    #[error(
        "socket path {path} has {len} bytes, at most {SOCKET_PATH_LIMIT} fit; set a shorter runtime directory"
    )]
    SocketTooLong {
        /// The path that was asked for.
        path: PathBuf,
        len: usize,
    },
    /// Something that is not a socket of ours sits at the socket's path; it is left alone.
    #[error("{path} exists and is not a socket of ours")]
    SocketOccupied { path: PathBuf },
    /// A value that becomes part of a tmux command is outside its character set.
    #[error("{what} {value:?} is not made of {allowed}")]
    Malformed {
        /// What the value was meant to be.
        what: &'static str,
        value: String,
        /// The permitted characters, for the message.
        allowed: &'static str,
    },
    /// A program needs at least two words, or tmux would hand the one word to a shell.
    #[error("the command for session {0} needs at least two words")]
    BareCommand(String),
    /// A session of that name exists; the caller decides whether to adopt or to kill it.
    #[error("a tmux session called {0} exists")]
    Exists(String),
    /// No such session or pane.
    #[error("no tmux session or pane {0}")]
    NotFound(String),
    /// Nothing is left of a message once control characters are removed.
    #[error("the message is empty")]
    EmptyMessage,
    /// The transcript file may not be written to.
    #[error("transcript {path} refused: {refusal}")]
    Transcript {
        /// Where the transcript should have gone.
        path: PathBuf,
        refusal: Refusal,
    },
    /// No server answers on the socket.
    #[error("no tmux server is running on {socket}")]
    NotRunning { socket: PathBuf },
    /// The connection ended after the command was given: it may have been carried out.
    #[error("the tmux connection ended before {command} was answered")]
    Interrupted {
        /// The first word of the command.
        command: String,
    },
    /// The server did not answer in time: the command may have been carried out.
    #[error("tmux did not answer {command} within {seconds} s")]
    Timeout {
        /// The first word of the command.
        command: String,
        seconds: u64,
    },
    /// tmux answered with an error.
    #[error("tmux refused {command}: {message}")]
    Refused {
        /// The first word of the command.
        command: String,
        message: String,
    },
    /// tmux answered something this code does not understand.
    #[error("unexpected answer from tmux to {command}: {answer:?}")]
    Unexpected {
        /// The first word of the command.
        command: String,
        answer: String,
    },
    /// There is no tmux program.
    #[error("tmux is not installed")]
    NoTmux,
    /// The tmux program was found but could not be run or watched.
    #[error("tmux could not be run")]
    Process(#[source] process::Error),
    /// A file or pipe operation of ours failed.
    #[error("{what}")]
    Io {
        what: &'static str,
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// The advice for the caller: try again, look first, or give up.
    pub fn retry(&self) -> Retry {
        match self {
            Self::SocketTooLong { .. }
            | Self::SocketOccupied { .. }
            | Self::Malformed { .. }
            | Self::BareCommand(_)
            | Self::Exists(_)
            | Self::NotFound(_)
            | Self::EmptyMessage
            | Self::Transcript { .. }
            | Self::Refused { .. }
            | Self::Unexpected { .. }
            | Self::NoTmux => Retry::Never,
            Self::NotRunning { .. } | Self::Io { .. } => Retry::Later,
            Self::Interrupted { .. } | Self::Timeout { .. } => Retry::LookFirst,
            Self::Process(source) => source.retry(),
        }
    }

    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }
}
