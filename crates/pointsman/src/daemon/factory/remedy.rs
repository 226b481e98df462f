//! Carries out what is safe, or only says what it would do. Everything is looked at once more first: time has passed
//! since it was found.

use std::fs;

use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_adapters::git::{Locks, clear_dead_locks, list_locks};
use pointsman_adapters::process::census;
use pointsman_core::health::Remedy;
use pointsman_core::ids::{Number, TaskKey};
use pointsman_core::task::{Stage, State};
use pointsman_core::time::Timestamp;
use pointsman_core::words;

use super::collect::old_logs;
use crate::daemon::effects::{EffectError, EffectPerformer};
use crate::daemon::inbound::{Inbox, ThreadReport};
use crate::daemon::served::Served;

/// Whether something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Do,
    Dry,
}

/// Carries a remedy out; answers what was done, or would be, one line each.
pub(crate) fn carry_out(
    world: &EffectPerformer,
    inbox: &Inbox,
    served: &Served,
    remedy: &Remedy,
    mode: Mode,
    now: Timestamp,
) -> anyhow::Result<Vec<String>> {
    match remedy {
        Remedy::ClearLocks => clear_locks(served, mode),
        Remedy::PruneLogs => {
            let mut removed = Vec::new();
            for log in old_logs(&served.paths.logs(), served.config.health.keep.duration(), now) {
                if mode == Mode::Do {
                    fs::remove_file(&log)?;
                }
                removed.push(format!("remove {}", log.display()));
            }
            Ok(removed)
        }
        Remedy::PutAwayTree { issue } => put_away(world, served, *issue, mode),
        Remedy::AskForge => {
            if mode == Mode::Do {
                inbox.report(ThreadReport::AskForge { project: served.config.name.clone() });
            }
            Ok(vec!["ask the forge".to_owned()])
        }
    }
}

fn clear_locks(served: &Served, mode: Mode) -> anyhow::Result<Vec<String>> {
    let mut cleared = Vec::new();
    let paths = &served.paths;
    for repository in [paths.mirror(), paths.captures(), paths.forge_repository()] {
        if !repository.exists() {
            continue;
        }
        let locks = match mode {
            Mode::Dry => list_locks(&repository)?,
            Mode::Do => match clear_dead_locks(&repository)? {
                Locks::Cleared(locks) => locks,
                Locks::None | Locks::InUse { .. } => Vec::new(),
            },
        };
        cleared.extend(locks.iter().map(|lock| words::daemon::factory::remove_lock(lock)));
    }
    Ok(cleared)
}

/// A tree of a task that is over is captured, then removed. Somebody may have opened the issue again, or sit in it.
fn put_away(
    world: &EffectPerformer,
    served: &Served,
    issue: Number,
    mode: Mode,
) -> anyhow::Result<Vec<String>> {
    let key = TaskKey { project: served.config.name.clone(), issue };
    let task = world.read(|store| store.task(&key))?;
    let tree = served.session_files(&key).tree;
    let over = task.filter(|task| task.state == State::Closed && task.session.stage == Stage::None);
    let Some(task) = over.filter(|_| tree.exists() && census::inside(&tree).is_empty()) else {
        return Ok(Vec::new());
    };
    if mode == Mode::Do {
        world
            .keep_work(served, &key.session(task.session.generation), &tree)
            .map_err(EffectError::into_error)?;
        remove_checkout(&tree)?;
    }
    Ok(vec![words::daemon::factory::save_and_remove(&tree)])
}
