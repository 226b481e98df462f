//! How commands reach the daemon: one JSON line there, one JSON line back, over a unix socket.
//!
//! [`protocol`] has the words, [`client`] the caller's side; the daemon's side is in `daemon/`. [`caller`] tells who asks
//! from what the kernel says, [`access`] whether they may. Both decide without looking at anything themselves.

pub mod access;
pub mod caller;
pub mod client;
pub mod protocol;
