//! A row as every database has it, and a hash of rows that does not depend on their order.

use std::error::Error;
use std::fmt;

use bytes::BytesMut;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use sha2::{Digest, Sha256};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::postgres::text::{shown, stored};

/// A value of a row. Truth values are 0 and 1, and a list of texts is a JSON array.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of the columns of a table, in their order.
pub(crate) type Row = Vec<Cell>;

impl Cell {
    /// Returns the size in memory, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Cell::Null | Cell::Integer(_) => 16,
            Cell::Text(text) => 32 + text.len(),
            Cell::Bytes(bytes) => 32 + bytes.len(),
        }
    }

    /// Returns the text, or an empty one if it is none.
    pub(crate) fn text(&self) -> &str {
        if let Cell::Text(text) = self { text } else { "" }
    }

    /// Writes the value so that two different rows never look the same: a letter, the length, and the bytes.
    fn write(&self, to: &mut Vec<u8>) {
        let (letter, bytes): (u8, &[u8]) = match self {
            Cell::Null => (b'n', &[]),
            Cell::Integer(number) => (b'i', &number.to_be_bytes()),
            Cell::Text(text) => (b't', text.as_bytes()),
            Cell::Bytes(bytes) => (b'b', bytes),
        };
        to.push(letter);
        to.extend((bytes.len() as u64).to_be_bytes());
        to.extend_from_slice(bytes);
    }
}

impl From<Option<i64>> for Cell {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Cell::Null, Cell::Integer)
    }
}

impl From<Option<String>> for Cell {
    fn from(text: Option<String>) -> Self {
        text.map_or(Cell::Null, Cell::Text)
    }
}

/// The number of rows, and the sum of their hashes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Count {
    pub(crate) rows: u64,
    hash: u128,
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:032x}", self.rows, self.hash)
    }
}

/// Counts rows. One for each table, because it keeps its memory.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    count: Count,
    row: Vec<u8>,
}

impl Counter {
    pub(crate) fn add(&mut self, row: &[Cell]) {
        self.row.clear();
        row.iter().for_each(|cell| cell.write(&mut self.row));
        let digest = Sha256::digest(&self.row);
        let half = digest.first_chunk::<16>().copied().unwrap_or_default();
        self.count.rows += 1;
        self.count.hash = self.count.hash.wrapping_add(u128::from_be_bytes(half));
    }

    pub(crate) fn count(&self) -> Count {
        self.count
    }
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Cell::Null => ToSqlOutput::Owned(Value::Null),
            Cell::Integer(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Cell::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Cell::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl rusqlite::types::FromSql for Cell {
    fn column_result(value: ValueRef<'_>) -> rusqlite::types::FromSqlResult<Self> {
        Ok(match value {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(number) => Cell::Integer(number),
            ValueRef::Text(_) => Cell::Text(value.as_str()?.to_owned()),
            ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
            ValueRef::Real(_) => return Err(rusqlite::types::FromSqlError::InvalidType),
        })
    }
}

type Failure = Box<dyn Error + Sync + Send>;

impl ToSql for Cell {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        match (self, kind) {
            (Cell::Null, _) => Ok(IsNull::Yes),
            (Cell::Integer(number), &Type::BOOL) => (*number != 0).to_sql(kind, out),
            (Cell::Integer(number), &Type::INT2) => i16::try_from(*number)?.to_sql(kind, out),
            (Cell::Integer(number), &Type::INT4) => i32::try_from(*number)?.to_sql(kind, out),
            (Cell::Integer(number), &Type::INT8) => number.to_sql(kind, out),
            (Cell::Text(text), &Type::TEXT) => stored(text).as_ref().to_sql(kind, out),
            (Cell::Text(list), &Type::TEXT_ARRAY) => {
                serde_json::from_str::<Vec<String>>(list)?.to_sql(kind, out)
            }
            (Cell::Bytes(bytes), &Type::BYTEA) => bytes.as_slice().to_sql(kind, out),
            (cell, kind) => Err(format!("{cell:?} does not fit into a column of the type {kind}").into()),
        }
    }

    fn accepts(kind: &Type) -> bool {
        KINDS.contains(kind)
    }

    to_sql_checked!();
}

/// The types of all columns.
const KINDS: [Type; 7] =
    [Type::BOOL, Type::INT2, Type::INT4, Type::INT8, Type::TEXT, Type::TEXT_ARRAY, Type::BYTEA];

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Failure> {
        Ok(match *kind {
            Type::BOOL => Cell::Integer(bool::from_sql(kind, raw)?.into()),
            Type::INT2 => Cell::Integer(i16::from_sql(kind, raw)?.into()),
            Type::INT4 => Cell::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Cell::Integer(i64::from_sql(kind, raw)?),
            Type::TEXT => Cell::Text(shown(String::from_sql(kind, raw)?)),
            Type::TEXT_ARRAY => Cell::Text(serde_json::to_string(&Vec::<String>::from_sql(kind, raw)?)?),
            Type::BYTEA => Cell::Bytes(raw.to_vec()),
            _ => return Err(format!("a column has the type {kind}").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Failure> {
        Ok(Cell::Null)
    }

    fn accepts(kind: &Type) -> bool {
        KINDS.contains(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(rows: &[Row]) -> Count {
        let mut counter = Counter::default();
        rows.iter().for_each(|row| counter.add(row));
        counter.count()
    }

    /// HUB-15: the count of rows does not depend on their order, and any other value in any of them changes it.
    #[test]
    fn hub_15_another_value_changes_the_count_and_another_order_does_not() {
        let text = |text: &str| Cell::Text(text.into());
        let rows =
            [vec![Cell::Integer(1), text("ab"), text("")], vec![Cell::Integer(2), Cell::Null, text("x")]];
        let turned = [rows[1].clone(), rows[0].clone()];
        assert_eq!(count(&rows), count(&turned));
        for other in [
            vec![Cell::Integer(1), text("a"), text("b")],
            vec![Cell::Integer(1), Cell::Bytes(b"ab".to_vec()), text("")],
            vec![Cell::Integer(1), text("ab"), Cell::Null],
        ] {
            assert_ne!(count(&[other, rows[1].clone()]), count(&rows));
        }
        assert_ne!(count(&rows[..1]), count(&rows));
    }
}
