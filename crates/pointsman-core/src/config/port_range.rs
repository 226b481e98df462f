//! A range of ports, written as `42000-42999`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words;

/// The first port that needs no privilege.
const UNPRIVILEGED: u16 = 1024;

/// Ports from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

impl PortRange {
    /// The number of ports in it.
    pub fn count(self) -> usize {
        usize::from(self.last - self.first) + 1
    }

    /// The first `count` ports of the range that nobody has; none if there are not so many.
    pub fn choose(self, count: u16, is_taken: impl Fn(u16) -> bool) -> Option<Vec<u16>> {
        let free = (self.first..=self.last).filter(|port| !is_taken(*port));
        let chosen: Vec<u16> = free.take(usize::from(count)).collect();
        (chosen.len() == usize::from(count)).then_some(chosen)
    }
}

impl FromStr for PortRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = |text: &str| text.parse::<u16>().ok().filter(|port| *port >= UNPRIVILEGED);
        let ends = text.split_once('-').and_then(|(first, last)| Some((read(first)?, read(last)?)));
        match ends {
            Some((first, last)) if first <= last => Ok(Self { first, last }),
            Some(_) | None => Err(words::config::PORT_RANGE),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

impl Serialize for PortRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PortRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::PortRange;

    #[test]
    fn ranges_are_read_and_printed() {
        let range: PortRange = "42000-42999".parse().unwrap();
        assert_eq!((range.first, range.last, range.count()), (42_000, 42_999, 1000));
        assert_eq!(range.to_string(), "42000-42999");
        for wrong in ["", "42000", "42999-42000", "80-90", "42000-70000", "a-b", "-5"] {
            assert!(wrong.parse::<PortRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn ports_that_somebody_has_are_left_out() {
        let range: PortRange = "5000-5004".parse().unwrap();
        assert_eq!(range.choose(2, |_| false), Some(vec![5000, 5001]));
        assert_eq!(range.choose(2, |port| port < 5003), Some(vec![5003, 5004]));
        assert_eq!(range.choose(3, |port| port < 5003), None, "not fewer than asked for");
        assert_eq!(range.choose(0, |_| true), Some(vec![]));
    }
}
