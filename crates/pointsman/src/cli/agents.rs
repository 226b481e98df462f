use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use pointsman_core::config::Config;
use pointsman_core::ids::ProjectName;
use pointsman_core::session::budget::{Spent, dollars};
use pointsman_core::session::context::{Gauge, Source};
use pointsman_core::session::liveness::{Rules, Standing, colour};
use pointsman_core::session::work::WorkPhase;
use pointsman_core::task::{Exit, Phase, State};
use pointsman_core::time::Timestamp;
use pointsman_store::{AgentRow, SessionRow, SessionStatus, Store};
use serde::Serialize;

use super::context::Context;
use super::failure::Failure;
use super::sighting::Witness;
use super::table::{Cell, Table};
use super::{style, task, time};
use crate::control::client;
use crate::{daemon, identity};

/// A crash is news for this long.
const NEWS: Duration = Duration::from_secs(3600);
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// A thread is not worth its start for fewer.
const LEAST_SHARE: usize = 100;
const NOBODY: &str = "No agents. --all lists those that have ended.";

/// List agents: who is alive, at what, and at which cost
///
/// ● fresh, ◐ stale or unknown, ✖ crashed, ○ ended. Without --all: those that have not ended, and the crashes of the
/// last hour. Of all projects, unless --project names one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman agents --watch\n  \
    pointsman agents --all --json | jq '[.[].cost_usd] | add'")]
pub(crate) struct Arguments {
    /// Also every session that has ended
    #[arg(long)]
    all: bool,
    /// Look again every second; with --json a line each time
    #[arg(long, short)]
    watch: bool,
}

/// An agent and how it stands.
struct Agent {
    row: AgentRow,
    standing: Standing,
}

impl Arguments {
    #[allow(clippy::disallowed_methods, reason = "looks again until it is interrupted")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        loop {
            let now = time::now();
            let agents = match context.store()? {
                Some(store) => self.look(context, &store, now)?,
                None => Vec::new(),
            };
            self.print(context, &agents, now)?;
            if !client::is_running(&context.paths.control_socket()) {
                context.out.say(
                    "The daemon is not running: this is what it wrote last, and what the processes say (pointsman up).",
                );
            }
            if !self.watch {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn look(&self, context: &Context, store: &Store, now: Timestamp) -> Result<Vec<Agent>, Failure> {
        let mut rows = store.agents(context.wanted.as_ref(), self.all)?;
        rows.retain(|row| self.all || is_current(&row.session, now));
        let rules = rules(store)?;
        let usual = Rules::of(&Config::default().timing);
        let witness = Witness::new();
        let standing = |row: &AgentRow| {
            let rules = rules.get(&row.session.project).unwrap_or(&usual);
            witness.standing(&row.session, rules, now)
        };
        let standings = side_by_side(&rows, standing);
        Ok(rows.into_iter().zip(standings).map(|(row, standing)| Agent { row, standing }).collect())
    }

    fn print(&self, context: &Context, agents: &[Agent], now: Timestamp) -> Result<(), Failure> {
        match (context.out.is_json(), self.watch) {
            (true, true) => {
                context.out.value_line(&agents.iter().map(|agent| to_json(agent, now)).collect::<Vec<_>>())
            }
            (true, false) => {
                context.out.value(&agents.iter().map(|agent| to_json(agent, now)).collect::<Vec<_>>())
            }
            (false, true) => context.out.redraw(&table(agents, now), NOBODY),
            (false, false) => context.out.table(&table(agents, now), NOBODY),
        }
    }
}

/// Looks at all of them, on as many cores as it is worth: the kernel takes its time to describe a process.
fn side_by_side(rows: &[AgentRow], standing: impl Fn(&AgentRow) -> Standing + Sync) -> Vec<Standing> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = rows.len().div_ceil(cores).max(LEAST_SHARE);
    let look = |rows: &[AgentRow]| rows.iter().map(&standing).collect::<Vec<_>>();
    let (own, others) = rows.split_at(share.min(rows.len()));
    std::thread::scope(|scope| {
        let looks: Vec<_> = others.chunks(share).map(|rows| scope.spawn(move || look(rows))).collect();
        let mut standings = look(own);
        for other in looks {
            standings.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        standings
    })
}

/// Whether an identity's newest session is of interest without being asked for.
fn is_current(row: &SessionRow, now: Timestamp) -> bool {
    match (row.ended_at, row.status()) {
        (None, _) => true,
        (Some(at), SessionStatus::Crashed) => now.since(at) <= NEWS,
        (Some(_), SessionStatus::Starting | SessionStatus::Active | SessionStatus::Terminated) => false,
    }
}

/// The rules of each project. One whose configuration cannot be read has the usual ones.
fn rules(store: &Store) -> Result<BTreeMap<ProjectName, Rules>, Failure> {
    let projects = store.projects()?.into_iter();
    let read = |path: &std::path::Path| daemon::read_config(path).ok();
    Ok(projects.filter_map(|row| Some((row.name, Rules::of(&read(&row.config_path)?.timing)))).collect())
}

fn table(agents: &[Agent], now: Timestamp) -> Table {
    let mut table = Table::new([
        "LIVENESS", "AGENT", "ROLE", "TASK", "STATE", "PHASE", "WORK", "AGE", "SEEN", "CONTEXT", "COST",
    ]);
    for Agent { row, standing } in agents {
        let (session, colour) = (&row.session, colour(*standing));
        table.row([
            Cell::styled(format!("{} {}", colour.mark(), standing.word()), style::of_session(colour)),
            session.session.as_str().into(),
            session.role.as_str().into(),
            session.issue.map(|issue| format!("#{issue}")).unwrap_or_default().into(),
            row.state.map_or_else(|| "".into(), |state| Cell::styled(state.name(), style::of(state))),
            row.phase.map(|phase| phase.to_string()).unwrap_or_default().into(),
            row.work_phase.map_or("", WorkPhase::name).into(),
            time::rough(now.since(session.created_at)).into(),
            time::relative(session.last_seen, now).into(),
            session.gauge.map(|gauge| format!("{}%", gauge.percent())).unwrap_or_default().into(),
            cost(session).into(),
        ]);
    }
    table
}

/// Nothing spent is nothing known: not every agent tells.
fn cost(session: &SessionRow) -> String {
    let Spent { micro_usd, turns, .. } = session.spent;
    let money = (micro_usd > 0).then(|| format!("{} USD", dollars(micro_usd)));
    let turns = (turns > 0).then(|| format!("{turns} turns"));
    money.into_iter().chain(turns).collect::<Vec<_>>().join(", ")
}

/// An agent as scripts see it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    identity: identity::Fields<'a>,
    liveness: &'static str,
    project: &'a ProjectName,
    task: Option<u64>,
    state: Option<State>,
    phase: Option<Phase>,
    work_phase: Option<WorkPhase>,
    exit: Option<&'static str>,
    ended_at: Option<String>,
    context_percent: Option<f64>,
    context_source: Option<Source>,
    cost_usd: f64,
    tokens: u64,
    turns: u64,
    wall_seconds: u64,
}

fn to_json(agent: &Agent, now: Timestamp) -> Shown<'_> {
    let Agent { row, standing } = agent;
    let session = &row.session;
    Shown {
        identity: identity::Fields::of(session),
        liveness: colour(*standing).name(),
        project: &session.project,
        task: session.issue,
        state: row.state,
        phase: row.phase,
        work_phase: row.work_phase,
        exit: session.exit.map(Exit::name),
        ended_at: session.ended_at.map(time::rfc3339),
        context_percent: session.gauge.map(Gauge::percent),
        context_source: session.gauge.map(|gauge| gauge.source),
        cost_usd: task::usd(session.spent),
        tokens: session.spent.tokens,
        turns: session.spent.turns,
        wall_seconds: session.ended_at.unwrap_or(now).since(session.created_at).as_secs(),
    }
}
