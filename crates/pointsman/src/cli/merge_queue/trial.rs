//! Testing a branch on today's main without landing it. The daemon builds the candidate and checks it out; the gate runs
//! here, so that Ctrl-C ends it.

use std::fs;
use std::path::Path;

use clap::Args;
use pointsman_adapters::git::checkout::remove_checkout;
use pointsman_adapters::process::JobKiller;
use pointsman_core::config::MergeStyle;
use pointsman_core::ids::Sha;
use pointsman_core::task::CiVerdict;
use pointsman_core::words;
use pointsman_view::queue::{TrialVerdict, Tried};

use super::super::context::Context;
use super::super::daemon_client;
use super::super::failure::{Code, Failure};
use super::{Queue, QueueSelection, checkout_for, style};
use crate::control::protocol::{QueueCommand, Request};
use crate::daemon;
use crate::enclosure::Checkout;
use crate::paths::ProjectPaths;

/// How much of a log's end is shown, in lines.
const LINES: usize = 40;
/// The end of the help.
const AFTER: &str = "Example:
  pointsman merge-queue try fix-login
It ends with 0 if the branch is green, else with 1. No verdict is kept: to land, a branch is tested by the merge queue
itself.";

/// The arguments of `merge-queue try`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Arguments {
    /// The branch, from this checkout or else from the forge
    branch: String,
    /// How it would land: rebase, merge or squash; by default as the project is configured
    #[arg(long, value_parser = style)]
    style: Option<MergeStyle>,
    #[command(flatten)]
    which: QueueSelection,
}

impl Arguments {
    /// The trial, from the candidate to its verdict.
    pub(crate) fn run(self, context: &Context) -> Result<(), Failure> {
        context.people_only("trying a branch")?;
        let queue = Queue::of(context, &self.which)?;
        let config = &queue.project.config;
        let Some(gate) = config.gate() else {
            let why = match config.gate_is_checks() {
                true => words::queue::TRIED_BY_CI,
                false => words::queue::NO_GATE_TO_TRY,
            };
            return Err(Failure::refused(why));
        };
        let checkout = checkout_for(&self.which)?;
        let command = QueueCommand::Try { branch: self.branch, checkout, style: self.style };
        let request = Request::Queue { project: config.name.clone(), command };
        let (mut tried, _): (Tried, _) = daemon_client::ask(&queue.context.paths, &request)?;
        if let (Some(dir), Some(candidate)) = (tried.checkout.take(), tried.candidate_sha.clone()) {
            context.out.say(words::queue::trying(&tried.branch, &candidate, &tried.base_sha));
            let tested = test(&queue, gate, &candidate, &dir, &mut tried);
            if let Err(error) = remove_checkout(&dir) {
                context.out.say(format!("{}: {error}", dir.display()));
            }
            tested?;
        }
        print(context, &tried)?;
        match tried.verdict {
            Some(TrialVerdict::Green) => Ok(()),
            _ => Err(Failure::silent(Code::Failed)),
        }
    }
}

/// Runs the gate in the checkout. Its log stays beside it unless the branch is green.
fn test(queue: &Queue, gate: &[String], sha: &Sha, dir: &Path, tried: &mut Tried) -> Result<(), Failure> {
    let config = &queue.project.config;
    let log_path = dir.with_extension("log");
    let paths = queue.context.paths.project(&config.name);
    let checkout = Checkout { dir, command: gate, answer: None, learning: false, layers: None };
    let enclosure = Context::enclosure()?;
    let run = daemon::run_in_checkout(&enclosure, config, &paths, sha, &checkout)?
        .env("PROJECT_NAME", config.name.as_str());
    let job = run.start_job(&log_path).map_err(|error| Failure::failed(format!("{error:#}")))?;
    end_on_signal(job.killer())?;
    let ended = job.wait(config.timing.ci_timeout.into());
    enclosure.close_network(&ProjectPaths::proxy_name_in(dir));
    let ended = ended.map_err(|error| Failure::failed(format!("{error:#}")))?;
    let log = daemon::tail(&fs::read(&log_path).unwrap_or_default());
    let Some(verdict) = daemon::verdict_of(ended.end, "gate", log) else {
        let _ = fs::remove_file(&log_path);
        return Err(Failure::silent(Code::Interrupted));
    };
    let (word, reason, log) = match verdict {
        CiVerdict::Passed => (TrialVerdict::Green, None, None),
        CiVerdict::Failed { summary, log } => (TrialVerdict::Red, Some(summary), Some(log)),
        CiVerdict::TimedOut { log } => {
            (TrialVerdict::TimedOut, Some(words::daemon::queue::gate_timed_out().to_owned()), Some(log))
        }
        CiVerdict::Infra { reason, log } => (TrialVerdict::Infra, Some(reason), Some(log)),
        CiVerdict::Unreached { hosts, programs, log } => {
            (TrialVerdict::Infra, Some(words::sandbox::unlisted(&hosts, &programs)), Some(log))
        }
    };
    (tried.verdict, tried.reason) = (Some(word), reason);
    match log {
        None => drop(fs::remove_file(&log_path)),
        Some(log) => {
            let lines: Vec<&str> = log.lines().collect();
            tried.log = Some(lines[lines.len().saturating_sub(LINES)..].join("\n"));
            tried.log_path = Some(log_path);
        }
    }
    Ok(())
}

/// A gate has a process group of its own, so the terminal's Ctrl-C does not reach it.
pub(in crate::cli) fn end_on_signal(killer: JobKiller) -> Result<(), Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if signals.forever().next().is_some() {
            killer.kill();
        }
    })?;
    Ok(())
}

fn print(context: &Context, tried: &Tried) -> Result<(), Failure> {
    if context.out.is_json() {
        return context.out.value(tried);
    }
    let word = match tried.verdict {
        Some(TrialVerdict::Green) => "green",
        Some(TrialVerdict::Red) => "red",
        Some(TrialVerdict::TimedOut) => "timed out",
        Some(TrialVerdict::Infra) => "undecided",
        Some(TrialVerdict::Conflict) => "conflict",
        Some(TrialVerdict::Nothing) | None => "nothing to land",
    };
    let why = tried.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    context.out.line(format!("{}: {word}{why}", tried.branch))?;
    for file in &tried.conflict_files {
        context.out.line(format!("conflict in {file}"))?;
    }
    if let Some(path) = &tried.log_path {
        context.out.line(format!("log {}", path.display()))?;
    }
    match tried.log.as_deref().filter(|log| !log.is_empty()) {
        Some(log) => context.out.line(format!("\n{log}")),
        None => Ok(()),
    }
}
