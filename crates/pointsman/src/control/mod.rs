//! How commands reach the daemon: one JSON line there, one JSON line back, over a unix socket.
//!
//! [`protocol`] has the words, [`client`] the caller's side; the daemon's side is in `daemon/`.

pub mod client;
pub mod protocol;
