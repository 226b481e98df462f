//! The daemon: one loop, and what feeds it.
//!
//! `engine` steps and commits, `dispatcher` is the loop around it, `workers` perform effects with
//! `world`, `jobs` run what takes long, `sources` and `poller` tell what happened, `control` and
//! `answer` serve commands, `vault` keeps dangerous actions, `runs` follows formulas, `factory` has the roles that work by rules, `timetable` begins them, `notifier` tells people and listens to them. Everything comes in through `inbound`. Not here: deciding (core), SQL
//! (store), programs (adapters).

mod actions;
mod answer;
pub mod board;
mod budget;
pub mod clock;
mod conditions;
mod connections;
mod control;
pub mod crash;
mod decisions;
mod dispatcher;
pub mod engine;
pub mod factory;
pub mod hand_in;
mod inbound;
mod jobs;
mod launch;
mod line;
mod lookout;
#[cfg(test)]
mod night;
pub(crate) mod notifier;
pub mod outcome;
mod peers;
mod poller;
mod projections;
mod projects;
mod reader;
mod reports;
mod reviews;
mod runs;
mod served;
mod sources;
mod stage;
mod start;
pub mod timetable;
mod unreadable;
mod vault;
pub(crate) mod webhooks;
mod workers;
mod world;

pub(crate) use budget::quota;
pub(crate) use decisions::unconfirmed;
pub use jobs::Outcomes;
pub(crate) use jobs::{CHECK, ci_log, ci_log_of_pull, ci_verdict};
pub use launch::launch;
pub(crate) use launch::{Launch, commit as commit_leftovers};
pub use projects::read_config;
pub(crate) use sources::hooks::conversation_name;
pub use start::{NotAPerson, OnlyQueue, Options, answer_alone, run};
pub(crate) use world::mailbox;
