//! The columns of a row, from left to right.

use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::time::Millis;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

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
        let column = self.next;
        self.next += 1;
        self.row.try_get(column).map_err(|error| self.unreadable(column, &error))
    }

    /// Skips the next column.
    pub(in crate::postgres) fn skip(&mut self) {
        self.next += 1;
    }

    /// Reads a text that came from outside.
    pub(in crate::postgres) fn text(&mut self) -> Result<String, UnreadableRow> {
        self.value::<String>().map(text::shown)
    }

    /// Reads a text that came from outside, if there is one.
    pub(in crate::postgres) fn text_or_null(&mut self) -> Result<Option<String>, UnreadableRow> {
        Ok(self.value::<Option<String>>()?.map(text::shown))
    }

    /// Reads a whole number of any width.
    pub(in crate::postgres) fn integer(&mut self) -> Result<i64, UnreadableRow> {
        let column = self.next;
        self.integer_or_null()?.ok_or_else(|| self.unreadable(column, &"it is NULL"))
    }

    /// Reads a whole number of any width, if there is one.
    pub(in crate::postgres) fn integer_or_null(&mut self) -> Result<Option<i64>, UnreadableRow> {
        match self.row.columns().get(self.next).map(|column| column.type_()) {
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

    /// Reads a number that is as small as its type in the domain.
    pub(in crate::postgres) fn count<T: TryFrom<i64>>(&mut self) -> Result<T, UnreadableRow> {
        let column = self.next;
        let number = self.integer()?;
        T::try_from(number).map_err(|_| self.unreadable(column, &format_args!("{number} is out of range")))
    }

    /// Reads a number that is as small as its type in the domain, if there is one.
    pub(in crate::postgres) fn count_or_null<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, UnreadableRow> {
        let column = self.next;
        let Some(number) = self.integer_or_null()? else { return Ok(None) };
        let count = T::try_from(number);
        count.map(Some).map_err(|_| self.unreadable(column, &format_args!("{number} is out of range")))
    }

    pub(in crate::postgres) fn time(&mut self) -> Result<Millis, UnreadableRow> {
        self.integer().map(Millis)
    }

    pub(in crate::postgres) fn time_or_null(&mut self) -> Result<Option<Millis>, UnreadableRow> {
        Ok(self.integer_or_null()?.map(Millis))
    }

    /// Reads a hash.
    pub(in crate::postgres) fn hash(&mut self) -> Result<[u8; 32], UnreadableRow> {
        let column = self.next;
        let bytes: &[u8] = self.value()?;
        bytes.try_into().map_err(|_| self.unreadable(column, &"a hash has 32 bytes"))
    }

    /// Reads the document of a row that the column before names.
    pub(in crate::postgres) fn document<R: Record>(&mut self, name: &str) -> Result<R, UnreadableRow> {
        record::decode(name, self.value()?)
    }

    pub(in crate::postgres) fn slug(&mut self) -> Result<Slug, UnreadableRow> {
        self.parsed(Slug::new)
    }

    /// Reads a value from its text.
    pub(in crate::postgres) fn parsed<T, E: std::fmt::Display>(
        &mut self,
        read: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<T, UnreadableRow> {
        let column = self.next;
        read(self.value()?).map_err(|error| self.unreadable(column, &error))
    }

    /// Reads a value from its text, if there is one.
    pub(in crate::postgres) fn parsed_or_null<T, E: std::fmt::Display>(
        &mut self,
        read: impl FnOnce(&'a str) -> Result<T, E>,
    ) -> Result<Option<T>, UnreadableRow> {
        let column = self.next;
        let text: Option<&'a str> = self.value()?;
        text.map(read).transpose().map_err(|error| self.unreadable(column, &error))
    }

    /// Reads a value that has a number.
    pub(in crate::postgres) fn numbered<T: StoredNumber>(&mut self) -> Result<T, UnreadableRow> {
        let column = self.next;
        T::from_number(self.integer()?).map_err(|error| self.unreadable(column, &error))
    }

    /// Reads a value that has a number, if there is one.
    pub(in crate::postgres) fn numbered_or_null<T: StoredNumber>(
        &mut self,
    ) -> Result<Option<T>, UnreadableRow> {
        let column = self.next;
        let number = self.integer_or_null()?;
        number.map(T::from_number).transpose().map_err(|error| self.unreadable(column, &error))
    }

    /// Reads a word of the domain.
    pub(in crate::postgres) fn word<T>(
        &mut self,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, UnreadableRow> {
        self.parsed(|word| read(word).ok_or_else(|| UnreadableValue::new("word", word)))
    }

    /// Returns the error for a row that has something unknown in a column.
    fn unreadable(&self, column: usize, reason: &dyn std::fmt::Display) -> UnreadableRow {
        let number = self.row.try_get::<_, i64>(0).map(|number| number.to_string());
        let name = number.or_else(|_| self.row.try_get::<_, String>(0));
        let column = self.row.columns().get(column).map_or("?", |column| column.name());
        UnreadableRow::new(self.table, name.unwrap_or_default(), format!("`{column}`: {reason}"))
    }
}
