//! Points in time, for scripts and for people.

use pointsman_core::time::Timestamp;
pub(crate) use pointsman_core::words::rough;

pub(crate) use crate::daemon::clock::{day, now, rfc3339};

/// The present to the nanosecond, to tell two moments apart.
#[allow(clippy::disallowed_methods, reason = "finer than the one clock")]
pub(crate) fn now_nanos() -> i128 {
    jiff::Timestamp::now().as_nanosecond()
}

/// A point in time as a person's clock shows it, with the offset from UTC. Scripts get [`rfc3339`].
pub(crate) fn local(at: Timestamp) -> String {
    shown_in(at, &jiff::tz::TimeZone::system())
}

fn shown_in(at: Timestamp, zone: &jiff::tz::TimeZone) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z").to_string(),
        // Outside of what a calendar can show.
        Err(_) => rfc3339(at),
    }
}

/// The distance of a time from now, for people: `3 min ago`, `in 2 h`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", rough(at.since(now))) } else { format!("{} ago", rough(now.since(at))) }
}

#[cfg(test)]
mod tests {
    use super::{relative, rfc3339, shown_in};
    use pointsman_core::time::Timestamp;

    #[test]
    fn times_are_utc_to_the_millisecond() {
        assert_eq!(super::day(Timestamp(1_700_000_000_250)), "2023-11-14");
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(Timestamp(1_700_000_000_250)), "2023-11-14T22:13:20.250Z");
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999-"));
    }

    #[test]
    fn people_read_their_own_time_with_its_offset() {
        let zone = jiff::tz::TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(shown_in(Timestamp(1_700_000_000_250), &zone), "2023-11-15 00:13:20 +02:00");
        assert!(shown_in(Timestamp(i64::MAX), &zone).starts_with("9999-"));
    }

    #[test]
    fn a_time_is_told_from_here() {
        assert_eq!(relative(Timestamp(5_000), Timestamp(0)), "in 5s");
        assert_eq!(relative(Timestamp(0), Timestamp(5_000)), "5s ago");
    }
}
