//! Rows to domain and back.

use std::fmt;

use tokio_postgres::Error;

use crate::record::UnreadableRow;

/// Why a query has no answer.
#[derive(Debug)]
pub(in crate::postgres) enum ReadError {
    /// A row has something that this program can't read.
    Unreadable(UnreadableRow),
    /// The database has failed.
    Database(Error),
}

impl From<UnreadableRow> for ReadError {
    fn from(row: UnreadableRow) -> Self {
        ReadError::Unreadable(row)
    }
}

impl From<Error> for ReadError {
    fn from(error: Error) -> Self {
        ReadError::Database(error)
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Unreadable(row) => row.fmt(f),
            ReadError::Database(error) => error.fmt(f),
        }
    }
}
