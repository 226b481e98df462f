//! The predictor's memory from day to day.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Prediction;
use crate::config::Config;
use crate::time::Timestamp;

/// Days whose figures are kept.
const DAYS: usize = 30;
/// What was said is not said again for so long, whatever became of it.
const SAID: i64 = 30 * 86_400_000;

/// The machine on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub at: Timestamp,
    /// How full each disk was, by the directory that matters.
    pub disks: BTreeMap<String, u64>,
    /// Memory that was free; none if nobody knows.
    #[serde(default)]
    pub free_memory_mb: Option<u64>,
}

/// The predictor's memory between two looks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    pub looked_at: Timestamp,
    /// The machine, day by day, oldest first.
    pub samples: Vec<Sample>,
    /// What was said, and when.
    pub said: BTreeMap<String, Timestamp>,
    /// The titles of issues that are on their way to the forge, by the key of their prediction.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub filing: BTreeMap<String, String>,
}

impl Memory {
    /// Takes a day's figures in.
    pub fn measure(&mut self, sample: Sample, now: Timestamp) {
        self.samples.push(sample);
        let surplus = self.samples.len().saturating_sub(DAYS);
        self.samples.drain(..surplus);
        self.said.retain(|_, at| now.0.saturating_sub(at.0) < SAID);
        self.looked_at = now;
    }

    /// Picks the new predictions: not open already, not said lately, and no more a day than the limit.
    pub fn news(
        &self,
        predictions: Vec<Prediction>,
        open: &BTreeSet<String>,
        config: &Config,
        now: Timestamp,
    ) -> Vec<Prediction> {
        let today = |at: &Timestamp| at.0.div_euclid(86_400_000) == now.0.div_euclid(86_400_000);
        let already = self.said.values().filter(|at| today(at)).count();
        let limit = usize::try_from(config.limits.predictor_issues).unwrap_or(usize::MAX);
        predictions
            .into_iter()
            .filter(|one| !open.contains(&one.key()) && !self.said.contains_key(&one.key()))
            .take(limit.saturating_sub(already))
            .collect()
    }
}
