//! Cron expressions of five fields: minute, hour, day of the month, month, day of the week.
//!
//! `*`, numbers, lists, ranges, steps, and names of months and days. As everywhere, a day counts if either the day of the
//! month or that of the week fits, where both are given.

use super::Zone;
use crate::time::Timestamp;
use crate::words;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// No expression that fits at all waits longer than for the next 29th of February but one.
const MAX_DAYS: i64 = 366 * 9;

/// A schedule of times that come again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the field says more than `*`.
    picks_days: bool,
    picks_weekdays: bool,
}

impl Cron {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Self, String> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields.as_slice() else {
            return Err(words::parse::CRON_FIELDS.to_owned());
        };
        let mut week = field(weekdays, "weekday", 0, 7, &WEEKDAYS, 0)?;
        // Sunday is 0 and 7.
        week = (week | (week >> 7)) & 0x7f;
        Ok(Self {
            minutes: field(minutes, "minute", 0, 59, &[], 0)?,
            hours: field(hours, "hour", 0, 23, &[], 0)?,
            days: field(days, "day", 1, 31, &[], 0)?,
            months: field(months, "month", 1, 12, &MONTHS, 1)?,
            weekdays: week,
            picks_days: !days.starts_with('*'),
            picks_weekdays: !weekdays.starts_with('*'),
        })
    }

    /// The first time after this one; none if there never is one.
    pub fn next(&self, after: Timestamp, zone: &dyn Zone) -> Option<Timestamp> {
        let mut local = zone.local(after);
        // Where clocks are set back, a later minute on the wall may be an earlier time.
        for _ in 0..24 * 60 {
            local = self.next_local(local)?;
            let at = zone.utc(local);
            if at > after {
                return Some(at);
            }
        }
        None
    }

    /// The last time that came after `since` and up to `now`.
    pub fn last(&self, since: Timestamp, now: Timestamp, zone: &dyn Zone) -> Option<Timestamp> {
        let mut last = None;
        let mut at = self.next(since, zone);
        while let Some(time) = at.filter(|time| *time <= now) {
            last = Some(time);
            at = self.next(time, zone);
        }
        last
    }

    fn next_local(&self, after: i64) -> Option<i64> {
        let first = after + 1;
        let (today, minute) = (first.div_euclid(24 * 60), first.rem_euclid(24 * 60));
        for day in today..today + MAX_DAYS {
            if !self.fits_day(day) {
                continue;
            }
            let from = if day == today { minute } else { 0 };
            let fits = |minute: &i64| has(self.hours, minute / 60) && has(self.minutes, minute % 60);
            if let Some(minute) = (from..24 * 60).find(fits) {
                return Some(day * 24 * 60 + minute);
            }
        }
        None
    }

    fn fits_day(&self, day: i64) -> bool {
        let (month, of_month) = month_and_day(day);
        let of_week = (day + 4).rem_euclid(7);
        let (in_month, in_week) = (has(self.days, of_month), has(self.weekdays, of_week));
        let fits =
            if self.picks_days && self.picks_weekdays { in_month || in_week } else { in_month && in_week };
        has(self.months, month) && fits
    }
}

fn has(set: u64, number: i64) -> bool {
    set >> number & 1 == 1
}

fn field(text: &str, what: &str, least: u32, most: u32, names: &[&str], first: u32) -> Result<u64, String> {
    let wrong = || words::parse::not_a_cron_field(text, what, least, most);
    let number = |word: &str| -> Result<u32, String> {
        let word = word.to_ascii_lowercase();
        let named = names.iter().position(|name| *name == word).and_then(|place| u32::try_from(place).ok());
        let value = match named {
            Some(place) => place + first,
            None if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()) => {
                word.parse().map_err(|_| wrong())?
            }
            None => return Err(wrong()),
        };
        if (least..=most).contains(&value) { Ok(value) } else { Err(wrong()) }
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, step.parse::<u32>().ok().filter(|step| *step > 0).ok_or_else(wrong)?)
            }
            None => (part, 1),
        };
        let (from, to) = match (range, range.split_once('-')) {
            ("*", _) => (least, most),
            (_, Some((from, to))) => (number(from)?, number(to)?),
            (one, None) if part.contains('/') => (number(one)?, most),
            (one, None) => (number(one)?, number(one)?),
        };
        if from > to {
            return Err(wrong());
        }
        let mut at = from;
        while at <= to {
            set |= 1 << at;
            at = at.saturating_add(step);
        }
    }
    Ok(set)
}

/// The month (1 to 12) and its day of a day since 1970, by the calendar counted from March.
fn month_and_day(day: i64) -> (i64, i64) {
    let shifted = day + 719_468;
    let of_era = shifted.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let since_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * since_march + 2) / 5 + 1;
    (if since_march < 10 { since_march + 3 } else { since_march - 9 }, day)
}
