//! From figures to predictions.

use serde::{Deserialize, Serialize};

use super::{Memory, Sample};
use crate::config::Config;

/// A trend needs so many days.
const TREND_DAYS: usize = 3;
/// A disk that is full later than this is nobody's business yet.
const HORIZON_DAYS: f64 = 14.0;
/// So well the days of a figure that hovers must lie on a line.
const STEADY: f64 = 0.8;
/// Fewer runs of CI in a week say nothing.
const FEW_RUNS: u64 = 10;
/// From so many red runs of a hundred on it is worth a word.
const RED_PERCENT: u64 = 20;
/// So often a week is a pattern.
const PATTERN: u64 = 3;
/// So many stale issues are a heap.
const HEAP: u64 = 5;

/// The counts of a week.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub checks: u64,
    pub red: u64,
    /// Of these spoilt by the machinery, or stopped at their time limit.
    pub infra: u64,
    pub crashes: u64,
    pub blocked: u64,
}

/// The figures of a project that predictions are made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// The last seven days.
    pub week: Counts,
    pub before: Counts,
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
        path: String,
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
    MemoryShrinks {
        free_mb: u64,
        /// How much was on the first day looked at.
        was: u64,
        /// How many days ago that was.
        over_days: u64,
        /// In how many days it is less than the threshold.
        in_days: u64,
        /// Of so many megabytes.
        threshold: u64,
    },
    CiRedder {
        /// Red runs of a hundred, this week.
        percent: u64,
        was: u64,
        runs: u64,
    },
    /// CI's machinery fails again and again.
    CiUnsteady {
        times: u64,
        was: u64,
    },
    SessionsDie {
        times: u64,
        was: u64,
    },
    /// Tasks become blocked more often.
    TasksBlock {
        times: u64,
        was: u64,
    },
    IssuesPileUp {
        stale: u64,
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
            Self::MemoryShrinks { .. } => "memory".to_owned(),
            Self::CiRedder { .. } => "ci-redder".to_owned(),
            Self::CiUnsteady { .. } => "ci-unsteady".to_owned(),
            Self::SessionsDie { .. } => "sessions-die".to_owned(),
            Self::TasksBlock { .. } => "tasks-block".to_owned(),
            Self::IssuesPileUp { .. } => "issues-pile-up".to_owned(),
        }
    }
}

/// The predictions that follow from the figures, the most pressing first.
pub fn predict(memory: &Memory, figures: &Figures, config: &Config) -> Vec<Prediction> {
    let mut found = disks(&memory.samples, u64::from(config.health.max_disk_percent));
    found.extend(memory_shrinks(&memory.samples, config.health.min_memory_mb));
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

/// A straight line through the days of a figure, from the last day back.
struct Trend {
    /// What it changes by a day.
    slope: f64,
    /// How well the days lie on it, from 0 to 1.
    fit: f64,
    /// The first day: how long ago, and the figure then.
    first: (f64, f64),
}

impl Trend {
    /// Nothing if there are too few days for a trend.
    fn through(samples: &[Sample], figure: impl Fn(&Sample) -> Option<u64>) -> Option<Self> {
        const DAY: f64 = 86_400_000.0;
        let last = samples.last()?;
        let days: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|sample| {
                let ago = (last.at.0.saturating_sub(sample.at.0)) as f64 / DAY;
                figure(sample).map(|figure| (-ago, figure as f64))
            })
            .collect();
        let first = *days.first()?;
        let count = days.len() as f64;
        // A few looks on one day are no trend, whatever they show.
        if days.len() < TREND_DAYS || -first.0 < (TREND_DAYS - 1) as f64 * 0.9 {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| days.iter().map(of).sum::<f64>() / count;
        let (mean_x, mean_y) = (mean(|day| day.0), mean(|day| day.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            days.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        let fit = if yy > 0.0 { xy * xy / (xx * yy) } else { 0.0 };
        (xx > 0.0).then_some(Self { slope: xy / xx, fit, first: (-first.0, first.1) })
    }

    /// In how many days it has come so far, if that is soon.
    fn days_to(&self, way: f64) -> Option<u64> {
        let days = way / self.slope;
        (self.slope != 0.0 && (0.0..=HORIZON_DAYS).contains(&days)).then(|| days.ceil() as u64)
    }
}

fn disks(samples: &[Sample], threshold: u64) -> Vec<Prediction> {
    let last = samples.last().into_iter().flat_map(|last| &last.disks);
    last.filter(|(_, percent)| **percent <= threshold)
        .filter_map(|(path, percent)| {
            let line = Trend::through(samples, |sample| sample.disks.get(path).copied())?;
            let in_days =
                line.days_to(threshold as f64 - *percent as f64 + 1.0).filter(|_| line.slope > 0.0)?;
            Some(Prediction::DiskFills {
                path: path.clone(),
                percent: *percent,
                was: line.first.1 as u64,
                over_days: line.first.0.round() as u64,
                in_days,
                threshold,
            })
        })
        .collect()
}

/// Memory comes and goes with what runs: only what falls steadily is a trend.
fn memory_shrinks(samples: &[Sample], threshold: u64) -> Option<Prediction> {
    let free_mb = samples.last()?.free_memory_mb.filter(|free| *free >= threshold)?;
    let line = Trend::through(samples, |sample| sample.free_memory_mb)?;
    let steady = line.slope < 0.0 && line.fit >= STEADY;
    let in_days = line.days_to(threshold as f64 - free_mb as f64).filter(|_| steady)?;
    Some(Prediction::MemoryShrinks {
        free_mb,
        was: line.first.1 as u64,
        over_days: line.first.0.round() as u64,
        in_days,
        threshold,
    })
}
