//! The ways into a session of Claude Code beside its terminal.
//!
//! * [`hook_messages`]: messages that wait for the session's own hooks, a file each
//! * [`socket`]: the session's own message socket, where the version has one
//!
//! What does not belong here: which way is taken for what, and what a message says. Typing is in [`crate::tmux`].

pub mod hook_messages;
pub mod socket;
