//! The roles that work by rules. Code finds what is wrong, and a model is asked only for judgement. The core decides
//! what an observation means; this module records the decision and carries it out.
//!
//! `watch` is the thread that looks when a role is due. `collect` reads the machine and the project, `logs` the ends
//! of logs, `ground` the state of the repository. `remedy` carries out safe remedies. `supervisor`, `gardener`,
//! `predictor` and `planner` are the roles. `asking` is shared by the roles that ask a model, and `results` follows
//! the outcome of their work. What a role remembers is a workflow of the engine, and its deeds on the forge are effects:
//! `pointsman_core::role_memory`. Only functions that take an engine write; everything else runs beside the loop and
//! sends.

mod asking;
mod backoff;
mod collect;
pub mod gardener;
mod ground;
mod logs;
pub mod planner;
pub mod predictor;
mod remedy;
pub(crate) mod results;
mod supervisor;
mod watch;

use std::sync::mpsc::sync_channel;

use pointsman_core::health::{assess, remedies};
use pointsman_core::ids::{ProjectName, RoleKey, Sha};
use pointsman_core::log;
use pointsman_core::role::Role;
use pointsman_core::role_memory::{self, RoleMemory};
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::ScheduleMemory;
use pointsman_core::value::{Following, Outcome, ResultOver, RoleValue};
use pointsman_core::words;
use pointsman_store::{Change, Memory, Store};
use pointsman_view::health::Health;
use pointsman_view::role::{LookOrdered, Resumed};

pub use asking::{Question, RoleInspection, ask, heard_by};
pub use collect::ForgeIssues;
pub(crate) use collect::{ForgeKnowledge, collect, whole_machine};
pub(crate) use logs::tails;
pub(crate) use remedy::{Mode, carry_out};
pub use supervisor::{
    Inspection, hear as supervisor_hears, judged as supervisor_judged, look as supervisor_looks, memory,
};
pub(crate) use watch::Watch;

use super::answer::{done, failed};
use super::budget;
use super::clock;
use super::effects::{EffectPerformer, chain};
use super::engine::{Engine, Input};
use super::inbound::{Inbox, ThreadReport};
use super::served::Served;
use super::timetable;
use crate::control::protocol::{FailureKind, Fix, Reply};

/// A report of a thread to the loop, which writes it down.
pub(crate) enum RoleReport {
    Looked {
        project: ProjectName,
        /// What was found and done.
        looked: Box<Inspection>,
    },
    /// A role that asks a model has looked.
    Inspected {
        project: ProjectName,
        /// What was found, and what is asked.
        asking: Box<RoleInspection>,
    },
    /// It is known what became of what roles did.
    Followed { project: ProjectName, following: Box<Following>, over: Vec<ResultOver> },
    /// Main was looked at for what takes landings back.
    Reverted { project: ProjectName, upto: Sha, reverts: Vec<results::Revert> },
    /// People said something to the supervisor.
    Heard { project: ProjectName },
}

/// Whether the times of a formula are its role's, whose code decides whether a session is needed at all.
pub fn by_code(formula: &str) -> bool {
    Role::of_formula(formula).looks_by_rules()
}

/// Whether a role's time has come since it last looked.
fn is_due(
    store: &Store,
    project: &ProjectName,
    formula: &str,
    looked_at: Timestamp,
) -> Result<bool, pointsman_store::Error> {
    let used = timetable::remembered(store, project, formula)?.and_then(|remembered| remembered.used);
    Ok(used.is_some_and(|used| used > looked_at))
}

/// Has the loop write something down, and waits until it is.
pub(super) fn send(inbox: &Inbox, told: RoleReport) {
    let (written, answer) = sync_channel(1);
    inbox.report(ThreadReport::Role { told: Box::new(told), written });
    // The daemon's end drops the other side.
    let _ = answer.recv();
}

/// Writes down what was told to the loop. Twice is the same as once.
pub(super) fn take(
    engine: &mut Engine,
    told: &RoleReport,
    now: Timestamp,
) -> Result<(), pointsman_store::Error> {
    match told {
        RoleReport::Looked { project, looked } => supervisor::look(engine, project, looked, now),
        RoleReport::Heard { project } => supervisor::hear(engine, project, now),
        RoleReport::Followed { project, following, over } => {
            results::write(engine, project, following, over, now)
        }
        RoleReport::Reverted { project, upto, reverts } => {
            results::write_reverts(engine, project, upto, reverts, now)
        }
        RoleReport::Inspected { project, asking } => ask(engine, project, asking, now),
    }
}

/// Reads what a role's results were worth so far.
pub fn value(store: &Store, project: &ProjectName, role: Role) -> Result<RoleValue, pointsman_store::Error> {
    Ok(store.memory(project, &RoleMemory::value_name(role))?.unwrap_or_default())
}

/// A memory changed, and nothing is to be said about it.
fn remembered(project: &ProjectName, memory: Memory, now: Timestamp) -> Change {
    let mut change = Change::logged(now, project, &log::Entry::Remembered { name: memory.name.clone() });
    change.memories.push(memory);
    change
}

/// A result of a role counts. One that makes nothing but noise is paused.
fn counted(project: &ProjectName, role: Role, outcome: Outcome) -> Input {
    let key = RoleKey { project: project.clone(), role };
    Input::of_role(key, role_memory::Event::Counted { outcome })
}

/// Why a role may not ask a model now, if so: it makes only noise, a budget is used up, memory is short.
fn hindrance(
    engine: &Engine,
    project: &ProjectName,
    role: Role,
    free_memory_mb: Option<u64>,
    now: Timestamp,
) -> Result<Option<AskObstacle>, pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(None) };
    if value(engine.store(), project, role)?.paused_at.is_some() {
        let why = words::daemon::factory::all_noise(role);
        return Ok(Some(AskObstacle { why, passes: false }));
    }
    let least = config.limits.min_free_memory_mb;
    if free_memory_mb.is_some_and(|free| free < least) {
        let why = words::daemon::factory::too_little_memory(least);
        return Ok(Some(AskObstacle { why, passes: true }));
    }
    let used_up = budget::used_up_today(engine.store(), &config, role, now)?;
    Ok(used_up.map(|why| AskObstacle { why, passes: true }))
}

/// Why nobody is asked.
struct AskObstacle {
    why: String,
    /// Whether it passes by itself.
    passes: bool,
}

/// A person lets a role ask again.
pub(super) fn resume(engine: &mut Engine, project: &ProjectName, role: Role) -> Reply {
    let key = RoleKey { project: project.clone(), role };
    match engine.take(&[Input::of_role(key, role_memory::Event::Resumed)], clock::now()) {
        Ok(_) => done(Resumed { role, paused_at: None }),
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}

/// A person wants a role to look now, and not at its next time.
pub(super) fn look_now(engine: &mut Engine, project: &ProjectName, role: Role) -> Reply {
    let (now, formula) = (clock::now(), role.formula());
    let enabled =
        role.looks_by_rules() && engine.config(project).is_some_and(|config| config.roles.get(role).enabled);
    if !enabled {
        return failed(FailureKind::Refused, words::daemon::factory::does_not_look(role));
    }
    let written = timetable::remembered(engine.store(), project, formula).and_then(|before| {
        let never = ScheduleMemory { seen: now, used: None, inputs: None, skipped_because: None };
        let after = ScheduleMemory { used: Some(now), skipped_because: None, ..before.unwrap_or(never) };
        let mut change = Change::logged(now, project, &log::Entry::RoleLookWanted { role });
        change.memories.push(Memory::new(timetable::memory_name(formula), &after)?);
        engine.write(&[change])
    });
    match written {
        Ok(_) => done(LookOrdered { role }),
        Err(error) => failed(FailureKind::Failed, chain(&error)),
    }
}

/// How well a project and the machine are right now, as scripts see it.
pub(super) fn examine(
    world: &EffectPerformer,
    inbox: &Inbox,
    served: &Served,
    fix: Fix,
) -> anyhow::Result<Health> {
    let (config, now) = (&served.config, clock::now());
    let path = (world.environment)("PATH");
    let machine = whole_machine(&world.paths, config, path.as_deref());
    let memory = world.read(|store| memory(store, &config.name))?;
    let known = served.known();
    let facts = world.read(|store| collect(machine, &world.paths, store, config, Some(&known), now))?;
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
    let tails = tails(&world.paths, config, &facts, &assessment.findings);
    Ok(Health::new(&facts, &assessment, &tails, &memory, &done, now))
}
