//! The roles that keep the factory in order by rules: what they find is found by code, and a model is asked only for
//! judgement. What a look means is decided in the core; here it is written down and carried out.
//!
//! `watch` is the thread that looks when a role's time has come, `collect` reads the machine and the project, `remedy`
//! carries out what is safe, `supervisor` writes down what was found, tells people and hears them. All but `supervisor`
//! and this file run beside the loop and only send.

mod collect;
mod remedy;
mod supervisor;
mod watch;

use std::sync::PoisonError;
use std::sync::mpsc::sync_channel;

use pointsman_core::health::{assess, remedies};
use pointsman_core::ids::ProjectName;
use pointsman_core::time::Timestamp;
use pointsman_store::Store;

pub(crate) use collect::{Seen, collect};
pub(crate) use remedy::{Mode, carry_out};
pub use supervisor::{Looked, hear as supervisor_hears, look as supervisor_looks, memory};
pub(crate) use watch::Watch;

use super::clock;
use super::engine::Engine;
use super::inbound::{Inbound, Inbox};
use super::served::Served;
use super::timetable::remembered;
use super::world::RealWorld;
use crate::control::protocol::Fix;
use crate::health_view;

/// What those beside the loop tell it.
pub(crate) enum Told {
    /// The supervisor has looked.
    Looked {
        /// At which project.
        project: ProjectName,
        /// What was found and done.
        looked: Looked,
    },
    /// People said something to the supervisor.
    Heard {
        /// Of which project.
        project: ProjectName,
    },
}

/// Whether the times of a formula are its role's, whose code decides whether a session is needed at all.
pub fn by_code(formula: &str) -> bool {
    formula == supervisor::FORMULA
}

/// Whether a role's time has come since it last looked.
fn is_due(
    store: &Store,
    project: &ProjectName,
    formula: &str,
    looked_at: Timestamp,
) -> Result<bool, pointsman_store::Error> {
    let used = remembered(store, project, formula)?.and_then(|remembered| remembered.used);
    Ok(used.is_some_and(|used| used > looked_at))
}

/// Has the loop write something down, and waits until it is.
fn send(inbox: &Inbox, told: Told) {
    let (written, answer) = sync_channel(1);
    inbox.send(Inbound::Factory { told: Box::new(told), written });
    // The daemon's end drops the other side.
    let _ = answer.recv();
}

/// Writes down what was told to the loop. Twice is the same as once.
pub(super) fn take(engine: &mut Engine, told: &Told, now: Timestamp) -> Result<(), pointsman_store::Error> {
    match told {
        Told::Looked { project, looked } => supervisor::look(engine, project, looked, now),
        Told::Heard { project } => supervisor::hear(engine, project, now),
    }
}

/// How well a project and the machine are right now, as scripts see it.
pub(super) fn examine(
    world: &RealWorld,
    inbox: &Inbox,
    served: &Served,
    fix: Fix,
) -> anyhow::Result<serde_json::Value> {
    let (config, now, seen) = (&served.config, clock::now(), served.seen());
    let (facts, memory) = {
        let reader = world.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = memory(&reader, &config.name)?;
        (collect(&world.paths, &reader, config, Some(seen.as_deref()), now)?, memory)
    };
    let assessment = assess(&facts, config, &memory.keys(), now);
    let mut done = Vec::new();
    let mode = match fix {
        Fix::No => None,
        Fix::Dry => Some(Mode::Dry),
        Fix::Do => Some(Mode::Do),
    };
    for remedy in mode.iter().flat_map(|_| remedies(&assessment.findings)) {
        done.extend(carry_out(world, inbox, served, &remedy, mode.unwrap_or(Mode::Dry), now)?);
    }
    Ok(health_view::to_json(&facts, &assessment, &memory, &done, now))
}
