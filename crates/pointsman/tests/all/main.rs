//! The built program, as people and scripts use it.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::disallowed_methods, reason = "a test is outside the fences")]

mod cli;
mod demo;
mod e2e;
mod engine;
mod factory;
mod forge_contract;
mod package;
mod pages;
mod real_browser;
mod real_claude;
mod real_claude_headless;
mod real_claude_person;
mod real_claude_relay;
mod relay_tls;
mod simulation;
mod timetable;
mod upgrade;

/// The name of whoever runs the tests: what is done by a command is done in this name, whatever `USER` says.
fn login() -> String {
    pointsman_adapters::login::name(rustix::process::getuid().as_raw())
}
