//! How long the merge queue takes for a line of branches, in units of one gate run (T), beside the plain way: checkout,
//! rebase, test and push, one branch after another in one working tree.
//!
//! The gate sleeps, so that gates do not fight for cores: what is measured is what the queue adds.

mod conflicts;
mod line;
pub(crate) mod sizes;

use std::collections::BTreeSet;

use pointsman_core::queue::simulation::{Cost, cost};
use pointsman_core::queue::{Policy, Strategy};
use serde_json::{Value, json};

use crate::report::{Report, Target};
use crate::stage::Workspace;
use line::{QueueCase, Timing};

const SHORT: usize = 20;
const LONG: usize = 50;
/// The one of the long line that is red: 2 %.
const RED: usize = 20;
/// Batch size and depth.
const EIGHT: usize = 8;

const SEQUENTIAL: Policy = Policy { strategy: Strategy::Sequential, runners: 1 };
const BATCH: Policy = Policy { strategy: Strategy::Batch { size: EIGHT }, runners: 2 };
const SPECULATIVE: Policy = Policy { strategy: Strategy::Speculative { depth: EIGHT }, runners: EIGHT };

/// What is to be reached (issue 4).
const SEQUENTIAL_LIMIT: f64 = 21.2;
const BATCH_LIMIT: f64 = 12.0;
const SPECULATIVE_LIMIT: f64 = 8.3;
const OVERHEAD_LIMIT: f64 = 0.15;
const CONFLICTS_LIMIT: f64 = 1000.0;

/// Works lines of branches through.
pub(crate) fn measure(place: &Workspace, gate_seconds: u64) -> anyhow::Result<Report> {
    let t = gate_seconds as f64;
    let mut measured = Vec::new();
    for (branches, red) in [(SHORT, None), (LONG, Some(RED))] {
        measured.push(Row::plain(branches, red, line::plain(place, branches, red, gate_seconds)?, t));
        let ways: &[(&str, Policy)] = match branches {
            SHORT => &[("sequential", SEQUENTIAL)],
            _ => &[("batches of 8", BATCH), ("depth 8", SPECULATIVE)],
        };
        for (name, policy) in ways {
            let taken = line::queue(place, &QueueCase { policy: *policy, branches, red, gate_seconds })?;
            let ideal = cost(*policy, branches, &red.into_iter().collect());
            measured.push(Row { name, branches, red, taken, t, ideal: Some(ideal) });
        }
    }
    let conflicts = conflicts::measure(place, LONG)?;
    let found = |name: &str| measured.iter().find(|row| row.name == name);
    let units = |name: &'static str, limit| {
        found(name).map(|row| Target {
            what: format!("{} branches, {name}:", row.branches),
            unit: "T",
            limit,
            found: row.units(),
        })
    };
    let overhead = found("sequential").map(|row| Target {
        what: "overhead per landing:".to_owned(),
        unit: "s",
        limit: OVERHEAD_LIMIT,
        found: row.overhead(),
    });
    let conflict_target = Target {
        what: format!("conflict check of a queue of {LONG}, the worst:"),
        unit: "ms",
        limit: CONFLICTS_LIMIT,
        found: conflicts.max(),
    };
    let mut results: Vec<Value> = measured.iter().map(Row::to_json).collect();
    let mut checked = conflicts.to_json();
    checked["what"] = json!("conflict check");
    results.push(checked);
    results.extend(simulated().iter().map(|(name, share, cost)| {
        json!({ "what": name, "simulated": true, "red_percent": share, "makespan_t": cost.makespan, "runs": cost.runs })
    }));
    let mut rows: Vec<Vec<String>> = measured.iter().map(Row::cells).collect();
    rows.extend(simulated().into_iter().map(|(name, share, cost)| {
        let cells =
            [LONG.to_string(), format!("{share} %"), String::new(), String::new(), cost.makespan.to_string()];
        std::iter::once(format!("{name}, simulated")).chain(cells).chain([String::new()]).collect()
    }));
    Ok(Report {
        name: "mq",
        title: format!(
            "A line of branches to the main branch; the gate takes T = {gate_seconds} s. The conflict check of {LONG}: \
             {:.0} ms at the median.",
            conflicts.percentile(50)
        ),
        header: vec!["WAY", "BRANCHES", "RED", "SECONDS", "IN T", "IDEAL T", "OVER, S PER LANDING"],
        rows,
        targets: [
            units("sequential", SEQUENTIAL_LIMIT),
            units("batches of 8", BATCH_LIMIT),
            units("depth 8", SPECULATIVE_LIMIT),
            overhead,
            Some(conflict_target),
        ]
        .into_iter()
        .flatten()
        .collect(),
        results,
    })
}

/// What the planner alone would take, by red rate, with an executor that takes no time.
fn simulated() -> Vec<(&'static str, u32, Cost)> {
    let none = BTreeSet::new();
    let tenth: BTreeSet<usize> = (0..LONG).step_by(10).collect();
    let ways = [("sequential", SEQUENTIAL), ("batches of 8", BATCH), ("depth 8", SPECULATIVE)];
    ways.into_iter()
        .flat_map(|(name, policy)| {
            [(name, 0, cost(policy, LONG, &none)), (name, 10, cost(policy, LONG, &tenth))]
        })
        .collect()
}

/// One way and what it took.
struct Row<'a> {
    name: &'a str,
    branches: usize,
    red: Option<usize>,
    taken: Timing,
    t: f64,
    /// With an executor that takes no time; the plain way is a run of the gate for each.
    ideal: Option<Cost>,
}

impl Row<'_> {
    fn plain(branches: usize, red: Option<usize>, taken: Timing, t: f64) -> Self {
        Self { name: "plain", branches, red, taken, t, ideal: None }
    }

    fn units(&self) -> f64 {
        self.taken.seconds / self.t
    }

    fn ideal(&self) -> usize {
        self.ideal.map_or(self.branches, |cost| cost.makespan)
    }

    /// What every landing took beside the gate.
    fn overhead(&self) -> f64 {
        (self.taken.seconds - self.ideal() as f64 * self.t) / self.taken.landed.max(1) as f64
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.to_owned(),
            self.branches.to_string(),
            format!("{} %", usize::from(self.red.is_some()) * 100 / self.branches),
            format!("{:.1}", self.taken.seconds),
            format!("{:.2}", self.units()),
            self.ideal().to_string(),
            format!("{:.3}", self.overhead()),
        ]
    }

    fn to_json(&self) -> Value {
        json!({
            "what": self.name,
            "branches": self.branches,
            "red": usize::from(self.red.is_some()),
            "gate_seconds": self.t,
            "seconds": self.taken.seconds,
            "makespan_t": self.units(),
            "ideal_t": self.ideal(),
            "overhead_s": self.overhead(),
            "gate_runs": self.taken.gates,
        })
    }
}
