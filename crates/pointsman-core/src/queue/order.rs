//! The order of the merge queue: urgency, then age. Waiting makes urgent, so that nothing starves.

use std::cmp::Reverse;
use std::time::Duration;

use super::EntryId;
use crate::time::Timestamp;

/// An entry that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub id: EntryId,
    /// More goes first; 0 unless said otherwise.
    pub priority: i64,
    pub requested_at: Timestamp,
}

/// The entries, first in line first: by priority, where `ageing` of waiting counts as one step of it; then by the time of
/// the request, then by number. An ageing of zero switches ageing off.
///
/// Ageing is counted to the millisecond, not in whole steps: with steps, two entries would change places each time one of
/// them completes a step, and with them all candidates behind. So two entries keep their order for as long as both
/// wait. A request from the future (the clock went back) counts as made now.
pub fn in_order(entries: &[Waiting], now: Timestamp, ageing: Duration) -> Vec<EntryId> {
    let mut line = entries.to_vec();
    if ageing.is_zero() {
        line.sort_by_key(|entry| (Reverse(entry.priority), entry.requested_at, entry.id));
    } else {
        let step = i128::try_from(ageing.as_millis()).unwrap_or(i128::MAX).max(1);
        line.sort_by_key(|entry| {
            let since = i128::from(entry.requested_at.min(now).0);
            // When an entry of priority 0 must have been requested to be as urgent now.
            let as_if = since.saturating_sub(i128::from(entry.priority).saturating_mul(step));
            (as_if, entry.requested_at, entry.id)
        });
    }
    line.iter().map(|entry| entry.id).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: i64 = 3_600_000;
    const AGEING: Duration = Duration::from_secs(3_600);

    fn waiting(id: i64, priority: i64, requested_at: i64) -> Waiting {
        Waiting { id: EntryId(id), priority, requested_at: Timestamp(requested_at) }
    }

    #[track_caller]
    fn check(entries: &[Waiting], now: i64, ageing: Duration, expected: &[i64]) {
        let order: Vec<i64> = in_order(entries, Timestamp(now), ageing).iter().map(|id| id.0).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn first_come_first_served() {
        check(&[], 0, AGEING, &[]);
        check(&[waiting(1, 0, 30), waiting(2, 0, 10), waiting(3, 0, 20)], 40, AGEING, &[2, 3, 1]);
        check(&[waiting(2, 0, 10), waiting(1, 0, 10)], 40, AGEING, &[1, 2]);
    }

    #[test]
    fn urgent_ones_go_first() {
        check(&[waiting(1, 0, 10), waiting(2, 5, 30), waiting(3, -1, 0)], 40, AGEING, &[2, 1, 3]);
    }

    #[test]
    fn waiting_an_ageing_weighs_as_much_as_one_step_of_priority() {
        check(&[waiting(1, 1, HOUR - 1), waiting(2, 0, 0)], HOUR, AGEING, &[1, 2]);
        check(&[waiting(1, 1, HOUR), waiting(2, 0, 0)], HOUR, AGEING, &[2, 1]);
        check(&[waiting(1, 1, 9 * HOUR), waiting(2, 0, 0)], 9 * HOUR, Duration::ZERO, &[1, 2]);
    }

    #[test]
    fn clocks_that_jump_and_numbers_at_the_edge_are_no_trouble() {
        check(&[waiting(1, 0, 10 * HOUR), waiting(2, 0, 0)], HOUR, AGEING, &[2, 1]);
        check(&[waiting(1, i64::MIN, i64::MAX), waiting(2, i64::MAX, i64::MIN)], 0, Duration::MAX, &[2, 1]);
        check(&[waiting(1, 0, 0), waiting(2, i64::MAX, 0)], i64::MAX, Duration::from_nanos(1), &[2, 1]);
    }

    fn entries() -> impl Strategy<Value = Vec<Waiting>> {
        prop::collection::vec((-3..4_i64, 0..20 * HOUR), 0..12).prop_map(|list| {
            list.into_iter().zip(0..).map(|((priority, at), id)| waiting(id, priority, at)).collect()
        })
    }

    proptest! {
        #[test]
        fn two_that_wait_never_change_places(entries in entries(), a in 0..50 * HOUR, b in 0..50 * HOUR) {
            let from = 20 * HOUR;
            prop_assert_eq!(
                in_order(&entries, Timestamp(from + a), AGEING),
                in_order(&entries, Timestamp(from + b), AGEING)
            );
        }

        #[test]
        fn everybody_is_in_line_once(entries in entries(), now in -HOUR..30 * HOUR) {
            let mut order = in_order(&entries, Timestamp(now), AGEING);
            order.sort();
            prop_assert_eq!(order, entries.iter().map(|entry| entry.id).collect::<Vec<_>>());
        }

        /// One entry is served each minute, and a more urgent one arrives each minute, for ever.
        #[test]
        fn nobody_waits_behind_an_unbounded_stream(urgency in 1..6_i64, backlog in 0..30_i64) {
            let minute = HOUR / 60;
            let mut line: Vec<_> = (1..=backlog).map(|id| waiting(id, urgency, 0)).collect();
            line.push(waiting(0, 0, 0));
            let mut served_after = 0;
            for at in 1.. {
                line.push(waiting(1000 + at, urgency, at * minute));
                let first = in_order(&line, Timestamp(at * minute), AGEING)[0];
                line.retain(|entry| entry.id != first);
                if first == EntryId(0) {
                    served_after = at;
                    break;
                }
                prop_assert!(at <= urgency * 60 + backlog, "still waiting");
            }
            prop_assert!(served_after > 0);
        }
    }
}
