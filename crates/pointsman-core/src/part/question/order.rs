//! The order of the inbox.

use std::cmp::Reverse;

use super::{Question, Urgency};

/// Up to so many changed lines are read in a minute.
const SMALL_LINES: u64 = 50;
/// Up to so many are read in one sitting.
const MEDIUM_LINES: u64 = 400;

/// An open question, and what its place in the inbox depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    pub asked: Question,
    /// How many other tasks wait for it.
    pub held_up: usize,
    /// How many changed lines a person has to read; none if there is no change, or nobody knows its size.
    pub lines: Option<u64>,
}

/// The size of what a person has to read. Sizes are compared by class, so that of two similar ones the older goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Size {
    Small,
    Medium,
    Large,
}

impl Size {
    fn of(lines: Option<u64>) -> Self {
        match lines {
            None | Some(0..=SMALL_LINES) => Self::Small,
            Some(..=MEDIUM_LINES) => Self::Medium,
            Some(_) => Self::Large,
        }
    }
}

/// Puts questions into the order in which a person should see them: what endangers first, then what holds others up, the most
/// first, then what costs while it waits, then the rest; small before large, and old before new.
pub fn order(questions: &mut [Ranked]) {
    questions.sort_by_key(|Ranked { asked, held_up, lines }| {
        let urgency = asked.kind.traits().urgency;
        let urgency = if *held_up > 0 { urgency.min(Urgency::HoldsUp) } else { urgency };
        (urgency, Reverse(*held_up), Size::of(*lines), asked.asked_at, asked.id)
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, hours};
    use super::super::{Kind, Question, QuestionId};
    use super::{Ranked, order};

    /// Each row: the rule, and the kinds with the hour of asking, the tasks held up and the lines, in the order wanted.
    #[test]
    fn the_inbox_is_ordered_by_danger_then_by_who_waits_then_by_cost_size_and_age() {
        type Row = (Kind, u32, usize, Option<u64>);
        let table: &[(&str, &[Row])] = &[
            (
                "what endangers comes first, however new and small the rest",
                &[
                    (Kind::Alarm, 7, 0, None),
                    (Kind::Secret, 8, 0, None),
                    (Kind::ServiceDown, 9, 0, None),
                    (Kind::Review, 0, 9, Some(1)),
                    (Kind::Question, 0, 0, None),
                ],
            ),
            (
                "then what holds others up, by how many",
                &[
                    (Kind::Question, 9, 3, None),
                    (Kind::Review, 8, 2, Some(4_000)),
                    (Kind::Upgrade, 9, 1, None),
                    (Kind::QueuePaused, 0, 0, None),
                    (Kind::HostAccess, 0, 0, None),
                ],
            ),
            (
                "then what costs while it waits, then the rest",
                &[(Kind::Question, 9, 0, None), (Kind::Refused, 0, 0, None), (Kind::Upgrade, 1, 0, None)],
            ),
            (
                "small before large",
                &[
                    (Kind::Review, 9, 1, Some(50)),
                    (Kind::Review, 8, 1, Some(51)),
                    (Kind::Review, 7, 1, Some(401)),
                ],
            ),
            (
                "of two similar sizes, old before new",
                &[
                    (Kind::Review, 1, 0, Some(40)),
                    (Kind::Review, 2, 0, Some(3)),
                    (Kind::Review, 3, 0, Some(390)),
                    (Kind::Review, 4, 0, Some(60)),
                ],
            ),
            (
                "a danger that holds others up goes before one that does not",
                &[(Kind::Disk, 9, 1, None), (Kind::Alarm, 0, 0, None)],
            ),
        ];
        for (rule, rows) in table {
            let ranked = |(number, (kind, hour, held_up, lines)): (u64, &Row)| Ranked {
                asked: Question { id: Some(QuestionId(number)), asked_at: hours(*hour), ..asked(*kind) },
                held_up: *held_up,
                lines: *lines,
            };
            let wanted: Vec<Ranked> = (0..).zip(rows.iter()).map(ranked).collect();
            for turn in 0..wanted.len() {
                let mut questions = wanted.clone();
                questions.rotate_left(turn);
                questions.reverse();
                order(&mut questions);
                assert_eq!(questions, wanted, "{rule}");
            }
        }
    }
}
