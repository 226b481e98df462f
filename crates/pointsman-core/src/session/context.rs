//! How full a session's context is, and how urgent that is.

use serde::{Deserialize, Serialize};

/// A measured or guessed gauge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gauge {
    /// Used, in thousandths of the window.
    pub used_permille: u16,
    /// Where the number comes from.
    pub source: Source,
}

impl Gauge {
    /// Used, in percent.
    pub fn percent(self) -> f64 {
        f64::from(self.used_permille) / 10.0
    }
}

/// Where a gauge comes from, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent's own status line.
    StatusLine,
    /// The usage figures of its transcript.
    Transcript,
    /// Symptoms only.
    Symptoms,
}

/// How urgent it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Nothing to do.
    #[default]
    None,
    /// Watch.
    Low,
    /// Checkpoint now.
    Medium,
    /// Hand over at the next turn boundary.
    High,
}

/// The marks, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// From here on: low.
    pub low: u16,
    /// From here on: medium.
    pub medium: u16,
    /// From here on: high.
    pub high: u16,
}

impl Marks {
    /// How urgent a gauge is.
    pub fn urgency(&self, gauge: Gauge) -> Urgency {
        match gauge.used_permille {
            used if used >= self.high => Urgency::High,
            used if used >= self.medium => Urgency::Medium,
            used if used >= self.low => Urgency::Low,
            _ => Urgency::None,
        }
    }
}

/// What can be seen from outside when nothing measures the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symptom {
    /// The agent is about to compact its context.
    Compacting,
    /// Its answers take more than three times as long as at first.
    Slow,
    /// It says so on its screen.
    Warned,
}

/// Answers this much slower than the baseline are a symptom.
const SLOW_FACTOR: u64 = 3;
/// So many answers make a baseline.
const BASELINE_ANSWERS: usize = 5;

/// The gauge that symptoms amount to: one is medium, two are high. A compaction alone never
/// restarts anything, it only saves.
pub fn from_symptoms(symptoms: &[Symptom], marks: &Marks) -> Option<Gauge> {
    let mut kinds: Vec<Symptom> = Vec::new();
    for symptom in symptoms {
        if !kinds.contains(symptom) {
            kinds.push(*symptom);
        }
    }
    let used_permille = match kinds.len() {
        0 => return None,
        1 => marks.medium,
        _ => marks.high,
    };
    Some(Gauge { used_permille, source: Source::Symptoms })
}

/// Whether the latest answer is slow against the first ones, all in milliseconds.
pub fn is_slow(answers_millis: &[u64]) -> bool {
    let Some((latest, before)) = answers_millis.split_last() else { return false };
    if before.len() < BASELINE_ANSWERS {
        return false;
    }
    let mut baseline = before[..BASELINE_ANSWERS].to_vec();
    baseline.sort_unstable();
    *latest > baseline[BASELINE_ANSWERS / 2].saturating_mul(SLOW_FACTOR)
}

/// Whether a line on the screen warns of a full context.
pub fn warns(line: &str) -> bool {
    let lower = line.to_lowercase();
    lower.contains("context")
        && ["low", "left", "remaining", "full", "limit", "exceed", "compact"]
            .iter()
            .any(|w| lower.contains(w))
}

#[cfg(test)]
mod tests {
    use super::{Gauge, Marks, Source, Symptom, Urgency, from_symptoms, is_slow, warns};

    const MARKS: Marks = Marks { low: 750, medium: 850, high: 920 };

    #[test]
    fn r4_2_urgency_is_low_medium_high_at_the_marks() {
        for (used, urgency) in [
            (0, Urgency::None),
            (749, Urgency::None),
            (750, Urgency::Low),
            (850, Urgency::Medium),
            (920, Urgency::High),
        ] {
            let gauge = Gauge { used_permille: used, source: Source::StatusLine };
            assert_eq!(MARKS.urgency(gauge), urgency, "{used}");
        }
    }

    #[test]
    fn r4_1_symptoms_stand_in_for_a_measure() {
        assert_eq!(from_symptoms(&[], &MARKS), None);
        let one = from_symptoms(&[Symptom::Compacting, Symptom::Compacting], &MARKS).unwrap();
        assert_eq!(MARKS.urgency(one), Urgency::Medium, "a compaction alone never restarts anything");
        let two = from_symptoms(&[Symptom::Compacting, Symptom::Slow], &MARKS).unwrap();
        assert_eq!(MARKS.urgency(two), Urgency::High);
    }

    #[test]
    fn slow_is_three_times_the_baseline() {
        assert!(!is_slow(&[100, 100, 100, 100, 9_000]), "no baseline yet");
        assert!(!is_slow(&[100, 100, 100, 100, 100, 300]));
        assert!(is_slow(&[100, 100, 100, 100, 100, 301]));
    }

    #[test]
    fn a_warning_on_screen_is_recognised() {
        assert!(warns("Context left until auto-compact: 8%"));
        assert!(warns("context low"));
        assert!(!warns("the context of this function"));
    }
}
