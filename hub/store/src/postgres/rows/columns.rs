//! The columns of a row, from left to right.

use std::fmt;

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Column, Row};

use crate::postgres::text;
use crate::record::{self, Record, StoredNumber, UnreadableRow, UnreadableValue};

/// Reads a row column by column, so that a list of columns and its reader are in the same sequence. The first column names the row
/// in errors.
pub(in crate::postgres) struct Columns<'a> {
    table: &'static str,
    row: &'a Row,
    next: usize,
}

impl<'a> Columns<'a> {
    pub(in crate::postgres) fn new(table: &'static str, row: &'a Row) -> Self {
        Columns { table, row, next: 0 }
    }

    /// Reads the next column as it is.
    pub(in crate::postgres) fn value<T: FromSql<'a>>(&mut self) -> Result<T, UnreadableRow> {
        self.next += 1;
        self.checked(self.row.try_get(self.next - 1))
    }

    /// Returns what was made of the column that was read last, or the error that names table, row and column.
    pub(in crate::postgres) fn checked<T, E: fmt::Display>(
        &self,
        value: Result<T, E>,
    ) -> Result<T, UnreadableRow> {
        value.map_err(|reason| {
            let number = self.row.try_get::<_, i64>(0).map(|number| number.to_string());
            let name = number.or_else(|_| self.row.try_get(0)).unwrap_or_default();
            let column = self.next.checked_sub(1).and_then(|column| self.row.columns().get(column));
            let column = column.map_or("?", |column| column.name());
            UnreadableRow::new(self.table, name, format_args!("`{column}`: {reason}"))
        })
    }

    /// Skips the next column.
    pub(in crate::postgres) fn skip(&mut self) {
        self.next += 1;
    }

    /// Reads a text that came from outside.
    pub(in crate::postgres) fn text(&mut self) -> Result<String, UnreadableRow> {
        self.value().map(text::shown)
    }

    /// Reads a text that came from outside, if there is one.
    pub(in crate::postgres) fn text_or_null(&mut self) -> Result<Option<String>, UnreadableRow> {
        Ok(self.value::<Option<_>>()?.map(text::shown))
    }

    /// Reads a whole number of any width.
    pub(in crate::postgres) fn integer(&mut self) -> Result<i64, UnreadableRow> {
        let number = self.integer_or_null()?;
        self.checked(number.ok_or("it is NULL"))
    }

    /// Reads a whole number of any width, if there is one.
    pub(in crate::postgres) fn integer_or_null(&mut self) -> Result<Option<i64>, UnreadableRow> {
        match self.row.columns().get(self.next).map(Column::type_) {
            Some(&Type::INT2) => Ok(self.value::<Option<i16>>()?.map(i64::from)),
            Some(&Type::INT4) => Ok(self.value::<Option<i32>>()?.map(i64::from)),
            _ => self.value(),
        }
    }

    /// Reads a number without a sign.
    pub(in crate::postgres) fn number(&mut self) -> Result<u64, UnreadableRow> {
        self.integer().map(i64::cast_unsigned)
    }

    /// Reads a number without a sign, if there is one.
    pub(in crate::postgres) fn number_or_null(&mut self) -> Result<Option<u64>, UnreadableRow> {
        Ok(self.integer_or_null()?.map(i64::cast_unsigned))
    }

    /// Reads a number that the domain holds in a smaller type.
    pub(in crate::postgres) fn count<T: TryFrom<i64>>(&mut self) -> Result<T, UnreadableRow> {
        let count = self.count_or_null()?;
        self.checked(count.ok_or("it is NULL"))
    }

    /// Reads a number that the domain holds in a smaller type, if there is one.
    pub(in crate::postgres) fn count_or_null<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, UnreadableRow> {
        let Some(number) = self.integer_or_null()? else { return Ok(None) };
        self.checked(T::try_from(number).map(Some).map_err(|_| format!("{number} is out of range")))
    }

    pub(in crate::postgres) fn time(&mut self) -> Result<Millis, UnreadableRow> {
        self.integer().map(Millis)
    }

    pub(in crate::postgres) fn time_or_null(&mut self) -> Result<Option<Millis>, UnreadableRow> {
        Ok(self.integer_or_null()?.map(Millis))
    }

    /// Reads a hash.
    pub(in crate::postgres) fn hash(&mut self) -> Result<[u8; 32], UnreadableRow> {
        let bytes: &[u8] = self.value()?;
        self.checked(bytes.try_into().map_err(|_| "a hash has 32 bytes"))
    }

    /// Reads the document of the row with this name.
    pub(in crate::postgres) fn document<R: Record>(&mut self, name: &str) -> Result<R, UnreadableRow> {
        record::decode(name, self.value()?)
    }

    pub(in crate::postgres) fn slug(&mut self) -> Result<Slug, UnreadableRow> {
        self.parsed(Slug::new)
    }

    /// Reads a value from its text.
    pub(in crate::postgres) fn parsed<T, E: fmt::Display>(
        &mut self,
        read: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<T, UnreadableRow> {
        let text = self.value()?;
        self.checked(read(text))
    }

    /// Reads a value from its text, if there is one.
    pub(in crate::postgres) fn parsed_or_null<T, E: fmt::Display>(
        &mut self,
        read: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<Option<T>, UnreadableRow> {
        let text: Option<&str> = self.value()?;
        self.checked(text.map(read).transpose())
    }

    /// Reads a value that has a number.
    pub(in crate::postgres) fn numbered<T: StoredNumber>(&mut self) -> Result<T, UnreadableRow> {
        let number = self.integer()?;
        self.checked(T::from_number(number))
    }

    /// Reads a value that has a number, if there is one.
    pub(in crate::postgres) fn numbered_or_null<T: StoredNumber>(
        &mut self,
    ) -> Result<Option<T>, UnreadableRow> {
        let number = self.integer_or_null()?;
        self.checked(number.map(T::from_number).transpose())
    }

    /// Reads a word of the domain.
    pub(in crate::postgres) fn word<T>(
        &mut self,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, UnreadableRow> {
        self.parsed(|word| read(word).ok_or_else(|| UnreadableValue::new("word", word)))
    }
}
