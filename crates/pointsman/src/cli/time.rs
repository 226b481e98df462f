//! Points in time, for scripts and for people.

use std::time::Duration;

use pointsman_core::time::Timestamp;
use pointsman_core::words::span;

/// The present.
#[allow(clippy::disallowed_methods, reason = "the one clock of the commands")]
pub(crate) fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

/// RFC 3339 in UTC. A time that no calendar has is shown as the end of time.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX).to_string()
}

/// How long ago, or in how long.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    if at > now { format!("in {}", rough(at.since(now))) } else { format!("{} ago", rough(now.since(at))) }
}

/// A duration without what is too small to matter beside the rest.
pub(crate) fn rough(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let shown = match seconds {
        0 => duration.as_millis() as u64 / 1000,
        1..600 => seconds,
        600..36_000 => seconds / 60 * 60,
        _ => seconds / 3600 * 3600,
    };
    span(Duration::from_secs(shown))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{relative, rfc3339, rough};
    use pointsman_core::time::Timestamp;

    #[test]
    fn times_are_utc_to_the_millisecond() {
        assert_eq!(rfc3339(Timestamp(0)), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(Timestamp(1_700_000_000_250)), "2023-11-14T22:13:20.25Z");
        assert!(rfc3339(Timestamp(i64::MAX)).starts_with("9999-"));
    }

    #[test]
    fn people_get_round_numbers() {
        let cases = [(0, "0s"), (59, "59s"), (599, "9m 59s"), (3_725, "1h 2m"), (90_061, "25h")];
        for (seconds, text) in cases {
            assert_eq!(rough(Duration::from_secs(seconds)), text);
        }
        assert_eq!(relative(Timestamp(5_000), Timestamp(0)), "in 5s");
        assert_eq!(relative(Timestamp(0), Timestamp(5_000)), "5s ago");
    }
}
