//! Pretended facts for tests that cannot wait for them: the time of day, and the figures of the machine.
//!
//! `POINTSMAN_STAGE` names a file: `{"ahead_ms": 86400000, "disk_percent": 91}`. It is read anew each time, so that days
//! pass while the daemon runs. Without the variable nothing is pretended, and a look costs one comparison.

use std::fs;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use pointsman_core::health::Machine;
use pointsman_core::time::Timestamp;
use serde::Deserialize;

/// What is pretended. What is not named is as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Stage {
    /// How far the clock is ahead.
    ahead_ms: i64,
    /// How much of that the machine slept. Pretended time counts as time in which it was awake otherwise.
    asleep_ms: i64,
    /// How full every disk is.
    disk_percent: Option<u64>,
    /// How much memory is free.
    free_memory_mb: Option<u64>,
}

static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
/// The last one that could be read.
static LAST: Mutex<Stage> =
    Mutex::new(Stage { ahead_ms: 0, asleep_ms: 0, disk_percent: None, free_memory_mb: None });

#[allow(clippy::disallowed_methods, reason = "a variable for tests, read once")]
fn named() -> Option<PathBuf> {
    std::env::var_os("POINTSMAN_STAGE").map(PathBuf::from)
}

fn stage() -> Option<Stage> {
    let file = FILE.get_or_init(named).as_ref()?;
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let read = fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok());
    *last = read.unwrap_or(*last);
    Some(*last)
}

/// A point in time as it is pretended to be.
pub(super) fn time(real: Timestamp) -> Timestamp {
    stage().map_or(real, |stage| Timestamp(real.0.saturating_add(stage.ahead_ms)))
}

/// The pretended time in which the machine slept.
pub(super) fn asleep() -> i64 {
    stage().map_or(0, |stage| stage.asleep_ms)
}

/// The machine as it is pretended to be.
pub(super) fn machine(real: Machine) -> Machine {
    let Some(stage) = stage() else { return real };
    let mut pretended = Machine { free_memory_mb: stage.free_memory_mb.or(real.free_memory_mb), ..real };
    for disk in &mut pretended.disks {
        disk.used_percent = stage.disk_percent.unwrap_or(disk.used_percent);
    }
    pretended
}
