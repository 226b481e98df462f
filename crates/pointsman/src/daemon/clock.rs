//! The one place that reads the clock.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};

use pointsman_core::time::Timestamp;
use pointsman_view::Time;

use super::stage;

/// The present time, or that of a test that plays days in seconds.
pub fn now() -> Timestamp {
    stage::time(real_now())
}

#[allow(clippy::disallowed_methods, reason = "the one clock")]
fn real_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The present time without the time in which this machine was awake: it grows while the machine sleeps or is off, changes
/// when its clock is set, and else stands still.
pub fn unawake() -> i64 {
    let awake = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let awake_ms = awake.tv_sec.saturating_mul(1000).saturating_add(awake.tv_nsec / 1_000_000);
    real_now().0.saturating_sub(awake_ms).saturating_add(stage::asleep())
}

/// The time when a file was last written, by the same clock.
pub fn written(file: &Metadata) -> Timestamp {
    let millis = file.mtime().saturating_mul(1000).saturating_add(file.mtime_nsec() / 1_000_000);
    stage::time(Timestamp(millis))
}

/// The day of a point in time, UTC: `2026-11-15`.
pub fn day(at: Timestamp) -> String {
    rfc3339(at).chars().take(10).collect()
}

/// The beginning of the next day, in UTC.
pub fn next_day(at: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000;
    Timestamp((at.0.div_euclid(DAY) + 1) * DAY)
}

/// A point in time as scripts see it.
pub fn rfc3339(at: Timestamp) -> String {
    Time(at).to_string()
}
