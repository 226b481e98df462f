//! Shares of a whole in the configuration, such as how full a context is.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words;

/// A share between 0 and 1, kept in thousandths so that comparisons are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Share(u16);

impl Share {
    /// The share in thousandths.
    pub fn permille(self) -> u16 {
        self.0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1000.0)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let share = f64::deserialize(deserializer)?;
        if !(0.0..=1.0).contains(&share) {
            let found = serde::de::Unexpected::Float(share);
            return Err(serde::de::Error::invalid_value(found, &words::config::SHARE));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        Ok(Self((share * 1000.0).round() as u16))
    }
}
