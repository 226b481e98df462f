//! How well the machine and a project are.

use clap::Args;
use pointsman_core::health::assess;
use pointsman_core::text::clean_line;
use serde_json::Value;

use super::context::Context;
use super::failure::Failure;
use super::style::{BAD, GOOD, WAITING};
use super::time;
use crate::control::client;
use crate::control::protocol::{Fix, Reply, Request};
use crate::daemon::factory::{collect, memory, tails, whole_machine};
use crate::health_view;
use crate::project::Project;

/// Show how well the machine and the project are: what is wrong, how bad, and what can be done
///
/// P0: memory, P1: disk, P2: nothing goes on, P3: degraded, P4: housekeeping. It works without a daemon, too, and then
/// says what it does not know.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Carry out the safe remedies; none of them can destroy work
    #[arg(long)]
    fix: bool,
    /// Only say what --fix would do
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
        let value = match client::ask(&context.paths.control_socket(), &request) {
            Ok(Reply::Done { value }) => value,
            Ok(Reply::Failed { kind, message }) => return Err(Failure::new(kind.into(), message)),
            Err(client::Error::NotRunning) if fix == Fix::No => look(context, &project)?,
            Err(client::Error::NotRunning) => {
                return context.ask_daemon(&request).map(drop);
            }
            Err(error @ client::Error::Broken(_)) => {
                return Err(Failure::failed(format!("{:#}", anyhow::Error::new(error))));
            }
        };
        if context.out.is_json() { context.out.value(&value) } else { print(context, &value, fix) }
    }
}

/// Without a daemon: what can be seen from here.
fn look(context: &Context, project: &Project) -> Result<Value, Failure> {
    let (config, now) = (&project.config, time::now());
    let Some(store) = context.store()? else {
        return Err(Failure::not_found("nothing was ever written here").hint("pointsman up"));
    };
    let memory = memory(&store, &config.name)?;
    let machine = whole_machine(&context.paths, config, None);
    let facts = collect(machine, &context.paths, &store, config, None, now)?;
    let assessment = assess(&facts, config, &memory.keys(), now);
    let tails = tails(&context.paths, config, &facts, &assessment.findings);
    Ok(health_view::to_json(&facts, &assessment, &tails, &memory, &[], now))
}

fn print(context: &Context, value: &Value, fix: Fix) -> Result<(), Failure> {
    let text = |value: &Value| clean_line(value.as_str().unwrap_or_default(), 400);
    let list = |value: &Value| -> Vec<Value> { value.as_array().cloned().unwrap_or_default() };
    let mut lines = vec![text(&value["machine_text"])];
    let findings = list(&value["findings"]);
    if findings.is_empty() {
        lines.push(format!("{GOOD}All is well.{GOOD:#}"));
    }
    for finding in &findings {
        let ignored = if finding["ignored_until"].is_null() { "" } else { " (ignored)" };
        let priority = text(&finding["priority"]);
        let style = if matches!(priority.as_str(), "P0" | "P1" | "P2") { BAD } else { WAITING };
        lines.push(format!("{style}{priority}{style:#} {}{ignored}", text(&finding["text"])));
        match (&finding["remedy"], &finding["advice"]) {
            (Value::String(remedy), _) => lines.push(format!("     remedy: {}", clean_line(remedy, 300))),
            (_, Value::String(advice)) => lines.push(format!("     {}", clean_line(advice, 300))),
            _ => {}
        }
    }
    let unknown: Vec<String> = list(&value["unknown"]).iter().map(text).collect();
    if !unknown.is_empty() {
        let why = if value["daemon"] == true { "" } else { " (no daemon runs)" };
        lines.push(format!("Not known{why}: {}", unknown.join(", ")));
    }
    let verb = if fix == Fix::Dry { "Would" } else { "Done:" };
    lines.extend(list(&value["done"]).iter().map(|line| format!("{verb} {}", text(line))));
    for line in lines {
        context.out.line(line)?;
    }
    Ok(())
}
