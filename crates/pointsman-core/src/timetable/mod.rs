//! Scheduled formulas: cron expressions, and whether a time that has come is used.
//!
//! The caller supplies the time zone as a value ([`Zone`]). The daemon starts the runs.

mod cron;
mod decide;
#[cfg(test)]
mod tests;

use crate::config::Config;
use crate::time::Timestamp;

pub use cron::Cron;
pub use decide::{Decision, Facts, Rules, ScheduleMemory, decide};

/// A place's clock on the wall.
pub trait Zone {
    /// What the clock shows, in minutes since 1970 as if it were UTC.
    fn local(&self, at: Timestamp) -> i64;

    /// When the clock shows this: the earlier time if it does so twice, some time soon after if it never does.
    fn utc(&self, local: i64) -> Timestamp;
}

/// The clock of UTC.
#[derive(Clone, Copy, Debug)]
pub struct Utc;

impl Zone for Utc {
    fn local(&self, at: Timestamp) -> i64 {
        at.0.div_euclid(60_000)
    }

    fn utc(&self, local: i64) -> Timestamp {
        Timestamp(local.saturating_mul(60_000))
    }
}

/// The formulas of a project that run by themselves: those of its roles that are at work, and those it lists.
pub fn entries(config: &Config) -> Vec<(String, Cron)> {
    let roles = config.roles.iter().filter(|(role, settings)| settings.enabled && role.works_by_timetable());
    let of_roles =
        roles.filter_map(|(role, settings)| Some((role.formula().to_owned(), settings.schedule.as_deref()?)));
    let listed = config.schedule.formulas.iter().map(|(name, cron)| (name.clone(), cron.as_str()));
    let mut all: Vec<(String, Cron)> = of_roles
        .filter(|(name, _)| !config.schedule.formulas.contains_key(name))
        .chain(listed)
        .filter_map(|(name, cron)| Some((name, Cron::parse(cron).ok()?)))
        .collect();
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all
}

impl Rules {
    /// As they are configured for a formula.
    pub fn new(config: &Config, formula: &str) -> Self {
        Self {
            jitter: config.schedule.jitter.duration(),
            catch_up: config.schedule.catch_up,
            min_free_memory_mb: config.limits.min_free_memory_mb,
            only_if_changed: config.schedule.only_if_changed.iter().any(|name| name == formula),
        }
    }
}
