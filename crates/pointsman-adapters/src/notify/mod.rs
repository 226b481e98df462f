//! Ways to tell people: a room of Matrix, an address that takes JSON, the desktop of this machine.
//!
//! Who tells what and when is decided in the core; what was told is remembered in the store. The log is written by the
//! daemon itself. Each of these says what is true afterwards, and [`Error::retry`] whether it may be tried again.

pub mod desktop;
pub mod matrix;
pub mod webhook;

use std::time::Duration;

use crate::http;
use crate::retry::Retry;

/// A failure to send to people or to hear from them.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A call did not succeed.
    #[error(transparent)]
    Call(#[from] http::Error),
    /// We cannot read or write what is said there.
    #[error(
        "the room {room} is encrypted, and encrypted rooms are not supported: use a room without encryption"
    )]
    Encrypted { room: String },
    /// We are not in the room.
    #[error("{me} is not in the room {room} and was not invited: invite it")]
    NotInvited { me: String, room: String },
    /// The room has no such name.
    #[error("there is no room {room}")]
    NoRoom { room: String },
    /// An address that is none.
    #[error("the webhook's address is none: it must begin with https:// or http:// and name a host")]
    Address,
    /// The desktop's program did not work.
    #[error("notify-send did not work: {how}")]
    Desktop { how: String },
}

impl Error {
    /// Whether it may be tried again. Everything here may: what is wrong can be put right while we wait. Only a server
    /// that does not take these very words will not take them later either.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Call(error) if matches!(error.status(), Some(400 | 413 | 422)) => Retry::Never,
            Self::Call(_)
            | Self::Encrypted { .. }
            | Self::NotInvited { .. }
            | Self::NoRoom { .. }
            | Self::Address
            | Self::Desktop { .. } => Retry::Later,
        }
    }

    /// The time to wait before the next try, as the other side asks for it.
    pub fn pause(&self) -> Option<Duration> {
        match self {
            Self::Call(error) => error.pause(),
            Self::Encrypted { .. }
            | Self::NotInvited { .. }
            | Self::NoRoom { .. }
            | Self::Address
            | Self::Desktop { .. } => None,
        }
    }
}
