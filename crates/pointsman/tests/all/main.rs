//! The built program, as people and scripts use it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::disallowed_methods, reason = "a test is outside the fences")]

mod cli;
mod demo;
mod e2e;
mod engine;
mod factory;
mod forge_contract;
mod real_claude;
mod real_claude_headless;
mod real_claude_person;
mod simulation;
mod timetable;
mod upgrade;
