//! The digest: once a day, people are told how things stand.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::timetable::Zone;
use crate::words;

const DAY: i64 = 24 * 60;

/// The time of the day at which the digest is told, such as `07:00`; empty for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DigestTime(Option<i64>);

impl Default for DigestTime {
    fn default() -> Self {
        Self(Some(7 * 60))
    }
}

impl DigestTime {
    /// The digest that is due: its day, counted from 1970 by the clock of this zone, and its time. One that was slept through is
    /// due on the same day, and those of earlier days are not told any more. Nobody wants one about a project that was
    /// added later than its time.
    pub fn due(self, zone: &impl Zone, now: Timestamp, added_at: Timestamp) -> Option<(i64, Timestamp)> {
        let minute = self.0?;
        let local = zone.local(now);
        let day = local.div_euclid(DAY);
        let at = zone.utc(day * DAY + minute);
        (local.rem_euclid(DAY) >= minute && added_at < at).then_some((day, at))
    }
}

impl fmt::Display for DigestTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(minute) => write!(f, "{:02}:{:02}", minute / 60, minute % 60),
            None => Ok(()),
        }
    }
}

impl From<DigestTime> for String {
    fn from(at: DigestTime) -> Self {
        at.to_string()
    }
}

impl TryFrom<String> for DigestTime {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        match super::quiet::clock(&text) {
            Some(minute) => Ok(Self(Some(minute))),
            None => Err(words::parse::not_a_time(&text)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DigestTime;
    use crate::time::Timestamp;
    use crate::timetable::Utc;

    fn at(day: i64, hour: i64, minute: i64) -> Timestamp {
        Timestamp((day * 1440 + hour * 60 + minute) * 60_000)
    }

    #[test]
    fn a_digest_is_due_from_its_time_until_midnight() {
        let read = |text: &str| DigestTime::try_from(text.to_owned());
        let seven = read("07:00").unwrap();
        assert_eq!(seven, DigestTime::default());
        let long_ago = at(0, 0, 0);
        let cases = [
            (at(3, 6, 59), None),
            (at(3, 7, 0), Some((3, at(3, 7, 0)))),
            // The machine slept.
            (at(3, 23, 59), Some((3, at(3, 7, 0)))),
            (at(4, 0, 0), None),
        ];
        for (now, due) in cases {
            assert_eq!(seven.due(&Utc, now, long_ago), due, "{now:?}");
        }
        assert_eq!(seven.due(&Utc, at(3, 9, 0), at(3, 8, 0)), None, "the project is new");
        assert!(seven.due(&Utc, at(4, 9, 0), at(3, 8, 0)).is_some());
        assert_eq!(read("").unwrap().due(&Utc, at(3, 9, 0), long_ago), None, "switched off");
        for wrong in ["7", "7:00", "24:00", "07:60", "noon"] {
            assert!(read(wrong).unwrap_err().contains("07:00"), "{wrong}");
        }
        assert_eq!(read("18:30").unwrap().to_string(), "18:30");
    }
}
