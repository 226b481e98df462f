//! How long a daemon takes to be ready, and commands to answer, with a long history.

use std::time::{Duration, Instant};

use pointsman::daemon::clock;
use pointsman_store::{ForgeDatabase, Store};
use serde_json::json;

use crate::history::{self, Length};
use crate::report::{Report, Target};
use crate::sample::Sample;
use crate::stage::{Stage, Workspace};

/// What is measured.
const LONG: Length = Length { tasks: 10_000, events: 1_000_000 };
/// What it is compared with.
const SHORT: Length = Length { tasks: 100, events: 1_000 };
/// Each thing is measured so often; the table has the median and the worst.
const TIMES: usize = 7;
/// Issue 2: ready after at most so many milliseconds.
const READY_LIMIT: f64 = 1000.0;
/// What people type.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("task list", &["task", "list"]),
    ("status", &["status"]),
    ("task show", &["task", "show"]),
    ("task explain", &["task", "explain"]),
];

/// Measures both lengths.
pub(crate) fn measure(place: &Workspace) -> anyhow::Result<Report> {
    let (short, long) = (one(place, SHORT)?, one(place, LONG)?);
    let millis = |sample: &Sample| format!("{:.1}", sample.percentile(50));
    let rows = short.iter().zip(&long).map(|((name, short), (_, long))| {
        let ratio = long.percentile(50) / short.percentile(50).max(0.001);
        vec![
            (*name).to_owned(),
            millis(short),
            millis(long),
            format!("{:.1}", long.max()),
            format!("{ratio:.1}"),
        ]
    });
    let results = [(SHORT, &short), (LONG, &long)].into_iter().flat_map(|(length, samples)| {
        samples.iter().map(move |(name, sample)| {
            let mut value = sample.to_json();
            value["what"] = json!(name);
            value["tasks"] = json!(length.tasks);
            value["events"] = json!(length.events);
            value
        })
    });
    let targets = long.iter().filter(|(name, _)| *name == READY).map(|(_, sample)| Target {
        what: format!("start with {} tasks and {} events, the worst:", LONG.tasks, LONG.events),
        unit: "ms",
        limit: READY_LIMIT,
        found: sample.max(),
    });
    Ok(Report {
        name: "startup",
        title: format!(
            "Start-up: median of {TIMES}, milliseconds. Short: {} tasks, {} events. Long: {} tasks, {} events.",
            SHORT.tasks, SHORT.events, LONG.tasks, LONG.events
        ),
        header: vec!["WHAT", "SHORT", "LONG", "LONG, WORST", "RATIO"],
        rows: rows.collect(),
        targets: targets.collect(),
        results: results.collect(),
    })
}

const READY: &str = "exec to ready";

fn one(place: &Workspace, length: Length) -> anyhow::Result<Vec<(&'static str, Sample)>> {
    let mut stage = Stage::build(place, 1)?;
    let begun = Instant::now();
    let project = stage.project();
    let mut forge_db = ForgeDatabase::open(&stage.paths().project(&project).forge_database())?;
    history::write_issues(&mut forge_db, length, clock::now())?;
    drop(forge_db);
    let mut store = Store::open(&stage.paths().database())?;
    history::write(&mut store, &project, length, clock::now())?;
    drop(store);
    eprintln!("{} events written in {:.1} s", length.events, begun.elapsed().as_secs_f64());

    let mut starts = Vec::with_capacity(TIMES);
    for time in 0..TIMES {
        starts.push(stage.start_daemon()?);
        // The last one stays up for the commands.
        if time + 1 < TIMES {
            stage.stop_daemon()?;
        }
    }
    let mut samples = vec![(READY, sample(&starts))];
    let middle = (length.tasks / 2).to_string();
    for (name, words) in COMMANDS {
        let mut args = words.to_vec();
        if matches!(args.last(), Some(&("show" | "explain"))) {
            args.push(&middle);
        }
        let times = (0..TIMES).map(|_| stage.pointsman(&args)).collect::<anyhow::Result<Vec<_>>>()?;
        samples.push((name, sample(&times)));
    }
    Ok(samples)
}

fn sample(times: &[Duration]) -> Sample {
    Sample::new(times.iter().map(|time| time.as_secs_f64() * 1000.0).collect())
}
