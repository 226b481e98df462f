//! The parts that workflows are made of. Each is a plain struct with its own pure step, embedded in the snapshot of the
//! workflow that owns it, so that what one owner can do, every owner can do.
//!
//! A part never changes its owner. It answers with reactions: orders that the owner passes on, and facts that only the
//! owner can draw a conclusion from.

pub mod contribution;
pub mod question;
pub mod session;
