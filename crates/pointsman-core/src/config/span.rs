//! Durations as people write them: `250ms`, `30s`, `3h`, `1h30m`, `7d`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words;

/// A length of time with a resolution of a millisecond.
///
/// `Display` prints the short form that parses back to the same value: `90s` is `1m30s`. Days are used
/// from a week on, so that the seeds' `24h` and `48h` stay as they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// A hundred years: far beyond any sensible wait, and safe to add to any clock.
    pub const MAX: Self = Self(Duration::from_secs(100 * 365 * 24 * 3600));

    /// A span of so many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// The span as the standard library's type.
    pub const fn duration(self) -> Duration {
        self.0
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        span.0
    }
}

/// Units from long to short, the order in which they may be combined.
const UNITS: [(&str, u64); 5] =
    [("d", 24 * 3600 * 1000), ("h", 3600 * 1000), ("m", 60 * 1000), ("s", 1000), ("ms", 1)];

/// From here on days are printed.
const DAYS_FROM_MILLIS: u64 = 7 * 24 * 3600 * 1000;

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        let first = usize::from(rest < DAYS_FROM_MILLIS);
        for (unit, millis) in &UNITS[first..] {
            if rest >= *millis {
                write!(f, "{}{unit}", rest / millis)?;
                rest %= millis;
            }
        }
        Ok(())
    }
}

/// A text that is not a duration, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration: {why}")]
pub struct ParseSpanError {
    text: String,
    why: &'static str,
}

impl FromStr for Span {
    type Err = ParseSpanError;

    fn from_str(text: &str) -> Result<Self, ParseSpanError> {
        parse_millis(text)
            .map(Self::from_millis)
            .map_err(|why| ParseSpanError { text: crate::text::clean_line(text, 40), why })
    }
}

fn parse_millis(text: &str) -> Result<u64, &'static str> {
    use words::config::{
        DURATION_NEGATIVE as NEGATIVE, DURATION_SHAPE as SHAPE, DURATION_TOO_LONG as TOO_LONG,
        DURATION_UNITS_OUT_OF_ORDER as OUT_OF_ORDER,
    };
    if text.starts_with('-') {
        return Err(NEGATIVE);
    }
    let (mut total, mut rest, mut units) = (0u64, text, &UNITS[..]);
    if rest.is_empty() {
        return Err(SHAPE);
    }
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let letters = rest[digits..].bytes().take_while(u8::is_ascii_lowercase).count();
        if digits == 0 || letters == 0 {
            return Err(SHAPE);
        }
        let unit = &rest[digits..digits + letters];
        if !UNITS.iter().any(|(name, _)| *name == unit) {
            return Err(SHAPE);
        }
        let at = units.iter().position(|(name, _)| *name == unit).ok_or(OUT_OF_ORDER)?;
        let amount = rest[..digits].parse::<u64>().map_err(|_| TOO_LONG)?;
        total = amount.checked_mul(units[at].1).and_then(|m| total.checked_add(m)).ok_or(TOO_LONG)?;
        units = &units[at + 1..];
        rest = &rest[digits + letters..];
    }
    if Duration::from_millis(total) > Span::MAX.0 { Err(TOO_LONG) } else { Ok(total) }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Span;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(words::config::DURATION)
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Span;

    #[test]
    fn durations_are_read_and_printed_in_short_form() {
        let cases = [
            ("250ms", 250, "250ms"),
            ("1ms", 1, "1ms"),
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "1m30s"),
            ("5m", 300_000, "5m"),
            ("3h", 10_800_000, "3h"),
            ("24h", 86_400_000, "24h"),
            ("48h", 172_800_000, "48h"),
            ("1h30m", 5_400_000, "1h30m"),
            ("7d", 604_800_000, "7d"),
            ("168h", 604_800_000, "7d"),
            ("1d", 86_400_000, "24h"),
            ("8d1h2m3s4ms", 694_923_004, "8d1h2m3s4ms"),
            ("1500ms", 1_500, "1s500ms"),
            ("0s", 0, "0s"),
            ("0ms", 0, "0s"),
            ("036500d", 3_153_600_000_000, "36500d"),
        ];
        for (text, millis, short) in cases {
            let span: Span = text.parse().unwrap();
            assert_eq!(span, Span::from_millis(millis), "{text}");
            assert_eq!(span.to_string(), short, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused_with_a_reason() {
        let cases = [
            ("", "write a number and a unit"),
            ("30", "write a number and a unit"),
            ("0", "write a number and a unit"),
            ("s", "write a number and a unit"),
            ("1.5s", "write a number and a unit"),
            ("1 h", "write a number and a unit"),
            (" 1h", "write a number and a unit"),
            ("3 hours", "write a number and a unit"),
            ("1w", "write a number and a unit"),
            ("1H", "write a number and a unit"),
            ("١s", "write a number and a unit"),
            ("-5s", "negative"),
            ("1m1h", "each unit may appear only once"),
            ("1s1s", "each unit may appear only once"),
            ("36501d", "hundred years"),
            ("99999999999999999999s", "hundred years"),
            ("18446744073709551615d", "hundred years"),
            ("18446744073709551615ms1ms", "each unit may appear only once"),
        ];
        for (text, why) in cases {
            let error = text.parse::<Span>().unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn the_short_form_reads_back(millis in 0u64..=3_153_600_000_000) {
            let span = Span::from_millis(millis);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[0-9dhms. -]{0,30}|.{0,20}") {
            if let Ok(span) = text.parse::<Span>() {
                prop_assert!(span <= Span::MAX);
            }
        }
    }
}
