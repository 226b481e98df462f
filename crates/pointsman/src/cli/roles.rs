//! The roles: what they did, what that cost, and what came of it.

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use pointsman_core::role::Role;
use pointsman_core::run::Status;
use pointsman_core::session::budget::Spent;
use pointsman_core::task::{Exit, State, Task};
use pointsman_core::time::Timestamp;
use pointsman_store::{RunScope, SessionRow, SessionScope, Store};
use pointsman_view::role as view;
use pointsman_view::task::usd;

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

/// Show what each role ran, what it cost, and what came of it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman roles --days 30\n  \
    pointsman roles look gardener\n  \
    pointsman roles resume gardener")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// How many days to count, including today
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_DAYS)))]
    days: u32,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make the gardener, planner, predictor or supervisor look now instead of at its next scheduled time
    #[command(after_help = "Example:\n  pointsman roles look gardener")]
    Look {
        /// The role
        #[arg(value_parser = super::role())]
        role: Role,
    },
    /// Let a role that was paused for noise ask a model again
    #[command(after_help = "Example:\n  pointsman roles resume gardener")]
    Resume {
        /// The role
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
                context.people_only("making a role look")?;
                let request = Request::LookNow { project: project.config.name.clone(), role };
                let _: view::LookOrdered = context.ask(&request)?;
                context.out.say(format!(
                    "The {role} is looking. To see what it found, run `pointsman journal --role {role}`."
                ));
                Ok(())
            }
            Some(Command::Resume { role }) => {
                context.people_only("resuming a role")?;
                let request = Request::ResumeRole { project: project.config.name.clone(), role };
                let _: view::Resumed = context.ask(&request)?;
                context.out.say(format!("The {role} may ask a model again."));
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
        let (mut work, mut outcomes) = (None, view::Outcomes::default());
        if let (Some(store), Some(tally)) = (&store, &tally) {
            work = Some(sums(store, project, role, begins, now)?);
            outcomes = tally.of(role);
            if role == Task::ROLE {
                count_tasks(&store.tasks(Some(&project.config.name))?, begins, &mut outcomes);
            }
        }
        let (enabled, schedule) = (settings.enabled, settings.schedule.clone());
        rows.push(view::Role { role, enabled, schedule, work, outcomes });
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
        let work = row.work.as_ref();
        let figure =
            |count: fn(&view::Work) -> u64| work.map(|work| count(work).to_string()).unwrap_or_default();
        // Sessions ran and told nothing: a dash and not nothing.
        let told = |amount: Option<String>| amount.unwrap_or_else(|| work.map_or("", |_| "—").to_owned());
        let known = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
        let paused = work.and_then(|work| work.paused_at).map(|at| at.to_string());
        table.row([
            row.role.as_str().into(),
            if row.enabled { "yes" } else { "no" }.into(),
            figure(|work| work.runs as u64).into(),
            figure(|work| work.failed as u64).into(),
            told(work.and_then(|work| work.tokens).map(|tokens| tokens.to_string())).into(),
            told(work.and_then(|work| work.usd).map(|usd| format!("{usd:.2}"))).into(),
            figure(|work| work.used.into()).into(),
            figure(|work| work.noise.into()).into(),
            known(row.outcomes.merged).into(),
            known(row.outcomes.reverted).into(),
            known(row.outcomes.dismissed).into(),
            known(row.outcomes.false_alarms).into(),
            paused.unwrap_or_default().into(),
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
) -> Result<view::Work, Failure> {
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
    // The work of a dev is a task: its sessions are what others have as runs.
    let sessions = match role == Task::ROLE {
        true => store.sessions(Some(name), SessionScope::All)?,
        false => Vec::new(),
    };
    let sessions = || sessions.iter().filter(|row| row.role == role && row.created_at >= begins);
    let died = |row: &&SessionRow| {
        row.exit.is_some_and(|exit| exit == Exit::Failed || Exit::UNEXPECTED.contains(&exit))
    };
    Ok(view::Work {
        runs: ours().count() + sessions().count(),
        failed: ours().filter(|run| run.status == Status::Failed).count() + sessions().filter(died).count(),
        tokens: spent.known_tokens(),
        token_classes: spent.known_classes(),
        usd: usd(spent),
        turns: spent.turns,
        used: value.used,
        noise: value.noise,
        paused_at: value.paused_at.map(Into::into),
    })
}

/// Where tasks stand that moved since `begins`: the work of dev.
fn count_tasks(tasks: &[Task], begins: Timestamp, outcomes: &mut view::Outcomes) {
    let count = |wanted: fn(&Task) -> bool| {
        let count = tasks.iter().filter(|task| task.since >= begins && wanted(task)).count();
        Some(u64::try_from(count).unwrap_or(u64::MAX))
    };
    outcomes.merged = count(|task| task.contribution.merged_as().is_some());
    outcomes.blocked = count(|task| task.state == State::Blocked);
    outcomes.refused = count(|task| task.state == State::Refused);
}
