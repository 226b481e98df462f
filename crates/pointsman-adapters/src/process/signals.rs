//! Signals that ask a program to end, kept away from a wrapper around it.
//!
//! A sandbox has a process outside that only waits for the one inside. Both are in one process group and on one
//! terminal, so a hang-up or an interrupt reaches both, and the outer one would take the inner one with it before that
//! could put anything in order. A blocked signal is inherited by whatever this thread becomes or starts: the outer process
//! is started with these signals blocked, and the first program inside lets them through again.

use std::io;

use nix::sys::signal::{SigSet, Signal};

fn asking() -> SigSet {
    [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM].into_iter().collect()
}

/// Keeps the signals away from this thread and from what it starts.
pub fn shield_this_thread() -> io::Result<()> {
    Ok(asking().thread_block()?)
}

/// Lets them through again; one that has come meanwhile arrives now.
pub fn unshield_this_thread() -> io::Result<()> {
    Ok(asking().thread_unblock()?)
}
