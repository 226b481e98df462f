//! From figures to predictions.

use serde::{Deserialize, Serialize};

use super::{Memory, Sample};
use crate::config::Config;

/// A trend needs so many days.
const TREND_DAYS: usize = 3;
/// A disk that is full later than this is nobody's business yet.
const HORIZON_DAYS: f64 = 14.0;
/// Fewer runs of CI in a week say nothing.
const FEW_RUNS: u64 = 10;
/// From so many red runs of a hundred on it is worth a word.
const RED_PERCENT: u64 = 20;
/// So often a week is a pattern.
const PATTERN: u64 = 3;
/// So many stale issues are a heap.
const HEAP: u64 = 5;

/// What happened in a week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Runs of CI.
    pub checks: u64,
    /// Of these red.
    pub red: u64,
    /// Of these spoilt by the machinery, or stopped at their time limit.
    pub infra: u64,
    /// Sessions that died.
    pub crashes: u64,
    /// Tasks that became blocked.
    pub blocked: u64,
}

/// All figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The last seven days.
    pub week: Counts,
    /// The seven before.
    pub before: Counts,
    /// Open issues.
    pub open: u64,
    /// Of these untouched for `timing.stale_issue`.
    pub stale: u64,
}

/// An observation that will become trouble.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "prediction", rename_all = "snake_case")]
pub enum Prediction {
    /// A disk will be too full.
    DiskFills {
        /// Where.
        path: String,
        /// How full it is.
        percent: u64,
        /// How full it was on the first day looked at.
        was: u64,
        /// How many days ago that was.
        over_days: u64,
        /// In how many days it passes the threshold.
        in_days: u64,
        /// Of so many percent.
        threshold: u64,
    },
    /// CI becomes redder.
    CiRedder {
        /// Red runs of a hundred, this week.
        percent: u64,
        /// The week before.
        was: u64,
        /// Runs this week.
        runs: u64,
    },
    /// CI's machinery fails again and again.
    CiUnsteady {
        /// How often this week.
        times: u64,
        /// The week before.
        was: u64,
    },
    /// Sessions die more often.
    SessionsDie {
        /// How often this week.
        times: u64,
        /// The week before.
        was: u64,
    },
    /// Tasks become blocked more often.
    TasksBlock {
        /// How often this week.
        times: u64,
        /// The week before.
        was: u64,
    },
    /// Issues lie about.
    IssuesPileUp {
        /// How many nobody touched.
        stale: u64,
        /// Of how many.
        open: u64,
    },
}

impl Prediction {
    /// The same for as long as it is the same trouble.
    pub fn key(&self) -> String {
        match self {
            Self::DiskFills { path, .. } => {
                format!("disk-{}", path.replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
            }
            Self::CiRedder { .. } => "ci-redder".to_owned(),
            Self::CiUnsteady { .. } => "ci-unsteady".to_owned(),
            Self::SessionsDie { .. } => "sessions-die".to_owned(),
            Self::TasksBlock { .. } => "tasks-block".to_owned(),
            Self::IssuesPileUp { .. } => "issues-pile-up".to_owned(),
        }
    }
}

/// What the figures foretell, the most pressing first.
pub fn predict(memory: &Memory, figures: &Figures, config: &Config) -> Vec<Prediction> {
    let mut found = disks(&memory.samples, u64::from(config.health.max_disk_percent));
    let Figures { week, before, .. } = figures;
    let share = |counts: &Counts| (counts.red * 100).checked_div(counts.checks).unwrap_or(0);
    if week.checks >= FEW_RUNS && share(week) >= RED_PERCENT && share(week) * 2 >= share(before) * 3 {
        found.push(Prediction::CiRedder { percent: share(week), was: share(before), runs: week.checks });
    }
    let grows = |now: u64, was: u64| now >= PATTERN && now >= was.saturating_mul(2);
    if grows(week.infra, before.infra) {
        found.push(Prediction::CiUnsteady { times: week.infra, was: before.infra });
    }
    if grows(week.crashes, before.crashes) {
        found.push(Prediction::SessionsDie { times: week.crashes, was: before.crashes });
    }
    if grows(week.blocked, before.blocked) {
        found.push(Prediction::TasksBlock { times: week.blocked, was: before.blocked });
    }
    if figures.stale >= HEAP && figures.stale * 4 >= figures.open {
        found.push(Prediction::IssuesPileUp { stale: figures.stale, open: figures.open });
    }
    found
}

/// A straight line through the days.
fn disks(samples: &[Sample], threshold: u64) -> Vec<Prediction> {
    const DAY: f64 = 86_400_000.0;
    let Some(last) = samples.last() else { return Vec::new() };
    let mut found = Vec::new();
    for (path, percent) in &last.disks {
        let days: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|sample| {
                let ago = (last.at.0.saturating_sub(sample.at.0)) as f64 / DAY;
                sample.disks.get(path).map(|percent| (-ago, *percent as f64))
            })
            .collect();
        let count = days.len() as f64;
        let (mean_x, mean_y) = (
            days.iter().map(|(x, _)| x).sum::<f64>() / count,
            days.iter().map(|(_, y)| y).sum::<f64>() / count,
        );
        let spread: f64 = days.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        if days.len() < TREND_DAYS || spread <= 0.0 || *percent > threshold {
            continue;
        }
        let slope = days.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
        let in_days = (threshold as f64 - *percent as f64 + 1.0) / slope;
        if slope > 0.0 && in_days <= HORIZON_DAYS {
            let (first_x, first_y) = days[0];
            found.push(Prediction::DiskFills {
                path: path.clone(),
                percent: *percent,
                was: first_y as u64,
                over_days: (-first_x).round() as u64,
                in_days: in_days.ceil() as u64,
                threshold,
            });
        }
    }
    found
}
