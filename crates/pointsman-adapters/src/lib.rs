//! Touches the world: processes, git, tmux, phase files, forges, CI and notifiers.
//!
//! Each folder is one part of the outside, behind a small interface. Nothing in here decides: that is the core's. Nothing in
//! here remembers: that is the store's. `process` is the only place that starts programs.

pub mod artifacts;
pub mod ci;
pub mod claude;
pub mod containers;
pub mod copied_files;
pub mod driver;
pub mod forge;
pub mod git;
pub mod headless;
pub mod http;
pub mod login;
pub mod machine;
pub mod notify;
pub mod phase_file;
pub mod process;
pub mod projection;
pub mod proxy;
pub mod retry;
pub mod sandbox;
pub mod secret;
pub mod tmux;
pub mod unix_socket;
pub mod watch;
pub mod webhook;
