//! Commands reach the daemon over a unix socket, with one JSON line in each direction.
//!
//! [`protocol`] has the requests and replies, and [`client`] is the caller's side. The daemon's side is in `daemon/`.
//! [`caller`] identifies the caller from facts of the kernel, and [`access`] decides what the caller may ask. Both
//! are pure.

pub mod access;
pub mod caller;
pub mod client;
pub mod protocol;
