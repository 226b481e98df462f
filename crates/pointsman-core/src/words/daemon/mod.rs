//! Everything the daemon says about its own work: answers to commands, reasons that `task show`, `merge-queue list` and
//! `vault list` print, and errors that reach a person. One file per part of the daemon.
//!
//! What agents read and what is posted on a forge is in the files beside this directory.

pub mod budget;
pub mod factory;
pub mod git;
pub mod hand_in;
pub mod issue;
pub mod notifier;
pub mod process;
pub mod project;
pub mod queue;
pub mod request;
pub mod review;
pub mod run;
pub mod session;
pub mod vault;
