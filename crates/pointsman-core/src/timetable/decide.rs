//! Whether a time that has come is used.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Cron, Zone};
use crate::time::Timestamp;
use crate::words;

/// A time that is seen later than this was missed: nobody was there to see it.
const LATE: Duration = Duration::from_secs(300);
/// How far back a missed time is looked for.
const LOOK_BACK: i64 = 32 * 24 * 3_600_000;

/// The memory of a formula's times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleMemory {
    /// Up to here every time was used or passed over.
    pub seen: Timestamp,
    /// When the last one was used.
    pub used: Option<Timestamp>,
    /// What the inputs were then.
    pub inputs: Option<String>,
    /// Why the last time was passed over, if it was.
    pub skipped_because: Option<String>,
}

/// A project's rules for its timetable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Each time is put off by up to this long, so that not everything happens at once.
    pub jitter: Duration,
    /// Whether a missed time is made up for, once.
    pub catch_up: bool,
    /// Nothing begins with less memory free.
    pub min_free_memory_mb: u64,
    /// Nothing begins if nothing changed since the last time.
    pub only_if_changed: bool,
}

/// The facts that decide whether a run may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// A run of the formula is under way.
    pub running: bool,
    /// Memory that is free; none if nobody knows.
    pub free_memory_mb: Option<u64>,
    /// A fingerprint of what the formula looks at.
    pub inputs: String,
    /// The budget of the day that is used up, in words.
    pub budget: Option<String>,
}

/// The decision about a formula's next time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Wait,
    /// One has, and is passed over.
    Skip {
        why: String,
    },
    /// One has, and is used.
    Run,
}

/// Decides, and answers with what is to be remembered if that changes.
pub fn decide(
    (formula, cron): (&str, &Cron),
    zone: &dyn Zone,
    remembered: Option<&ScheduleMemory>,
    rules: &Rules,
    facts: &Facts,
    now: Timestamp,
) -> (Decision, Option<ScheduleMemory>) {
    let Some(before) = remembered else {
        // What was before we knew of it was not missed.
        let begin = ScheduleMemory { seen: now, used: None, inputs: None, skipped_because: None };
        return (Decision::Wait, Some(begin));
    };
    let since = Timestamp(before.seen.0.max(now.0.saturating_sub(LOOK_BACK)));
    let Some(slot) = cron.last(since, now, zone) else { return (Decision::Wait, None) };
    let due = slot.after(put_off(formula, slot, rules.jitter));
    if now < due {
        return (Decision::Wait, None);
    }
    let why = if now.since(due) > LATE && !rules.catch_up {
        Some(words::schedule::MISSED.to_owned())
    } else if facts.running {
        Some(words::schedule::STILL_RUNNING.to_owned())
    } else if let Some(budget) = &facts.budget {
        Some(words::schedule::budget(budget))
    } else if let Some(free) = facts.free_memory_mb.filter(|free| *free < rules.min_free_memory_mb) {
        Some(words::schedule::short_of_memory(free, rules.min_free_memory_mb))
    } else if rules.only_if_changed && before.inputs.as_deref() == Some(&facts.inputs) {
        Some(words::schedule::NOTHING_CHANGED.to_owned())
    } else {
        None
    };
    match why {
        Some(why) => {
            let after = ScheduleMemory { seen: slot, skipped_because: Some(why.clone()), ..before.clone() };
            (Decision::Skip { why }, Some(after))
        }
        None => {
            let inputs = Some(facts.inputs.clone());
            (
                Decision::Run,
                Some(ScheduleMemory { seen: slot, used: Some(now), inputs, skipped_because: None }),
            )
        }
    }
}

/// How long a time is put off: always the same for the same time, and different for each formula.
fn put_off(formula: &str, slot: Timestamp, jitter: Duration) -> Duration {
    let jitter = u64::try_from(jitter.as_millis()).unwrap_or(u64::MAX);
    if jitter == 0 {
        return Duration::ZERO;
    }
    let seed = formula.bytes().chain(slot.0.to_le_bytes());
    // FNV-1a: spread evenly, the same everywhere.
    let hash = seed
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    Duration::from_millis(hash % jitter)
}
