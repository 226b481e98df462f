//! The core's values as columns.

use pointsman_core::time::Timestamp;
use pointsman_core::words;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, RowIndex};
use serde::Serialize;
use serde::de::value::StrDeserializer;
use serde::de::{DeserializeOwned, IntoDeserializer};

/// A value kept as JSON text.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> ToSql for Json<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(&self.0).map_err(unwritable)?;
        Ok(ToSqlOutput::Owned(Value::Text(text)))
    }
}

impl<T: DeserializeOwned> FromSql for Json<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        serde_json::from_str(value.as_str()?).map(Self).map_err(FromSqlError::other)
    }
}

/// A value whose JSON form is a string (an enum's name, a path, a project's name), kept bare.
pub(crate) struct Word<T>(pub(crate) T);

impl<T: Serialize> ToSql for Word<T> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match serde_json::to_value(&self.0).map_err(unwritable)? {
            serde_json::Value::String(text) => Ok(ToSqlOutput::Owned(Value::Text(text))),
            other => Err(unwritable(words::store::not_a_word(&other))),
        }
    }
}

impl<T: DeserializeOwned> FromSql for Word<T> {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let text: StrDeserializer<'_, serde::de::value::Error> = value.as_str()?.into_deserializer();
        T::deserialize(text).map(Self).map_err(FromSqlError::other)
    }
}

/// A number of a forge or a process; SQL integers are signed.
#[derive(Clone, Copy)]
pub(crate) struct Whole(pub(crate) u64);

impl ToSql for Whole {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let number = i64::try_from(self.0).map_err(unwritable)?;
        Ok(ToSqlOutput::Owned(Value::Integer(number)))
    }
}

impl FromSql for Whole {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number = value.as_i64()?;
        u64::try_from(number).map(Self).map_err(|_| FromSqlError::OutOfRange(number))
    }
}

/// Reads a [`Json`] column.
pub(crate) fn json<T: DeserializeOwned>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<T> {
    row.get::<_, Json<T>>(column).map(|json| json.0)
}

/// Reads a [`Word`] column.
pub(crate) fn word<T: DeserializeOwned>(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<T> {
    row.get::<_, Word<T>>(column).map(|word| word.0)
}

/// Reads a [`Word`] column that may be empty.
pub(crate) fn maybe_word<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<Option<T>> {
    row.get::<_, Option<Word<T>>>(column).map(|word| word.map(|word| word.0))
}

/// Reads a [`Json`] column that may be empty.
pub(crate) fn maybe_json<T: DeserializeOwned>(
    row: &Row<'_>,
    column: impl RowIndex,
) -> rusqlite::Result<Option<T>> {
    row.get::<_, Option<Json<T>>>(column).map(|json| json.map(|json| json.0))
}

/// Reads a [`Whole`] column.
pub(crate) fn whole(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, Whole>(column).map(|whole| whole.0)
}

/// Reads a [`Whole`] column that may be empty.
pub(crate) fn maybe_whole(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<Whole>>(column).map(|whole| whole.map(|whole| whole.0))
}

/// Reads a point in time.
pub(crate) fn time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Timestamp> {
    row.get(column).map(Timestamp)
}

/// Reads a point in time that may be empty.
pub(crate) fn maybe_time(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column).map(|at| at.map(Timestamp))
}

fn unwritable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(error.into())
}
