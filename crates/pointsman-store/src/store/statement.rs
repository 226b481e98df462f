//! SQL text with its values: what a commit is made of.
//!
//! A commit is a list of these and nothing else, so that one database runs them in a loop and another can be sent all of
//! them in one trip. A statement therefore never needs an answer of an earlier one, and never a number that the database
//! would hand out.

use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::types::{ToSql, ToSqlOutput, Value as SqlValue};
use serde::Serialize;

use crate::column::{Json, Whole, Word};
use crate::{Error, Result};

/// One statement of a commit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Statement {
    /// What it does, for an error ("append an event").
    pub(super) operation: &'static str,
    pub(super) sql: &'static str,
    pub(super) values: Vec<Value>,
    /// What the caller did wrong if a constraint refuses it.
    pub(super) refusal: Option<&'static str>,
}

impl Statement {
    pub(super) fn new(operation: &'static str, sql: &'static str, values: Vec<Value>) -> Self {
        Self { operation, sql, values, refusal: None }
    }

    /// The same, for a statement that a constraint refuses if the caller contradicts what is stored. The constraint ends
    /// the whole commit, in a pipeline too; a number of changed rows that somebody looks at afterwards would not.
    pub(super) fn or_refused(self, refusal: &'static str) -> Self {
        Self { refusal: Some(refusal), ..self }
    }
}

/// A value of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Integer(i64),
    Text(String),
    Truth(bool),
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(SqlValue::Null),
            Self::Integer(number) => ToSqlOutput::Owned(SqlValue::Integer(*number)),
            Self::Text(text) => ToSqlOutput::from(text.as_str()),
            Self::Truth(truth) => ToSqlOutput::from(*truth),
        })
    }
}

/// What can become a value.
pub(super) trait IntoValue {
    fn into_value(self) -> Result<Value>;
}

impl IntoValue for i64 {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Integer(self))
    }
}

impl IntoValue for u32 {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Integer(self.into()))
    }
}

impl IntoValue for bool {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Truth(self))
    }
}

impl IntoValue for &str {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Text(self.to_owned()))
    }
}

impl IntoValue for &String {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Text(self.clone()))
    }
}

impl IntoValue for String {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Text(self))
    }
}

impl IntoValue for Timestamp {
    fn into_value(self) -> Result<Value> {
        Ok(Value::Integer(self.0))
    }
}

impl<T: IntoValue> IntoValue for Option<T> {
    fn into_value(self) -> Result<Value> {
        self.map_or(Ok(Value::Null), T::into_value)
    }
}

impl IntoValue for Whole {
    fn into_value(self) -> Result<Value> {
        let number = i64::try_from(self.0);
        number.map(Value::Integer).map_err(|_| Error::Invalid { what: words::store::NUMBER_TOO_LARGE })
    }
}

impl<T: Serialize> IntoValue for Json<T> {
    fn into_value(self) -> Result<Value> {
        let text = serde_json::to_string(&self.0);
        text.map(Value::Text).map_err(|_| Error::Invalid { what: words::store::UNWRITABLE_VALUE })
    }
}

impl<T: Serialize> IntoValue for Word<T> {
    fn into_value(self) -> Result<Value> {
        match serde_json::to_value(&self.0) {
            Ok(serde_json::Value::String(text)) => Ok(Value::Text(text)),
            Ok(_) | Err(_) => Err(Error::Invalid { what: words::store::UNWRITABLE_WORD }),
        }
    }
}

/// The values of a statement, in the order of its parameters.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        vec![$($crate::store::statement::IntoValue::into_value($value)?),*]
    };
}
pub(super) use values;
