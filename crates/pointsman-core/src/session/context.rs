//! The fill of a session's context, and how urgent it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

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

/// The source of a gauge, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The agent's own status line.
    StatusLine,
    /// The usage figures of its transcript.
    Transcript,
    Symptoms,
}

/// A better source that has been silent for so long no longer outranks a worse one: its line may have broken.
const HEARD_FOR: Duration = Duration::from_secs(10 * 60);

/// Whether a new gauge takes the place of the one that is known since a moment: the best source counts as long as it
/// speaks.
pub fn replaces(new: Gauge, known: Option<(Gauge, Timestamp)>, now: Timestamp) -> bool {
    known.is_none_or(|(known, at)| new.source <= known.source || at.after(HEARD_FOR) <= now)
}

/// Whether the known gauge need not be written down again: the same, and not so old that it would soon fall silent.
pub fn repeats(new: Gauge, known: Option<(Gauge, Timestamp)>, now: Timestamp) -> bool {
    known.is_some_and(|(known, at)| new == known && now < at.after(HEARD_FOR / 2))
}

/// A model whose name ends so has a window of this size, says Claude Code.
const LARGE_WINDOW: (&str, u64) = ("[1m]", 1_000_000);

/// The gauge behind the tokens that a transcript tells of. `configured` is the window of models whose name does not say it:
/// where nobody says it, none is assumed. More tokens than that show that it is not so, and nothing else.
pub fn from_tokens(tokens: u64, model: Option<&str>, configured: Option<u64>) -> Option<Gauge> {
    let large = model.is_some_and(|model| model.ends_with(LARGE_WINDOW.0));
    let window = if large { LARGE_WINDOW.1 } else { configured? };
    let used = tokens.saturating_mul(1000).checked_div(window)?;
    let used_permille = u16::try_from(used).ok().filter(|used| *used <= 1000)?;
    Some(Gauge { used_permille, source: Source::Transcript })
}

/// The urgency of a hand-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    #[default]
    None,
    Low,
    Medium,
    /// Hand over at the next turn boundary.
    High,
}

/// The marks, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    pub low: u16,
    pub medium: u16,
    pub high: u16,
}

impl Marks {
    /// The urgency that a gauge calls for.
    pub fn urgency(&self, gauge: Gauge) -> Urgency {
        match gauge.used_permille {
            used if used >= self.high => Urgency::High,
            used if used >= self.medium => Urgency::Medium,
            used if used >= self.low => Urgency::Low,
            _ => Urgency::None,
        }
    }
}

/// A sign of a full context that can be seen from outside when nothing measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Symptom {
    /// The agent is about to compact its context.
    Compacting,
    /// Its answers take more than three times as long as at first.
    Slow,
    /// It says so on its screen.
    Warned,
}

/// The gauge that symptoms amount to, each of them named once: one is medium, two are high. A compaction alone never
/// restarts anything, it only saves.
pub fn from_symptoms(symptoms: &[Symptom], marks: &Marks) -> Option<Gauge> {
    let used_permille = match symptoms.len() {
        0 => return None,
        1 => marks.medium,
        _ => marks.high,
    };
    Some(Gauge { used_permille, source: Source::Symptoms })
}

/// Answers this much slower than the baseline are a symptom.
const SLOW_FACTOR: u64 = 3;
/// So many answers make a baseline: the first ones.
const BASELINE_ANSWERS: usize = 5;
/// So many answers are compared with it: the latest ones. A single one may be long because its question was.
const LATEST_ANSWERS: usize = 3;
/// A quicker baseline than this says more about the clock than about the agent.
const BASELINE_LEAST: u64 = 1_000;

/// The time a session takes to answer: from a prompt or the result of a tool to what the agent does next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseTimes {
    /// What lies closer together than this cannot be told apart.
    resolution: Duration,
    asked: Option<Timestamp>,
    /// The first answers, then the latest ones, in milliseconds.
    first: Vec<u64>,
    latest: Vec<u64>,
}

impl ResponseTimes {
    /// The pace of an agent that is looked at this often, instead of telling us itself.
    pub fn looked_at_every(resolution: Duration) -> Self {
        Self { resolution, ..Self::default() }
    }

    /// The agent was given something to answer.
    pub fn asked(&mut self, at: Timestamp) {
        self.asked = Some(at);
    }

    /// It did something; says whether its answers are slow by now. What it does without being asked is no answer.
    pub fn answered(&mut self, at: Timestamp) -> bool {
        let Some(asked) = self.asked.take() else { return false };
        let millis = u64::try_from(at.since(asked).as_millis()).unwrap_or(u64::MAX);
        if self.first.len() < BASELINE_ANSWERS {
            self.first.push(millis);
            return false;
        }
        if self.latest.len() == LATEST_ANSWERS {
            self.latest.remove(0);
        }
        self.latest.push(millis);
        self.is_slow()
    }

    /// A smaller context answers quickly again: only what comes now counts.
    pub fn compacted(&mut self) {
        self.asked = None;
        self.latest.clear();
    }

    fn is_slow(&self) -> bool {
        let least = u64::try_from(self.resolution.as_millis()).unwrap_or(u64::MAX).max(BASELINE_LEAST);
        let baseline = median(&self.first).max(least);
        self.latest.len() == LATEST_ANSWERS && median(&self.latest) > baseline.saturating_mul(SLOW_FACTOR)
    }
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

/// Whether a line on the screen of some program warns of a full context.
pub fn warns(line: &str) -> bool {
    let lower = line.to_lowercase();
    lower.contains("context")
        && ["low", "left", "remaining", "full", "limit", "exceed", "compact", "% context used"]
            .iter()
            .any(|w| lower.contains(w))
}

/// Claude Code's own warnings of a full context.
const CLAUDE_PHRASES: [&str; 3] = ["% context used", "Context left until auto-compact", "Context low ("];

/// Whether a line on Claude Code's screen is its own warning of a full context. Its screen is full of other words, so only
/// its very phrases count.
pub fn claude_warns(line: &str) -> bool {
    CLAUDE_PHRASES.iter().any(|phrase| line.contains(phrase))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{
        Gauge, HEARD_FOR, Marks, ResponseTimes, Source, Symptom, Urgency, claude_warns, from_symptoms,
        from_tokens, repeats, replaces, warns,
    };
    use crate::time::Timestamp;

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
        let one = from_symptoms(&[Symptom::Compacting], &MARKS).unwrap();
        assert_eq!(MARKS.urgency(one), Urgency::Medium, "a compaction alone never restarts anything");
        let two = from_symptoms(&[Symptom::Compacting, Symptom::Slow], &MARKS).unwrap();
        assert_eq!(MARKS.urgency(two), Urgency::High);
    }

    #[test]
    fn the_best_source_counts_as_long_as_it_speaks() {
        let gauge = |source| Gauge { used_permille: 500, source };
        let order = [Source::StatusLine, Source::Transcript, Source::Symptoms];
        let at = Timestamp(1_000_000);
        for (rank, known) in order.into_iter().enumerate() {
            for (new_rank, new) in order.into_iter().enumerate() {
                let replaced = |now| replaces(gauge(new), Some((gauge(known), at)), now);
                let soon = at.after(HEARD_FOR - Duration::from_millis(1));
                assert_eq!(replaced(soon), new_rank <= rank, "{new:?} after {known:?}");
                assert!(replaced(at.after(HEARD_FOR)), "{new:?} after {known:?} fell silent");
            }
            assert!(replaces(gauge(known), None, at), "{known:?}");
        }
        let known = Some((gauge(Source::StatusLine), at));
        assert!(repeats(gauge(Source::StatusLine), known, at));
        assert!(!repeats(gauge(Source::StatusLine), known, at.after(HEARD_FOR / 2)), "it still speaks");
        assert!(!repeats(gauge(Source::Symptoms), known, at));
    }

    #[test]
    fn tokens_fill_the_window_that_the_model_has() {
        for (tokens, model, window, used) in [
            (0, None, Some(200_000), Some(0)),
            (186_000, Some("claude-sonnet-4-5"), Some(200_000), Some(930)),
            (186_000, Some("claude-sonnet-4-5"), None, None),
            (186_000, Some("claude-opus-4-8[1m]"), Some(200_000), Some(186)),
            (186_000, Some("claude-opus-4-8[1m]"), None, Some(186)),
            (400_000, None, Some(500_000), Some(800)),
            (200_001, None, Some(200_000), Some(1000)),
            (201_000, None, Some(200_000), None),
            (u64::MAX, Some("x[1m]"), None, None),
            (1, None, Some(0), None),
        ] {
            let gauge = from_tokens(tokens, model, window);
            assert_eq!(gauge.map(|g| g.used_permille), used, "{tokens} of {model:?}");
            assert!(gauge.is_none_or(|g| g.source == Source::Transcript));
        }
    }

    /// Whether the last of these answers is found slow.
    fn slow(pace: &mut ResponseTimes, answers: &[u64]) -> bool {
        let mut now = Timestamp(1_000_000_000);
        let mut found = false;
        for millis in answers {
            pace.asked(now);
            now = now.after(Duration::from_millis(*millis));
            found = pace.answered(now);
            now = now.after(Duration::from_secs(60));
        }
        found
    }

    #[test]
    fn r4_1_slow_is_more_than_three_times_the_baseline() {
        let usual = [2_000; 5];
        for (latest, expected) in [
            (vec![], false),
            (vec![6_001, 6_001], false),
            (vec![6_000, 6_000, 6_000], false),
            (vec![6_001, 6_001, 6_001], true),
            (vec![90_000, 2_000, 2_000], false),
            (vec![90_000, 2_000, 90_000], true),
            (vec![90_000, 90_000, 90_000, 2_000, 2_000], false),
        ] {
            let answers = [&usual[..], &latest].concat();
            assert_eq!(slow(&mut ResponseTimes::default(), &answers), expected, "{latest:?}");
        }
        let quick = [[10; 5].as_slice(), &[2_900; 3]].concat();
        assert!(!slow(&mut ResponseTimes::default(), &quick), "a baseline of milliseconds is none");
        let mut rarely = ResponseTimes::looked_at_every(Duration::from_secs(5));
        assert!(!slow(&mut rarely.clone(), &[[0; 5].as_slice(), &[15_000; 3]].concat()));
        assert!(slow(&mut rarely, &[[0; 5].as_slice(), &[20_000; 3]].concat()));
    }

    #[test]
    fn only_what_was_asked_is_answered_and_a_compaction_starts_anew() {
        let mut pace = ResponseTimes::default();
        assert!(!pace.answered(Timestamp(9_000_000)), "nobody asked");
        assert!(slow(&mut pace, &[2_000, 2_000, 2_000, 2_000, 2_000, 9_000, 9_000, 9_000]));
        pace.compacted();
        assert!(!slow(&mut pace, &[9_000, 2_000, 2_000]), "the slow ones were those of the large context");
        pace.asked(Timestamp(5));
        assert!(!pace.answered(Timestamp(1)), "a clock that goes back is no slowness");
    }

    #[test]
    fn r4_1_a_warning_on_screen_is_recognised() {
        for line in ["Context left until auto-compact: 8%", "context low", "  97% context used"] {
            assert!(warns(line), "{line}");
        }
        assert!(!warns("the context of this function"));
        // From a recorded pane.
        assert!(claude_warns("                                      97% context used"));
        assert!(!claude_warns("  ctx:88%"));
        assert!(!claude_warns("it ran out of context, so the limit is low"), "an agent's own words");
    }
}
