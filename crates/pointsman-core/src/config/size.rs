//! Amounts of memory and disk in the configuration, such as `512MB`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words;

const MEGABYTE: u64 = 1 << 20;
const GIGABYTE: u64 = 1 << 30;

/// A number of bytes, in whole megabytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size {
    pub bytes: u64,
}

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, unit) = match (text.strip_suffix("GB"), text.strip_suffix("MB")) {
            (Some(digits), _) => (digits, GIGABYTE),
            (None, Some(digits)) => (digits, MEGABYTE),
            (None, None) => return Err(words::config::SIZE),
        };
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(words::config::SIZE);
        }
        let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
        // Sizes become signed numbers of the kernel.
        bytes
            .filter(|bytes| (1..1 << 60).contains(bytes))
            .map(|bytes| Self { bytes })
            .ok_or(words::config::SIZE)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes.is_multiple_of(GIGABYTE) {
            true => write!(f, "{}GB", self.bytes / GIGABYTE),
            false => write!(f, "{}MB", self.bytes / MEGABYTE),
        }
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::Size;

    #[test]
    fn sizes_are_read_and_printed() {
        for (text, bytes) in [("512MB", 512 << 20), ("8GB", 8 << 30), ("1MB", 1 << 20), ("2048MB", 2 << 30)] {
            assert_eq!(text.parse::<Size>().unwrap().bytes, bytes, "{text}");
        }
        assert_eq!("2048MB".parse::<Size>().unwrap().to_string(), "2GB");
        assert_eq!("1500MB".parse::<Size>().unwrap().to_string(), "1500MB");
        for wrong in ["", "8", "GB", "8 GB", "8gb", "-8GB", "1.5GB", "0MB", "99999999999GB", "8TB"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
