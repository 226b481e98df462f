//! Notices that this machine slept, was off, or had its clock set, so that deadlines of work count only the time in which it was
//! awake.
//!
//! The clock on the wall minus the clock of the kernel that stands still during sleep is the same number as long as the machine is
//! awake. The number is remembered with the boot that it belongs to, so that a sleep is noticed also if no daemon ran.

use std::time::Duration;

use pointsman_core::time::Timestamp;
use pointsman_store::{Change, Store, Write};
use serde::{Deserialize, Serialize};

use super::clock;
use super::engine::Engine;

/// The name under which the last reading is remembered.
const READING: &str = "awake";
/// A smaller difference is a correction of the clock.
const LEAST: i64 = 5_000;
/// The time of the last reading is remembered this often, for the case that the machine is switched off.
const REMEMBERED_EVERY: Duration = Duration::from_secs(60);

/// A reading of both clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Reading {
    boot: String,
    unawake: i64,
    at: Timestamp,
}

/// Compares readings of the clocks.
pub(super) struct SleepWatch {
    last: Option<Reading>,
    boot: String,
}

impl SleepWatch {
    /// Goes on from what an earlier daemon remembered.
    pub(super) fn open(store: &Store) -> Self {
        let text = store.cursor(None, READING).ok().flatten();
        let last = text.and_then(|text| serde_json::from_str(&text).ok());
        Self { last, boot: pointsman_adapters::machine::boot_id().unwrap_or_default() }
    }

    /// Moves the deadlines of work by the time in which this machine was not awake since the last look.
    pub(super) fn look(&mut self, engine: &mut Engine, now: Timestamp) -> Result<(), pointsman_store::Error> {
        let reading = Reading { boot: self.boot.clone(), unawake: clock::unawake(), at: now };
        let by_ms = self.last.as_ref().map_or(0, |last| skipped(last, &reading));
        let stale = self.last.as_ref().is_none_or(|last| {
            last.boot != reading.boot || last.at.after(REMEMBERED_EVERY) <= now || last.at > now
        });
        if by_ms.abs() < LEAST && !stale {
            return Ok(());
        }
        // Small differences add up, unless they are corrections of the clock: the first reading stays the one to compare with.
        let unawake = match (&self.last, by_ms.abs() < LEAST) {
            (Some(last), true) if last.boot == reading.boot => last.unawake,
            (Some(_) | None, _) => reading.unawake,
        };
        let reading = Reading { unawake, ..reading };
        let text = serde_json::to_string(&reading).unwrap_or_default();
        let remembered = Write::Cursor { project: None, name: READING.to_owned(), value: text };
        let change = Change::quiet(now, vec![remembered]);
        if by_ms.abs() >= LEAST {
            tracing::info!(by_ms, "this machine was not awake, or its clock was set: deadlines of work move");
            engine.skip_time(by_ms, change, now)?;
        } else {
            engine.write(&[change])?;
        }
        self.last = Some(reading);
        Ok(())
    }
}

/// The milliseconds between two readings in which the machine was not awake.
fn skipped(last: &Reading, now: &Reading) -> i64 {
    match last.boot == now.boot {
        true => now.unawake.saturating_sub(last.unawake),
        // It was switched off. The kernel began to count when it was switched on.
        false => now.unawake.saturating_sub(last.at.0).max(0),
    }
}

#[cfg(test)]
mod tests {
    use pointsman_core::time::Timestamp;

    use super::{Reading, skipped};

    fn reading(boot: &str, unawake: i64, at: i64) -> Reading {
        Reading { boot: boot.to_owned(), unawake, at: Timestamp(at) }
    }

    #[test]
    fn sleep_a_set_clock_and_a_reboot_are_told_from_time_that_passes() {
        let last = reading("a", 1_000_000, 1_500_000);
        assert_eq!(skipped(&last, &reading("a", 1_000_000, 9_000_000)), 0, "awake all the time");
        assert_eq!(skipped(&last, &reading("a", 8_200_000, 9_000_000)), 7_200_000, "it slept for two hours");
        assert_eq!(skipped(&last, &reading("a", 400_000, 1_000_000)), -600_000, "the clock was set back");
        // Switched on at 9,000,000, a minute ago.
        assert_eq!(skipped(&last, &reading("b", 9_000_000, 9_060_000)), 7_500_000, "it was off");
        assert_eq!(skipped(&last, &reading("b", 1_000_000, 9_060_000)), 0, "the clock cannot be believed");
    }
}
