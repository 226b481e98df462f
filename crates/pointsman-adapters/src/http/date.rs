//! Times of servers.

use std::str::FromStr;
use std::time::Duration;

use pointsman_core::time::Timestamp;

/// An RFC 3339 time.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    jiff::Timestamp::from_str(text).ok().map(|time| Timestamp(time.as_millisecond()))
}

/// The time in a `Date` header.
pub(super) fn http_date(text: &str) -> Option<Timestamp> {
    let time = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Timestamp(time.as_millisecond()))
}

/// How long a `Retry-After` asks to wait. A date is read by the server's own clock, which may be wrong.
pub(super) fn retry_after(text: &str, server_now: Option<Timestamp>) -> Option<Duration> {
    match text.trim().parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(http_date(text)?.since(server_now?)),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{http_date, retry_after, timestamp};

    #[test]
    fn dates_of_servers_are_read() {
        assert_eq!(http_date("Sun, 06 Nov 1994 08:49:37 GMT"), timestamp("1994-11-06T08:49:37Z"));
        assert_eq!(timestamp("2026-11-15T21:00:18+02:00"), timestamp("2026-11-15T19:00:18Z"));
        assert_eq!(http_date("soon"), None);
    }

    #[test]
    fn a_pause_is_in_seconds_or_until_a_date_of_the_same_clock() {
        let now = http_date("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(retry_after("120", None), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", now), Some(Duration::from_secs(60)));
        assert_eq!(retry_after("Sun, 06 Nov 1994 08:50:37 GMT", None), None);
        assert_eq!(retry_after("soon", now), None);
    }
}
