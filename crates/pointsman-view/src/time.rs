//! Points in time as scripts read them: RFC 3339, UTC, always with three digits of a second.

use std::fmt;

use pointsman_core::time::Timestamp;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

const SECOND: i64 = 1_000;
const DAY: i64 = 86_400 * SECOND;
/// 9999-12-30T22:00:00.999Z. Later times, and those before the year 0, are shown as this one.
const LAST: i64 = 253_402_207_200_999;
/// 0000-01-01T00:00:00.000Z.
const FIRST: i64 = -62_167_219_200_000;

/// A point in time that is written as text. Its three digits of a second make texts sort as times do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time(pub Timestamp);

impl Time {
    /// Reads what `Display` writes, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
        if bytes.len() != 24 || marks.iter().any(|(at, mark)| bytes[*at] != *mark) {
            return None;
        }
        let number = |from: usize, to: usize| -> Option<i64> {
            let digits = text.get(from..to)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        let in_range =
            (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 60;
        let days = in_range.then(|| days_from_civil(year, month, day))?;
        let seconds = (hour * 60 + minute) * 60 + second;
        let time = Self(Timestamp(days * DAY + seconds * SECOND + number(20, 23)?));
        // The 31st of a shorter month would come out as another day.
        (time.to_string() == text).then_some(time)
    }
}

impl From<Timestamp> for Time {
    fn from(at: Timestamp) -> Self {
        Self(at)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = if (FIRST..=LAST).contains(&self.0.0) { self.0.0 } else { LAST };
        let (days, rest) = (millis.div_euclid(DAY), millis.rem_euclid(DAY));
        let (year, month, day) = civil_from_days(days);
        let (seconds, millis) = (rest / SECOND, rest % SECOND);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("`{text}` is not a time in UTC")))
    }
}

/// Days from 1970-01-01 to a date of the Gregorian calendar. Years are counted from March, so that the leap day is the
/// last day of a year, and in eras of 400 years, which all have the same number of days.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The date that lies so many days after 1970-01-01: the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use pointsman_core::time::Timestamp;

    use super::{DAY, Time};

    #[test]
    fn times_are_written_in_utc_to_the_millisecond() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_700_000_000_250, "2023-11-14T22:13:20.250Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-30T22:00:00.999Z"),
            (i64::MIN, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(Time(Timestamp(millis)).to_string(), text, "{millis}");
        }
    }

    #[test]
    fn every_day_of_two_centuries_is_read_back() {
        for day in 0..80_000 {
            let at = Time(Timestamp(day * DAY + day));
            assert_eq!(Time::parse(&at.to_string()), Some(at), "{at}");
        }
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "2023-11-14",
            "2023-11-14T22:13:20Z",
            "2023-02-29T00:00:00.000Z",
            "2023-13-01T00:00:00.000Z",
            "2023-11-14T24:00:00.000Z",
            "2023-11-14T22:13:20.250+",
            "2023-11-14T22:13:+0.250Z",
            "２023-11-14T22:13:20.25Z",
        ] {
            assert_eq!(Time::parse(text), None, "{text}");
        }
    }
}
