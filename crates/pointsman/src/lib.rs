//! Runs: the daemon and the command line of Pointsman.
//!
//! `cli/` has a file per verb, `daemon/` the loop that turns events into effects, `control/` what
//! goes between the two, `embedded_forge/` the forge that needs no server, `remote.rs` those that do, `keeper/` sessions without a terminal, `rehearsal/` an agent
//! without a model, `demo/` the play of both. Deciding belongs into `pointsman-core`, SQL into
//! `pointsman-store`, programs and APIs into `pointsman-adapters`.

mod backups;
mod claim;
pub mod cli;
pub mod control;
pub mod daemon;
pub mod demo;
pub mod embedded_forge;
mod enclosure;
pub mod formulas;
mod hook_spool;
mod identity;
pub mod init;
mod journal;
mod keeper;
mod model_login;
mod page;
pub mod paths;
mod process_probe;
pub mod project;
pub mod queue_view;
pub mod rehearsal;
mod remote;
mod report;
mod tally;
mod trust;
mod tui;
mod whole_way;
