//! Measures what is promised about speed and cost. Not a test: nothing here decides whether a change is right.
//!
//! `reaction` is the time from an agent's phase to its answer, `idle` what watching costs, `startup` how long a daemon
//! with a long history takes to be ready, `hooks` what an agent waits for a hook, `checkpoint` what saving a large tree
//! costs, `mq` how long the merge queue takes, `trees` what a landing costs by the number of files, `recovery` how long a killed
//! agent is away, `agents` how long it takes to see who is alive, `forge` what a forge on a server is asked, `sandbox` what the
//! sandbox adds to the start of a session and of CI, `relay` what relay and proxy add to requests.
//!
//! `stage` is the throw-away installation they run on, `fleet` the agents,
//! `polling` the way it is compared with, `report` the tables and files. `docs/benchmarks.md` has the numbers.

mod agents;
mod checkpoint;
mod fleet;
mod forge;
mod history;
mod hooks;
mod idle;
mod mq;
mod polling;
mod proc;
mod reaction;
mod recovery;
mod relay;
mod report;
mod sample;
mod sandbox;
mod sessions;
mod stage;
mod startup;
mod wait;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};

/// Measure how fast Pointsman reacts, what it costs when idle, and how long it takes to start
#[derive(Debug, Parser)]
struct Arguments {
    /// What to measure
    #[arg(value_enum, default_value_t = What::All)]
    what: What,
    /// How many sessions are many
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=1000))]
    sessions: u64,
    /// How long the merge queue's gate takes, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=60))]
    gate_seconds: u64,
    /// The largest project whose landings are measured, in files
    #[arg(long, default_value_t = 200_000)]
    most_files: usize,
    /// How many times as fast the day at the forge passes
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u32).range(10..=960))]
    faster: u32,
    /// The program to measure
    #[arg(long, default_value = "target/release/pointsman")]
    program: PathBuf,
    /// Where results go, and the throw-away installations while they are needed
    #[arg(long, default_value = "target/bench")]
    results: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Reaction,
    Idle,
    Startup,
    Checkpoint,
    Mq,
    Trees,
    Hooks,
    Recovery,
    Agents,
    Forge,
    Sandbox,
    Relay,
    All,
}

fn main() -> ExitCode {
    match measure(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: Arguments) -> anyhow::Result<()> {
    let Arguments { what, sessions, gate_seconds, most_files, faster, program, results } = arguments;
    wait::hear_signals()?;
    std::fs::create_dir_all(&results)?;
    let place = stage::Workspace { program: program.canonicalize()?, scratch: results.canonicalize()? };
    let wanted = sessions::Wanted {
        reaction: matches!(what, What::Reaction | What::All),
        idle: matches!(what, What::Idle | What::All),
        hooks: matches!(what, What::Hooks | What::All),
    };
    let mut reports = sessions::measure(&place, wanted, sessions)?;
    if matches!(what, What::Startup | What::All) {
        reports.push(startup::measure(&place)?);
    }
    if matches!(what, What::Checkpoint | What::All) {
        reports.push(checkpoint::measure(&place)?);
    }
    if matches!(what, What::Mq | What::All) {
        reports.push(mq::measure(&place, gate_seconds)?);
    }
    if matches!(what, What::Trees | What::All) {
        reports.push(mq::sizes::measure(&place, gate_seconds, most_files)?);
    }
    if matches!(what, What::Hooks | What::All) {
        reports.push(hooks::measure(&place)?);
    }
    if matches!(what, What::Recovery | What::All) {
        reports.push(recovery::measure(&place)?);
    }
    if matches!(what, What::Agents | What::All) {
        reports.push(agents::measure(&place)?);
    }
    if matches!(what, What::Forge | What::All) {
        reports.push(forge::measure(&place, faster)?);
    }
    if matches!(what, What::Sandbox | What::All) {
        reports.push(sandbox::measure(&place)?);
    }
    if matches!(what, What::Relay | What::All) {
        reports.push(relay::measure(&place)?);
    }
    for report in &reports {
        report.print();
        println!("written to {}\n", report.write(&results)?.display());
    }
    Ok(())
}
