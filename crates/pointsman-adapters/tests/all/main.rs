//! Adapters against the real thing.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod deadline;
mod phase_file;
mod tmux;
mod watch;
