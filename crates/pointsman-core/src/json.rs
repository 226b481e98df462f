//! JSON that agents write, read strictly: a key that is there twice makes it unusable. Two readers could otherwise take two
//! different values for it, and whoever looks at the text sees one of them.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::text::clean_line;
use crate::words;

/// The longest key that a mistake names.
const KEY_CHARS: usize = 60;

/// Reads one value.
pub fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice::<Strict>(bytes).map(|Strict(value)| value)
}

/// Reads one value of a type.
pub fn read_as<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_value(read(text.as_bytes())?)
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Strict)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(words::answer::key_twice(&clean_line(&key, KEY_CHARS))));
            }
            let Strict(value) = entries.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_a_mistake_at_any_depth() {
        for text in [
            r#"{"verdict": "REQUEST_CHANGES", "verdict": "APPROVE"}"#,
            r#"{"a": {"b": 1, "b": 1}}"#,
            r#"[{"a": 1, "a": 2}]"#,
            r#"{"a": 1, "\u0061": 2}"#,
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("twice"), "{text}: {error}");
        }
    }

    #[test]
    fn everything_else_is_read_as_usual() {
        for text in [
            r#"{"a": [1, -2, 3.5, true, null, "x"], "b": {"a": {}}}"#,
            "3",
            "\"x\"",
            "[]",
            "18446744073709551615",
        ] {
            assert_eq!(
                read(text.as_bytes()).unwrap(),
                serde_json::from_str::<Value>(text).unwrap(),
                "{text}"
            );
        }
        for text in ["", "{", "{\"a\": }", "{} {}", "nul"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
