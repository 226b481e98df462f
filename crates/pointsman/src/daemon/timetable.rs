//! Formulas that run by themselves. Whether a time is used is decided in the core; here it is asked, and written down
//! together with the run that begins.

use jiff::tz::TimeZone;
use pointsman_core::ids::ProjectName;
use pointsman_core::log;
use pointsman_core::role::Role;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::{Decision, Facts, Rules, ScheduleMemory, Zone, decide, entries};
use pointsman_store::{Change, Memory, Store};

use super::engine::Engine;
use super::{budget, factory, runs};
use crate::control::protocol::Reply;

/// A time zone of the system's.
pub struct SystemZone(TimeZone);

impl SystemZone {
    /// By its name; nothing if the system does not know it.
    pub fn find(name: &str) -> Option<Self> {
        TimeZone::get(name).ok().map(Self)
    }
}

impl Zone for SystemZone {
    fn local(&self, at: Timestamp) -> i64 {
        let offset = jiff::Timestamp::from_millisecond(at.0).map_or(0, |at| self.0.to_offset(at).seconds());
        (at.0.div_euclid(1000) + i64::from(offset)).div_euclid(60)
    }

    fn utc(&self, local: i64) -> Timestamp {
        let shown = jiff::Timestamp::from_second(local.saturating_mul(60)).unwrap_or(jiff::Timestamp::MAX);
        let shown = TimeZone::UTC.to_datetime(shown);
        let at = self.0.to_ambiguous_timestamp(shown).compatible();
        Timestamp(at.map_or(i64::MAX, jiff::Timestamp::as_millisecond))
    }
}

/// The circumstances that count for all formulas of a project.
#[derive(Clone, Debug)]
pub struct ProjectFacts {
    /// Memory that is free; none if nobody knows.
    pub free_memory_mb: Option<u64>,
    /// A fingerprint of the project: its main branch and its tasks.
    pub inputs: String,
}

/// The name under which a formula's times are remembered.
pub fn memory_name(formula: &str) -> String {
    format!("timetable.{formula}")
}

/// Reads what is remembered of a formula's times.
pub fn remembered(
    store: &Store,
    project: &ProjectName,
    formula: &str,
) -> Result<Option<ScheduleMemory>, pointsman_store::Error> {
    store.memory(project, &memory_name(formula))
}

/// Looks at every formula of a project that runs by itself; answers how many runs or looks of a role began.
pub fn tick(
    engine: &mut Engine,
    project: &ProjectName,
    standing: &ProjectFacts,
    now: Timestamp,
) -> Result<usize, pointsman_store::Error> {
    let Some(config) = engine.config(project) else { return Ok(0) };
    let Some(place) = SystemZone::find(&config.schedule.timezone) else {
        tracing::error!(%project, timezone = config.schedule.timezone, "no such time zone: nothing runs by itself");
        return Ok(0);
    };
    let mut begun = 0;
    for (formula, cron) in entries(&config) {
        let known = remembered(engine.store(), project, &formula)
            .and_then(|before| Ok((before, engine.store().last_run(project, &formula)?)));
        let (before, last) = match known {
            Ok(known) => known,
            // This one stands still; people were told of it. The others run.
            Err(pointsman_store::Error::Unreadable(_)) => continue,
            Err(error) => return Err(error),
        };
        // Rules cost nothing, and are needed most when memory is short.
        let (by_code, role) = (factory::by_code(&formula), Role::of_formula(&formula));
        let facts = Facts {
            running: !by_code && last.is_some_and(|run| !run.status.is_over()),
            free_memory_mb: standing.free_memory_mb.filter(|_| !by_code),
            inputs: standing.inputs.clone(),
            budget: if by_code { None } else { budget::used_up_today(engine.store(), &config, role, now)? },
        };
        let rules = Rules::new(&config, &formula);
        let (decision, after) = decide((&formula, &cron), &place, before.as_ref(), &rules, &facts, now);
        let Some(mut after) = after else { continue };
        if decision == Decision::Run && by_code {
            begun += 1;
        } else if decision == Decision::Run {
            let memory = Some(Memory::new(memory_name(&formula), &after)?);
            let wish = runs::RunRequest { memory, ..runs::RunRequest::new(&formula, "schedule") };
            match runs::begin(engine, project, &wish, now)? {
                Reply::Done { .. } => {
                    begun += 1;
                    continue;
                }
                Reply::Failed { message, .. } => after.skipped_because = Some(message),
            }
        }
        let memory = Memory::new(memory_name(&formula), &after)?;
        let looked = log::Entry::ScheduleLooked { formula, skipped_because: after.skipped_because };
        let mut change = Change::logged(now, project, &looked);
        change.memories.push(memory);
        engine.write(&[change])?;
    }
    Ok(begun)
}
