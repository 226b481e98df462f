//! Notices that cannot be sent: the notifier is tried again, later and later, and the line behind it has an end.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::text::clean_line;
use crate::time::Timestamp;

/// Notices that wait for one notifier at most. Of more, the oldest that nobody has to act on go first.
pub const BACKLOG: usize = 200;
/// A notice that could not be told for so long is none any more.
pub const KEPT: Duration = Duration::from_secs(3 * 24 * 3600);

/// The first pause after a failure; doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
/// The longest: an outage that is over should be noticed.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Longest reason that is kept.
const REASON_CHARS: usize = 400;

/// A notifier that fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub error: String,
    pub since: Timestamp,
    /// How often in a row.
    pub failed: u32,
    /// When it is tried again.
    pub next: Timestamp,
}

impl Health {
    /// It failed, once more. `asked` is the pause that the other side asks for, which is never shortened.
    pub fn failed(before: Option<&Self>, error: &str, asked: Option<Duration>, now: Timestamp) -> Self {
        let failed = before.map_or(1, |health| health.failed.saturating_add(1));
        let doubled = FIRST_PAUSE.saturating_mul(1 << (failed - 1).min(16)).min(LONGEST_PAUSE);
        Self {
            error: clean_line(error, REASON_CHARS),
            since: before.map_or(now, |health| health.since),
            failed,
            next: now.after(asked.map_or(doubled, |asked| asked.max(doubled))),
        }
    }

    /// Whether it rests. One that seems to rest for longer than it ever does rested by a clock that went back.
    pub fn rests(&self, now: Timestamp) -> bool {
        self.next > now && self.since <= now
    }
}

/// The places in a line, oldest first and each urgent or not, that have to go because it is too long.
pub fn overflow(line: &[bool]) -> Vec<usize> {
    let too_many = line.len().saturating_sub(BACKLOG);
    let mut places: Vec<usize> = (0..line.len()).collect();
    places.sort_by_key(|place| (line[*place], *place));
    places.truncate(too_many);
    places.sort_unstable();
    places
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BACKLOG, Health, overflow};
    use crate::time::Timestamp;

    #[test]
    fn a_failing_notifier_is_tried_later_and_later() {
        let mut now = Timestamp(1_000_000);
        let mut health = Health::failed(None, "down\u{1b}[31m", None, now);
        assert_eq!((health.failed, health.error.as_str(), health.next), (1, "down", Timestamp(1_002_000)));
        assert!(health.rests(now) && !health.rests(health.next));
        for pause in [4, 8, 16, 32, 64, 128, 256, 512, 600, 600] {
            now = health.next;
            health = Health::failed(Some(&health), "down", None, now);
            assert_eq!(health.next, now.after(Duration::from_secs(pause)));
        }
        assert_eq!(health.since, Timestamp(1_000_000));
        let asked = Health::failed(None, "slow down", Some(Duration::from_secs(90)), now);
        assert_eq!(asked.next, now.after(Duration::from_secs(90)));
        assert!(!asked.rests(Timestamp(0)), "the clock went back");
    }

    #[test]
    fn of_a_line_that_is_too_long_the_oldest_that_can_wait_go_first() {
        assert_eq!(overflow(&[false; BACKLOG]), Vec::<usize>::new());
        let mut line = [false; BACKLOG + 2];
        line[0] = true;
        assert_eq!(overflow(&line), [1, 2]);
        assert_eq!(overflow(&[true; BACKLOG + 1]), [0]);
    }
}
