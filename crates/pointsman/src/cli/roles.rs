//! The roles: what they did, what that cost, and what came of it.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use pointsman_core::role::Role;
use pointsman_core::run::Status;
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{RunScope, Store};
use serde_json::{Value, json};

use super::context::Context;
use super::failure::Failure;
use super::table::Table;
use super::time;
use crate::control::protocol::Request;
use crate::daemon::factory::value;
use crate::project::Project;
use crate::tally::Tally;

/// Runs that are looked through.
const RUNS: u32 = 10_000;
/// The longest time that is summed up: each day is a question to the store.
const MOST_DAYS: u32 = 92;
const DAY: i64 = 86_400_000;

/// Show the roles: runs, tokens, money, and what came of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman roles --days 30\n  \
    pointsman roles look gardener\n  \
    pointsman roles resume gardener")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Of how many days, with today
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DAYS)))]
    days: u32,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Have the gardener, planner, predictor or supervisor look now, and not at its next time
    Look {
        /// Which
        #[arg(value_parser = super::role())]
        role: Role,
    },
    /// Let a role that was paused because of noise ask a model again
    Resume {
        /// Which
        #[arg(value_parser = super::role())]
        role: Role,
    },
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        match self.command {
            None => show(context, &project, self.days),
            Some(Command::Look { role }) => {
                context.people_only("having a role look")?;
                let request = Request::LookNow { project: project.config.name.clone(), role };
                context.ask(&request)?;
                context
                    .out
                    .say(format!("The {role} looks: pointsman journal --role {role} tells what it found."));
                Ok(())
            }
            Some(Command::Resume { role }) => {
                context.people_only("resuming a role")?;
                let request = Request::ResumeRole { project: project.config.name.clone(), role };
                context.ask(&request)?;
                context.out.say(format!("The {role} may ask again."));
                Ok(())
            }
        }
    }
}

fn show(context: &Context, project: &Project, days: u32) -> Result<(), Failure> {
    let now = time::now();
    let begins = Timestamp(now.0.div_euclid(DAY) * DAY - i64::from(days - 1) * DAY);
    let store = context.store()?;
    let mut rows = Vec::new();
    let tally = store.as_ref().map(|store| Tally::read(store, &project.config.name, begins)).transpose()?;
    for (role, settings) in project.config.roles.iter() {
        let sums = match &store {
            Some(store) => sums(store, project, role, begins, now)?,
            None => json!({}),
        };
        let mut row = json!({ "role": role, "enabled": settings.enabled, "schedule": settings.schedule });
        if let (Some(row), Value::Object(sums)) = (row.as_object_mut(), sums) {
            row.extend(sums);
            let known = tally.iter().flat_map(|tally| tally.of(role));
            row.extend(known.map(|(name, count)| (name.to_owned(), json!(count))));
        }
        rows.push(row);
    }
    if context.out.is_json() {
        return context.out.value(&rows);
    }
    let mut table = Table::new([
        "ROLE",
        "ON",
        "RUNS",
        "FAILED",
        "TOKENS",
        "USD",
        "USED",
        "NOISE",
        "MERGED",
        "REVERTED",
        "DISMISSED",
        "FALSE ALARMS",
        "PAUSED",
    ]);
    for row in &rows {
        let text = |name: &str| match &row[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let known = |name: &str| Some(text(name)).filter(|text| !text.is_empty()).unwrap_or("-".to_owned());
        table.row([
            text("role").into(),
            if row["enabled"] == true { "yes" } else { "no" }.into(),
            text("runs").into(),
            text("failed").into(),
            text("tokens").into(),
            format!("{:.2}", row["usd"].as_f64().unwrap_or(0.0)).into(),
            text("used").into(),
            text("noise").into(),
            known("merged").into(),
            known("reverted").into(),
            known("dismissed").into(),
            known("false_alarms").into(),
            text("paused_at").into(),
        ]);
    }
    context.out.table(&table, "There are no roles.")
}

/// What a role did since `begins`.
fn sums(
    store: &Store,
    project: &Project,
    role: Role,
    begins: Timestamp,
    now: Timestamp,
) -> Result<Value, Failure> {
    let name = &project.config.name;
    let mut spent = Spent::default();
    let mut at = begins;
    while at <= now {
        let of_day: BTreeMap<Role, Spent> = store.spent_by_role_on_day(Some(name), &time::day(at), now)?;
        spent = of_day.get(&role).map_or(spent, |more| spent.plus(*more));
        at = Timestamp(at.0 + DAY);
    }
    let runs = store.runs(name, RunScope::Last(RUNS))?;
    let ours = || runs.iter().filter(|run| run.formula.role() == role && run.started_at >= begins);
    let value = value(store, name, role)?;
    let mut sums = json!({
        "runs": ours().count(),
        "failed": ours().filter(|run| run.status == Status::Failed).count(),
        "tokens": spent.tokens,
        "usd": spent.micro_usd as f64 / 1e6,
        "turns": spent.turns,
        "used": value.used,
        "noise": value.noise,
        "paused_at": value.paused_at.map(time::rfc3339),
    });
    if role == Task::ROLE {
        let tasks = store.tasks(Some(name))?;
        let count = |wanted: fn(&Task) -> bool| {
            tasks.iter().filter(|task| task.since >= begins && wanted(task)).count()
        };
        sums["merged"] = json!(count(|task| task.merged_as.is_some()));
        sums["blocked"] = json!(count(|task| task.state == State::Blocked));
        sums["refused"] = json!(count(|task| task.state == State::Refused));
    }
    Ok(sums)
}
