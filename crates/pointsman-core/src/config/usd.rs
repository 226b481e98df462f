//! Amounts of money in the configuration.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Budget;
use crate::words;

/// US dollars, kept in whole cents so that sums and comparisons are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Usd {
    /// The amount in cents.
    pub cents: u64,
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.cents / 100, self.cents % 100)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[allow(clippy::cast_precision_loss)] // at most 1e8 cents, see the visitor
        serializer.serialize_f64(self.cents as f64 / 100.0)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Amount)
    }
}

/// A role's budget: a table, or an amount, which is for one session.
pub(super) fn budget<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Budget>, D::Error> {
    struct AmountOrTable;
    impl<'de> Visitor<'de> for AmountOrTable {
        type Value = Budget;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Amount.expecting(f)?;
            f.write_str(words::config::OR_BUDGET_TABLE)
        }
        fn visit_i64<E: Error>(self, dollars: i64) -> Result<Budget, E> {
            Amount.visit_i64(dollars).map(per_session)
        }
        fn visit_f64<E: Error>(self, dollars: f64) -> Result<Budget, E> {
            Amount.visit_f64(dollars).map(per_session)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Budget, A::Error> {
            Budget::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(AmountOrTable).map(Some)
}

fn per_session(usd: Usd) -> Budget {
    Budget { usd_per_session: Some(usd), ..Budget::default() }
}

struct Amount;

impl Visitor<'_> for Amount {
    type Value = Usd;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(words::config::DOLLARS)
    }
    fn visit_i64<E: Error>(self, dollars: i64) -> Result<Usd, E> {
        match u64::try_from(dollars) {
            Ok(dollars) if dollars <= 1_000_000 => Ok(Usd { cents: dollars * 100 }),
            _ => Err(E::invalid_value(serde::de::Unexpected::Signed(dollars), &self)),
        }
    }
    fn visit_f64<E: Error>(self, dollars: f64) -> Result<Usd, E> {
        if !(0.0..=1e6).contains(&dollars) {
            return Err(E::invalid_value(serde::de::Unexpected::Float(dollars), &self));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked above
        Ok(Usd { cents: (dollars * 100.0).round() as u64 })
    }
}
