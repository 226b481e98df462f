//! The health of the machine and of a project.

use std::path::Path;

use clap::Args;
use pointsman_core::health::assess;
use pointsman_core::text::clean_line;
use pointsman_view::health::Health;

use super::context::Context;
use super::failure::Failure;
use super::style::{BAD, GOOD, WAITING};
use super::{daemon_client, time};
use crate::control::client;
use crate::control::protocol::{Fix, Reply, Request};
use crate::daemon::factory::{collect, memory, tails, whole_machine};
use crate::project::Project;

/// Show the health of the machine and the project: what is wrong, how bad it is, and what helps
///
/// P0: memory, P1: disk, P2: nothing progresses, P3: degraded, P4: housekeeping. Without a daemon, the report says
/// what is unknown.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pointsman health\n  pointsman health --fix --dry-run")]
pub(crate) struct Arguments {
    /// Apply the safe remedies; none of them can destroy work
    #[arg(long)]
    fix: bool,
    /// Show what --fix would do, without doing it
    #[arg(long, requires = "fix")]
    dry_run: bool,
}

impl Arguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        let project = context.project()?;
        let fix = match (self.fix, self.dry_run) {
            (false, _) => Fix::No,
            (true, true) => Fix::Dry,
            (true, false) => Fix::Do,
        };
        if fix == Fix::Do {
            context.people_only("remedying")?;
        }
        let request = Request::Health { project: project.config.name.clone(), fix };
        let health = match ask_or_look(&context.paths.control_socket(), &request, fix) {
            Ok(reply) => daemon_client::view(reply)?,
            Err(client::Error::NotRunning) if fix == Fix::No => look(context, &project)?,
            Err(client::Error::Silent) => {
                daemon_client::say_silent();
                look(context, &project)?
            }
            Err(client::Error::NotRunning) => context.ask_daemon(&request)?,
            Err(error @ client::Error::Broken(_)) => {
                return Err(Failure::failed(format!("{:#}", anyhow::Error::new(error))));
            }
        };
        if context.out.is_json() { context.out.value(&health) } else { print(context, &health, fix) }
    }
}

/// Asks the daemon. Only whoever wants a remedy waits for one that is frozen.
fn ask_or_look(socket: &Path, request: &Request, fix: Fix) -> Result<Reply, client::Error> {
    match fix {
        Fix::No => client::look(socket, request),
        Fix::Dry | Fix::Do => client::ask(socket, request),
    }
}

/// Without a daemon: what can be seen from here.
fn look(context: &Context, project: &Project) -> Result<Health, Failure> {
    let (config, now) = (&project.config, time::now());
    let Some(store) = context.store()? else {
        return Err(Failure::not_found("nothing has ever been recorded here").hint("pointsman up"));
    };
    let memory = memory(&store, &config.name)?;
    let machine = whole_machine(&context.paths, config, None);
    let facts = collect(machine, &context.paths, &store, config, None, now)?;
    let assessment = assess(&facts, config, &memory.keys(), now);
    let tails = tails(&context.paths, config, &facts, &assessment.findings);
    Ok(Health::new(&facts, &assessment, &tails, &memory, &[], now))
}

fn print(context: &Context, health: &Health, fix: Fix) -> Result<(), Failure> {
    let mut lines = vec![clean_line(&health.machine_text, 400)];
    if health.findings.is_empty() {
        lines.push(format!("{GOOD}No problems found.{GOOD:#}"));
    }
    for finding in &health.findings {
        let ignored = if finding.ignored_until.is_none() { "" } else { " (ignored)" };
        let priority = finding.priority;
        let style = if priority.escalates() { BAD } else { WAITING };
        lines.push(format!("{style}{priority}{style:#} {}{ignored}", clean_line(&finding.text, 400)));
        match (&finding.remedy, &finding.advice) {
            (Some(remedy), _) => lines.push(format!("     remedy: {}", clean_line(remedy, 300))),
            (None, Some(advice)) => lines.push(format!("     {}", clean_line(advice, 300))),
            (None, None) => {}
        }
    }
    if !health.unknown.is_empty() {
        let why = if health.daemon { "" } else { " (no daemon is running)" };
        let unknown: Vec<String> = health.unknown.iter().map(|what| clean_line(what, 400)).collect();
        lines.push(format!("Unknown{why}: {}", unknown.join(", ")));
    }
    let verb = if fix == Fix::Dry { "Would" } else { "Done:" };
    lines.extend(health.done.iter().map(|line| format!("{verb} {}", clean_line(line, 400))));
    for line in lines {
        context.out.line(line)?;
    }
    Ok(())
}
