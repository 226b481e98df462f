//! The formulas that run by themselves, and their times.

use clap::Args;
use pointsman_core::text::clean_line;
use pointsman_core::time::Timestamp;
use pointsman_core::timetable::{Cron, entries};
use pointsman_view::Time;
use pointsman_view::run::{Scheduled, Status};

use super::context::Context;
use super::failure::{Code, Failure};
use super::table::Table;
use super::time;
use crate::daemon::factory::by_code;
use crate::daemon::timetable::{SystemZone, remembered};

/// Show scheduled formulas: last run, next run, outcome, and why a time was skipped
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pointsman schedule\n  pointsman schedule --json | jq '.[] | [.formula, .next]'"
)]
pub(crate) struct Arguments {}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        let (config, now) = (&project.config, time::now());
        let Some(place) = SystemZone::find(&config.schedule.timezone) else {
            let message = format!("there is no time zone {}", config.schedule.timezone);
            return Err(
                Failure::new(Code::Configuration, message).hint("schedule.timezone in pointsman.toml")
            );
        };
        let store = context.store()?;
        let mut rows = Vec::new();
        for (formula, cron) in entries(config) {
            let (last, memory) = match &store {
                Some(store) => {
                    (store.last_run(&config.name, &formula)?, remembered(store, &config.name, &formula)?)
                }
                None => (None, None),
            };
            let next = next(&cron, &place, now);
            // A role that works by rules has looked then, whether or not a session was needed.
            let looked = memory.as_ref().and_then(|memory| memory.used).filter(|_| by_code(&formula));
            let began = looked.or(last.as_ref().map(|run| run.started_at));
            rows.push(Scheduled {
                formula,
                last: began.map(Into::into),
                next: next.map(Into::into),
                outcome: last.as_ref().map(|run| run.status.into()),
                run: last.as_ref().map(|run| run.id),
                skipped_because: memory.and_then(|memory| memory.skipped_because),
            });
        }
        if context.out.is_json() {
            return context.out.value(&rows);
        }
        let mut table = Table::new(["FORMULA", "LAST", "OUTCOME", "NEXT", "SKIPPED BECAUSE"]);
        let time = |at: Option<Time>| at.map(|at| at.to_string()).unwrap_or_default();
        for row in &rows {
            table.row([
                row.formula.as_str().into(),
                time(row.last).into(),
                row.outcome.map_or("", Status::name).into(),
                time(row.next).into(),
                clean_line(row.skipped_because.as_deref().unwrap_or_default(), 200).into(),
            ]);
        }
        context.out.table(
            &table,
            "No formula is scheduled. To schedule one, set [schedule.formulas] in pointsman.toml.",
        )
    }
}

fn next(cron: &Cron, place: &SystemZone, now: Timestamp) -> Option<Timestamp> {
    cron.next(now, place)
}
