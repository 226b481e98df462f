//! From an issue to the main branch and everything that can go wrong on the way: the built program, real git, real
//! tmux, real processes. What is checked is what users see: the forge, the main branch, files, what commands answer.
//!
//! Decisions alone are tested in the core, single adapters in theirs. A test says what its world is like ([`shop`]),
//! what the agent does (a script of the rehearsal agent, or of bash) and what must be true in the end.

mod access;
mod action;
mod action_containers;
mod artifacts;
mod attacks;
mod backups;
mod briefing;
mod chat;
mod checks;
mod clean;
mod commits;
mod conflict;
mod dependencies;
mod disk;
mod doors;
mod escalation;
mod escapes;
mod evidence;
mod forgejo;
mod gardener;
mod gateway;
mod github_merge;
mod halt;
mod hand_in;
mod handover;
mod headless;
mod health;
mod hooks;
mod hostile;
mod idle;
mod inbox_screen;
mod kill;
mod leftovers;
mod model_login;
mod network;
mod night;
mod orders;
mod outside_ci;
mod people;
mod phase_file;
mod plan;
mod planner;
mod predictor;
mod projects;
mod pull_requests;
mod questions;
mod queue;
mod random_attempts;
mod recovery;
mod refusals;
mod registries;
mod relay;
pub(crate) mod resilience;
mod restart;
mod restored;
mod review;
mod review_agent;
mod risk;
mod roles;
mod rounds;
mod run;
mod run_trees;
mod rust_project;
mod sandbox;
mod schedule;
mod secrets;
mod shell_agent;
mod sleep;
mod soak;
mod toolchains;
mod torture;
mod trees;
mod unconfirmed;
mod vault;
mod vault_call;
mod vault_look;
mod walls;
mod way_in;
mod web;
mod webhooks;
mod week;
mod worth;

use std::path::Path;

use pointsman_adapters::process::find_program;
use pointsman_adapters::sandbox::Bubblewrap;
use pointsman_testkit::{Setup, not_run};

/// A project with a CI and without reviews, whose agent follows the script in the issue.
pub(crate) fn shop() -> Setup {
    Setup::new(env!("CARGO_BIN_EXE_pointsman"))
}

/// Whether a sandbox can be built here.
#[track_caller]
pub(crate) fn sandbox_works() -> bool {
    match Bubblewrap::probe(std::env::var_os("PATH").as_deref()) {
        Ok(_) => true,
        Err(why) => {
            not_run("bwrap", &format!("{why:?}"));
            false
        }
    }
}

/// Whether perl is there, which makes system calls by their numbers.
#[track_caller]
fn has_perl() -> bool {
    let found = find_program("perl", std::env::var_os("PATH").as_deref(), Path::new("/")).is_some();
    if !found {
        not_run("perl", "it is not installed");
    }
    found
}

/// Writes a list and hands it in.
fn adds(fruit: &str) -> String {
    format!("write src/{fruit}.txt {fruit} 3 crowns\ncommit Add {fruit}\npush\nphase awaiting_ci")
}

/// The rest of the way, without reviews.
const LAND: &str = "expect Merged\nphase done";

/// The whole way, without reviews.
fn clean(fruit: &str) -> String {
    format!("{}\n{LAND}", adds(fruit))
}
