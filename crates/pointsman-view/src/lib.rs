//! Shows: every value that the command line prints as JSON, that the control socket carries and that the web serves.
//!
//! One file per noun. A view is a plain struct whose field names are what scripts rely on: it may gain a field, never
//! lose or rename one. `docs/commands.md` lists the fields, and a test compares that list with what the structs
//! serialise. Conversions from values of the core are here; conversions from rows of the store belong to the program,
//! because this crate knows only the core. Nothing here reads a file, a clock or a database.
//!
//! Absent and null differ: a field that a reader may miss has `skip_serializing_if`, every other empty field is null.

pub mod agent;
pub mod backup;
pub mod board;
pub mod ci;
pub mod claim;
pub mod demo;
pub mod doctor;
pub mod event;
pub mod evidence;
pub mod failure;
pub mod forge;
pub mod formula;
pub mod health;
pub mod inbox;
pub mod notice;
pub mod phase;
pub mod pipeline;
pub mod project;
pub mod queue;
pub mod report;
pub mod rescue;
pub mod role;
pub mod run;
pub mod sandbox;
pub mod service;
pub mod session;
pub mod status;
pub mod task;
pub mod time;
pub mod vault;
pub mod web;

pub use time::Time;

/// The answer to an order that has nothing to tell beyond having been carried out: `null`.
pub type Nothing = ();
