//! Learning what happened without asking again and again.
//!
//! * [`files`]: a file was written (inotify)
//! * [`exits`]: a process ended (pidfd and epoll)
//! * [`terminal`]: whether a program sits waiting for someone to type (a look at `/proc`, on demand)
//!
//! Watches report facts to a callback on a thread of their own; they read no file, decide nothing, and know no task.
//! A watch can lose its footing (queue overflow, a directory that goes away) and then says so: a slow look at
//! everything is the caller's net.

pub mod exits;
pub mod files;
pub(crate) mod proc_stat;
mod syscall;
pub mod terminal;
mod wake;
