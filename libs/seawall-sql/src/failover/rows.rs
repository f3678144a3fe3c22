//! How many rows a result has, for the log.

/// A result whose rows can be counted.
///
/// A list has as many rows as items, an `Option` one or none, a `u64` is a number of rows itself, as is the result of a
/// statement; anything else here is one row. Implement it for your own types with one line:
///
/// ```
/// struct Report;
/// impl seawall_sql::failover::RowCount for Report {
///     fn row_count(&self) -> u64 { 1 }
/// }
/// ```
pub trait RowCount {
    /// The number of rows.
    fn row_count(&self) -> u64;
}

impl<T> RowCount for Vec<T> {
    fn row_count(&self) -> u64 {
        self.len() as u64
    }
}

impl<T> RowCount for Option<T> {
    fn row_count(&self) -> u64 {
        u64::from(self.is_some())
    }
}

impl RowCount for u64 {
    fn row_count(&self) -> u64 {
        *self
    }
}

impl RowCount for () {
    fn row_count(&self) -> u64 {
        0
    }
}

macro_rules! one_row {
    ($($name:ty),*) => { $(impl RowCount for $name {
        fn row_count(&self) -> u64 {
            1
        }
    })* };
}

one_row!(bool, i16, i32, i64, f32, f64, String);

macro_rules! tuples {
    ($(($($name:ident),+))*) => { $(impl<$($name),+> RowCount for ($($name,)+) {
        fn row_count(&self) -> u64 {
            1
        }
    })* };
}

tuples!((A)(A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E)(A, B, C, D, E, F));

#[cfg(feature = "postgres")]
one_row!(sqlx::postgres::PgRow);
#[cfg(feature = "sqlite")]
one_row!(sqlx::sqlite::SqliteRow);

#[cfg(feature = "postgres")]
impl RowCount for sqlx::postgres::PgQueryResult {
    fn row_count(&self) -> u64 {
        self.rows_affected()
    }
}

#[cfg(feature = "sqlite")]
impl RowCount for sqlx::sqlite::SqliteQueryResult {
    fn row_count(&self) -> u64 {
        self.rows_affected()
    }
}
