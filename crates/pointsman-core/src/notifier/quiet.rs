//! Hours in which only what cannot wait is told.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;
use crate::timetable::Zone;
use crate::words;

const DAY: i64 = 24 * 60;

/// From one time of the day to another, such as `22:00-07:00`; it may go over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QuietHours {
    from: i64,
    until: i64,
}

impl QuietHours {
    /// The end of the quiet hours, if it is quiet now in this time zone.
    pub fn end(self, zone: &impl Zone, now: Timestamp) -> Option<Timestamp> {
        let local = zone.local(now);
        let minute = local.rem_euclid(DAY);
        let quiet = if self.from < self.until {
            (self.from..self.until).contains(&minute)
        } else {
            minute >= self.from || minute < self.until
        };
        let left = (self.until - minute).rem_euclid(DAY);
        quiet.then(|| zone.utc(local + left))
    }
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, until } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, until / 60, until % 60)
    }
}

impl From<QuietHours> for String {
    fn from(hours: QuietHours) -> Self {
        hours.to_string()
    }
}

impl TryFrom<String> for QuietHours {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = || {
            let (from, until) = text.split_once('-')?;
            Some(Self { from: clock(from)?, until: clock(until)? })
        };
        match read() {
            Some(hours) if hours.from != hours.until => Ok(hours),
            Some(_) => Err(words::parse::NO_QUIET_HOURS.to_owned()),
            None => Err(words::parse::not_hours(&text)),
        }
    }
}

/// The minutes of a time of the day, `07:00`.
pub(super) fn clock(text: &str) -> Option<i64> {
    let two = |text: &str, most: i64| {
        let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i64>().ok().filter(|n| digits && *n <= most)
    };
    let (hour, minute) = text.trim().split_once(':')?;
    Some(two(hour, 23)? * 60 + two(minute, 59)?)
}

#[cfg(test)]
mod tests {
    use super::QuietHours;
    use crate::time::Timestamp;
    use crate::timetable::{Utc, Zone};

    /// Two hours ahead of UTC.
    struct East;

    impl Zone for East {
        fn local(&self, at: Timestamp) -> i64 {
            Utc.local(at) + 120
        }

        fn utc(&self, local: i64) -> Timestamp {
            Utc.utc(local - 120)
        }
    }

    fn at(day: i64, hour: i64, minute: i64) -> Timestamp {
        Timestamp((day * 1440 + hour * 60 + minute) * 60_000)
    }

    #[test]
    fn quiet_hours_end_where_the_clock_hangs() {
        let hours = |text: &str| QuietHours::try_from(text.to_owned()).unwrap();
        let night = hours("22:00-07:00");
        let cases = [
            (at(3, 21, 59), None),
            (at(3, 22, 0), Some(at(4, 7, 0))),
            (at(3, 23, 59), Some(at(4, 7, 0))),
            (at(4, 0, 0), Some(at(4, 7, 0))),
            (at(4, 6, 59), Some(at(4, 7, 0))),
            (at(4, 7, 0), None),
        ];
        for (now, end) in cases {
            assert_eq!(night.end(&Utc, now), end, "{now:?}");
        }
        assert_eq!(night.end(&East, at(3, 20, 30)), Some(at(4, 5, 0)), "22:30 there, until 7:00 there");
        assert_eq!(night.end(&East, at(4, 5, 30)), None);
        let lunch = hours("12:00-13:30");
        assert_eq!(lunch.end(&Utc, at(0, 12, 10)), Some(at(0, 13, 30)));
        assert_eq!(lunch.end(&Utc, at(0, 13, 30)), None);
        assert_eq!(lunch.end(&Utc, Timestamp(at(0, 12, 0).0 - 1)), None);
    }

    #[test]
    fn what_is_no_hours_of_the_day_is_refused() {
        for bad in
            ["", "22-7", "22:00", "24:00-07:00", "22:60-07:00", "07:00-07:00", "1:00-2:00", "-1:00-02:00"]
        {
            assert!(QuietHours::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        assert_eq!(QuietHours::try_from("22:00 - 07:05".to_owned()).unwrap().to_string(), "22:00-07:05");
    }
}
