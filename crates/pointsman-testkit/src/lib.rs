//! For tests only: what several crates' tests need, and the rules of the house as a test.
//!
//! * [`TempRepo`]: a real git repository in a temporary directory
//! * [`eventually`]: waiting for something to become true, with an end
//! * [`TestDaemon`]: the built program's daemon in a world of its own, for end-to-end tests
//! * [`claude_api`]: a scripted stand-in for the API that the real Claude Code talks to
//! * [`fake_forgejo`]: a Forgejo that is as strict as the real one, and fails on order
//! * [`fake_homeserver`]: a Matrix homeserver that is as strict as the real one, and fails on order
//! * [`fake_woodpecker`]: a Woodpecker whose pipelines end as the test says
//! * [`http`]: a server that answers as it is told, for tests of what talks to servers
//! * [`not_run`]: reports a test whose tool is missing, so that it does not look as if it had passed
//! * [`source`]: the workspace's own files, for rules about them
//!
//! The rules run in `tests/all/tidy`. What only one crate's tests need stays in that crate's tests; nothing in here may
//! be used by code that ships.

#![allow(clippy::disallowed_methods, reason = "tests are outside the fences")]

pub mod claude_api;
mod daemon;
mod deadline;
pub mod fake_forgejo;
pub mod fake_homeserver;
pub mod fake_woodpecker;
pub mod http;
mod mutation;
mod not_run;
mod repository;
pub mod source;

pub use daemon::{Answer, PATIENCE, Setup, TestDaemon};
pub use deadline::{eventually, within};
pub use not_run::not_run;
pub use repository::TempRepo;
