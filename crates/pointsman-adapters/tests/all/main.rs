//! Adapters against the real thing.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::disallowed_methods, reason = "a test is outside the fences")]

mod claude;
mod deadline;
mod headless;
mod http;
mod phase_file;
mod tmux;
mod watch;
mod woodpecker;
