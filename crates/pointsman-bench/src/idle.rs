//! What it costs to watch sessions that do nothing.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::polling;
use crate::proc::{self, Cost};
use crate::report::{Report, Target};
use crate::wait;

/// Long enough for every default pace to come round at least once: the slowest is the forge's, 30 s.
pub(crate) const SPAN: Duration = Duration::from_secs(35);
/// Issue 2: at most so much of one core.
const CPU_LIMIT: f64 = 1.0;
/// Issue 2: at most so much memory.
const MEMORY_LIMIT: f64 = 100.0;

/// Whose cost.
pub(crate) struct Watched {
    pub(crate) name: &'static str,
    pub(crate) pid: u32,
    /// Whether this is what was promised.
    pub(crate) promised: bool,
}

/// What one process cost over the span.
pub(crate) struct Finding {
    name: &'static str,
    promised: bool,
    cpu_percent: f64,
    memory_mb: f64,
    seconds: f64,
}

/// Watches all of them over the same span.
pub(crate) fn watch(watched: &[Watched], span: Duration) -> anyhow::Result<Vec<Finding>> {
    let costs = || watched.iter().map(|w| proc::cost(w.pid)).collect::<anyhow::Result<Vec<Cost>>>();
    let (before, begun) = (costs()?, Instant::now());
    wait::pause(span)?;
    let (after, seconds) = (costs()?, begun.elapsed().as_secs_f64());
    let finding = |(watched, (before, after)): (&Watched, (&Cost, &Cost))| Finding {
        name: watched.name,
        promised: watched.promised,
        cpu_percent: after.cpu.saturating_sub(before.cpu).as_secs_f64() / seconds * 100.0,
        memory_mb: after.resident as f64 / f64::from(1 << 20),
        seconds,
    };
    Ok(watched.iter().zip(before.iter().zip(&after)).map(finding).collect())
}

/// The findings as a report.
pub(crate) fn report(sessions: u64, findings: &[Finding]) -> Report {
    let target = |what: &str, unit: &'static str, limit: f64, found: f64| Target {
        what: format!("{what} of the daemon with {sessions} idle sessions:"),
        unit,
        limit,
        found,
    };
    let targets = findings.iter().filter(|f| f.promised).flat_map(|f| {
        [
            target("processor time", "% of one core", CPU_LIMIT, f.cpu_percent),
            target("memory", "MB", MEMORY_LIMIT, f.memory_mb),
        ]
    });
    Report {
        name: "idle",
        title: format!(
            "Idle: {sessions} sessions, half working without a phase and half awaiting review, over {} s; all time \
             spans\nat their defaults. Processor time includes ended children. The polling loop sleeps for {} s.",
            SPAN.as_secs(),
            polling::SECONDS
        ),
        header: vec!["PROCESS", "CPU % OF ONE CORE", "RESIDENT MB"],
        rows: findings.iter().map(row).collect(),
        targets: targets.collect(),
        results: findings.iter().map(|finding| to_json(finding, sessions)).collect(),
    }
}

fn row(finding: &Finding) -> Vec<String> {
    vec![finding.name.to_owned(), format!("{:.2}", finding.cpu_percent), format!("{:.1}", finding.memory_mb)]
}

fn to_json(finding: &Finding, sessions: u64) -> Value {
    json!({
        "process": finding.name,
        "sessions": sessions,
        "seconds": finding.seconds,
        "cpu_percent": finding.cpu_percent,
        "memory_mb": finding.memory_mb,
    })
}
