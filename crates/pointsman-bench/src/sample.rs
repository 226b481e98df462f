//! Numbers: what was measured, and chance without surprises.

use serde_json::{Value, json};

/// Measured times in milliseconds, sorted.
#[derive(Clone, Debug)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn new(mut millis: Vec<f64>) -> Self {
        millis.sort_by(f64::total_cmp);
        Self(millis)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The smallest value that this share of all values does not exceed (nearest rank); 0 without values.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).max(1);
        self.0.get(rank - 1).copied().unwrap_or(0.0)
    }

    pub(crate) fn max(&self) -> f64 {
        self.percentile(100)
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "samples": self.len(),
            "p50_ms": self.percentile(50),
            "p99_ms": self.percentile(99),
            "max_ms": self.max(),
        })
    }
}

/// The same numbers at every run (xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new() -> Self {
        Self(0x2545_f491_4f6c_dd1d)
    }

    /// A number below the limit, which is not 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[cfg(test)]
mod tests {
    use super::{Chance, Sample};

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sample = Sample::new((1..=200).rev().map(f64::from).collect());
        assert_eq!([50, 99, 100].map(|p| sample.percentile(p)), [100.0, 198.0, 200.0]);
        assert_eq!(Sample::new(vec![7.0]).percentile(99), 7.0);
        assert_eq!(Sample::new(Vec::new()).max(), 0.0);
    }

    #[test]
    fn chance_repeats_itself_and_reaches_everything() {
        let draw = || {
            let mut chance = Chance::new();
            (0..200).map(|_| chance.below(5)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        assert!((0..5).all(|n| draw().contains(&n)));
    }
}
