//! The value of a role's results: which were useful, and which were noise. A role that produces only noise is paused.
//! `results` follows what roles did on the forge and on the main branch until its outcome is known.

mod results;

pub use results::{Following, LoggedResult, Outcome as ResultOver, ResultEnd, reverted_by};

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::ids::Number;
use crate::time::Timestamp;

/// So many results must have been noise before a role is paused: one bad day is none.
const LEAST: u32 = 3;

/// The fate of a role's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Something was done with it.
    Used,
    /// Nothing was: it could not be read, or was refused.
    Noise,
}

/// Something that was done of a result. It is written down before the next is, and not done again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub line: String,
    /// The issue that was filed with it.
    pub filed: Option<Number>,
    /// The issues that were closed with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<Number>,
    /// Whether the forge would not have it, or its issue was gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// The memory of a role's results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoleValue {
    /// Results that something came of.
    pub used: u32,
    /// Results that nothing came of.
    pub noise: u32,
    /// Noise since the last one that was used.
    pub in_a_row: u32,
    pub noise_since: Option<Timestamp>,
    /// Since when no model is asked any more.
    pub paused_at: Option<Timestamp>,
}

impl RoleValue {
    /// Counts a result. True if it was the one too many: the role is paused now.
    pub fn count(&mut self, outcome: Outcome, config: &Config, now: Timestamp) -> bool {
        match outcome {
            Outcome::Used => {
                self.used += 1;
                self.in_a_row = 0;
                self.noise_since = None;
                false
            }
            Outcome::Noise => {
                self.noise += 1;
                self.in_a_row += 1;
                let since = *self.noise_since.get_or_insert(now);
                let long = now.since(since) >= config.schedule.noise_pause.duration();
                let paused = self.paused_at.is_none() && self.in_a_row >= LEAST && long;
                if paused {
                    self.paused_at = Some(now);
                }
                paused
            }
        }
    }

    /// A person wants it to go on.
    pub fn resume(&mut self) {
        self.in_a_row = 0;
        self.noise_since = None;
        self.paused_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, RoleValue};
    use crate::config::Config;
    use crate::time::Timestamp;

    const DAY: i64 = 86_400_000;

    #[test]
    fn a_role_is_paused_when_all_was_noise_for_long() {
        let config = Config::parse("name = \"shop\"", "test").unwrap();
        let play = |results: &[(i64, Outcome)]| {
            let mut value = RoleValue::default();
            let paused: Vec<bool> = results
                .iter()
                .map(|(day, outcome)| value.count(*outcome, &config, Timestamp(day * DAY)))
                .collect();
            (paused.iter().position(|paused| *paused), value)
        };
        use Outcome::{Noise, Used};
        assert_eq!(play(&[(0, Noise), (7, Noise), (14, Noise), (15, Noise)]).0, Some(2), "once");
        assert_eq!(play(&[(0, Noise), (1, Noise), (13, Noise)]).0, None, "not long enough");
        assert_eq!(play(&[(0, Noise), (20, Noise)]).0, None, "not often enough");
        assert_eq!(play(&[(0, Noise), (7, Used), (14, Noise), (21, Noise), (27, Noise)]).0, None);
        let (_, mut value) = play(&[(0, Noise), (7, Noise), (14, Noise)]);
        assert!(value.paused_at.is_some());
        value.resume();
        assert_eq!((value.paused_at, value.noise), (None, 3), "what was is not forgotten");
        assert!(!value.count(Noise, &config, Timestamp(99 * DAY)));
    }
}
