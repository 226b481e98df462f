//! The daemon: one loop, and everything that feeds it.
//!
//! `engine` steps and commits, and `dispatcher` is the loop around it. All inputs arrive through `inbound`. `workers`
//! perform effects with `effects`, and `jobs` do long work. `sources` and `poller` report facts. `control` and `answer`
//! serve commands. `vault`, `runs`, `factory`, `timetable` and `notifier` drive vault actions, formulas, roles,
//! schedules and notices. Decisions belong in the core, SQL in the store, and programs in the adapters.

mod actions;
mod answer;
mod backing_up;
pub mod board;
mod budget;
pub mod clock;
mod concerns;
mod conditions;
mod connections;
mod control;
pub mod crash;
mod decisions;
mod digest;
mod dispatcher;
mod effects;
pub mod engine;
pub mod factory;
pub(crate) mod halt;
mod hand_ins;
mod handover;
mod inbound;
mod jobs;
mod launch;
mod leaks;
mod masked;
#[cfg(test)]
mod night;
pub(crate) mod notifier;
pub mod outcome;
mod own_identity;
mod peers;
mod poller;
mod projections;
mod projects;
mod questions;
mod queue_orders;
mod queue_trial;
mod reader;
mod reading;
mod relay;
mod reports;
pub(crate) mod restored;
mod reviews;
mod risk;
mod runs;
mod served;
mod session_sockets;
mod settings;
mod sleep;
mod sources;
mod stage;
mod start;
pub mod timetable;
mod undo;
mod unreadable;
mod vault;
mod watch_thread;
mod web;
pub(crate) mod webhooks;
mod workers;

pub(crate) use budget::{quota, used_up_today};
pub(crate) use decisions::unconfirmed;
pub(crate) use effects::hook_inbox;
pub use hand_ins::adopt as adopt_hand_ins;
pub use jobs::Outcomes;
pub(crate) use jobs::{CHECK, ci_log, ci_log_of_pull, ci_verdict, run_in_checkout, tail, verdict_of};
pub(crate) use launch::{Launch, LaunchSandbox, commit as commit_leftovers, left_behind};
pub use launch::{Side, launch};
pub(crate) use own_identity::FILE as IDENTITY_FILE;
pub use projects::{accepted_config, read_config};
pub(crate) use served::{artifacts_of, phases_of};
pub(crate) use sources::hooks::conversation_name;
pub(crate) use start::read_alone;
pub use start::{NotAPerson, OnlyQueue, Options, answer_alone, run};
