use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use pointsman_core::config::Config;
use pointsman_core::ids::ProjectName;
use pointsman_core::session::budget::{Spent, dollars};
use pointsman_core::session::context::Gauge;
use pointsman_core::session::liveness::{Liveness, Rules, SessionHealth, colour};
use pointsman_core::session::work::WorkPhase;
use pointsman_core::time::Timestamp;
use pointsman_store::{AgentRow, ProjectRow, SessionRow, SessionStatus, Store};
use pointsman_view::agent::{Agent, Identity};
use pointsman_view::session::Status;
use pointsman_view::task::usd;

use super::context::Context;
use super::failure::Failure;
use super::table::{Cell, Table};
use super::{style, time};
use crate::control::client;
use crate::process_probe::ProcessProbe;
use crate::{daemon, identity};

/// A crash is news for this long.
const NEWS: Duration = Duration::from_secs(3600);
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);
const NOBODY: &str = "No agents are running. To list those that have ended, use --all.";

/// List agents: which are alive, what they work on, and what they cost
///
/// ● fresh, ◐ stale or unknown, ✖ crashed, ○ ended. Without --all, the list has agents that have not ended and crashes
/// of the last hour. It covers all projects unless --project names one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    pointsman agents --watch\n  \
    pointsman agents --all --json | jq '[.[].cost_usd] | add'")]
pub(crate) struct Arguments {
    /// Include every session that has ended
    #[arg(long)]
    all: bool,
    /// Refresh every second; with --json, print a line each time
    #[arg(long, short)]
    watch: bool,
}

/// Agents, and how each of them stands. Apart, because a row is large and there may be a thousand.
#[derive(Default)]
struct Agents {
    rows: Vec<AgentRow>,
    standings: Vec<SessionHealth>,
    /// The daemon itself, after all others.
    daemon: Option<(Identity, SessionHealth)>,
}

impl Agents {
    fn each(&self) -> impl Iterator<Item = (&AgentRow, SessionHealth)> {
        self.rows.iter().zip(self.standings.iter().copied())
    }

    fn shown(&self, now: Timestamp) -> Vec<Agent> {
        let agents = self.each().map(|(row, standing)| view(row, standing, now));
        agents
            .chain(self.daemon.as_ref().map(|(identity, standing)| daemon_view(identity, *standing, now)))
            .collect()
    }
}

impl Arguments {
    #[allow(clippy::disallowed_methods, reason = "looks again until it is interrupted")]
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        loop {
            let now = time::now();
            let mut agents = match context.store()? {
                Some(store) => self.look(context, &store, now)?,
                None => Agents::default(),
            };
            let running = client::is_running(&context.paths.control_socket());
            if context.wanted.is_none() {
                agents.daemon = self.daemon(context, running, now);
            }
            self.print(context, &agents, now)?;
            if !running {
                context.out.say(
                    "The daemon is not running. This shows what it last recorded and what the processes say. To \
                        start it, run `pointsman up`.",
                );
            }
            if !self.watch {
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    fn look(&self, context: &Context, store: &Store, now: Timestamp) -> Result<Agents, Failure> {
        let mut rows = store.agents(context.wanted.as_ref(), self.all)?;
        rows.retain(|row| self.all || is_current(&row.session, now));
        let rules = rules(store)?;
        let usual = Rules::of(&Config::default().timing);
        let witness = ProcessProbe::new();
        let standing = |row: &AgentRow| {
            let rules = rules.get(&row.session.project).unwrap_or(&usual);
            witness.health(&row.session, rules, now)
        };
        let standings = rows.iter().map(standing).collect();
        Ok(Agents { rows, standings, daemon: None })
    }

    /// The daemon as its own file shows it. One that ended in order is shown with those that have ended.
    fn daemon(&self, context: &Context, running: bool, now: Timestamp) -> Option<(Identity, SessionHealth)> {
        let text = std::fs::read(context.paths.state().join(daemon::IDENTITY_FILE)).ok()?;
        let identity: Identity = serde_json::from_slice(&text).ok()?;
        let quiet = now.since(identity.last_seen.0) > Rules::of(&Config::default().timing).stale_after;
        let standing = match (running, identity.status) {
            (true, _) if quiet => SessionHealth::Open(Liveness::Stale),
            (true, _) => SessionHealth::Open(Liveness::Alive),
            (false, Status::Terminated) => SessionHealth::Ended,
            (false, Status::Starting | Status::Active | Status::Crashed) => SessionHealth::Crashed,
        };
        (self.all || standing != SessionHealth::Ended).then_some((identity, standing))
    }

    fn print(&self, context: &Context, agents: &Agents, now: Timestamp) -> Result<(), Failure> {
        match (context.out.is_json(), self.watch) {
            (true, true) => context.out.value_line(&agents.shown(now)),
            (true, false) => context.out.value(&agents.shown(now)),
            (false, true) => context.out.redraw(&table(agents, now), NOBODY),
            (false, false) => context.out.table(&table(agents, now), NOBODY),
        }
    }
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
    let rules = |row: ProjectRow| {
        let config = daemon::accepted_config(store, &row).ok()?;
        Some((row.name, Rules::of(&config.timing)))
    };
    Ok(projects.filter_map(rules).collect())
}

fn table(agents: &Agents, now: Timestamp) -> Table<'_> {
    let mut table = Table::new([
        "LIVENESS", "AGENT", "ROLE", "TASK", "STATE", "PHASE", "WORK", "AGE", "SEEN", "RESTARTS", "CONTEXT",
        "COST",
    ]);
    for (row, standing) in agents.each() {
        let (session, colour) = (&row.session, colour(standing));
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
            if row.restarts > 0 { row.restarts.to_string().into() } else { "".into() },
            session.gauge.map(|gauge| format!("{}%", gauge.percent())).unwrap_or_default().into(),
            cost(session).into(),
        ]);
    }
    if let Some((identity, standing)) = &agents.daemon {
        let colour = colour(*standing);
        let (begun, seen) = (identity.created_at.0, identity.last_seen.0);
        table.row([
            Cell::styled(format!("{} {}", colour.mark(), standing.word()), style::of_session(colour)),
            identity.session_id.as_str().into(),
            "daemon".into(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
            time::rough(now.since(begun)).into(),
            time::relative(seen, now).into(),
            "".into(),
            "".into(),
            "".into(),
        ]);
    }
    table
}

/// The view of the daemon, which costs nothing and works on no task.
fn daemon_view(identity: &Identity, standing: SessionHealth, now: Timestamp) -> Agent {
    Agent {
        identity: identity.clone(),
        liveness: colour(standing),
        project: None,
        task: None,
        state: None,
        phase: None,
        work_phase: None,
        exit: None,
        ended_at: None,
        context_percent: None,
        context_source: None,
        cost_usd: None,
        tokens: None,
        token_classes: None,
        turns: 0,
        restarts: 0,
        wall_seconds: now.since(identity.created_at.0).as_secs(),
    }
}

/// What nobody told is a dash and not nothing: not every agent tells.
pub(super) fn cost(session: &SessionRow) -> String {
    let Spent { micro_usd, turns, tokens, .. } = session.spent;
    let money = (micro_usd > 0).then(|| format!("{} USD", dollars(micro_usd)));
    let tokens = (micro_usd == 0 && tokens > 0).then(|| format!("{tokens} tokens"));
    let known = money.or(tokens).unwrap_or_else(|| "—".to_owned());
    let turns = (turns > 0).then(|| format!("{turns} {}", if turns == 1 { "turn" } else { "turns" }));
    std::iter::once(known).chain(turns).collect::<Vec<_>>().join(", ")
}

/// The view of an agent.
fn view(row: &AgentRow, standing: SessionHealth, now: Timestamp) -> Agent {
    let (session, spent) = (&row.session, identity::spent(&row.session));
    Agent {
        identity: identity::of(session),
        liveness: colour(standing),
        project: Some(session.project.clone()),
        task: session.issue,
        state: row.state,
        phase: row.phase,
        work_phase: row.work_phase,
        exit: session.exit,
        ended_at: session.ended_at.map(Into::into),
        context_percent: session.gauge.map(Gauge::percent),
        context_source: session.gauge.map(|gauge| gauge.source),
        cost_usd: usd(spent),
        tokens: spent.known_tokens(),
        token_classes: spent.known_classes(),
        turns: session.spent.turns,
        restarts: row.restarts,
        wall_seconds: session.ended_at.unwrap_or(now).since(session.created_at).as_secs(),
    }
}
