//! Rows to domain.

mod columns;
mod delivery;
mod event;
mod operation;

use std::fmt;

use seawall_hub_core::port::store::StoreError;
use tokio_postgres::Error;

use crate::postgres::write::applier::ApplyError;
use crate::record::{StoredNumber, UnreadableRow};

pub(in crate::postgres) use self::columns::Columns;
pub(in crate::postgres) use self::delivery::{
    ATTEMPTS, FACTS, REQUEST, STORED, attempt, delivery_id_or_null, facts, request, stored_delivery,
    whole_delivery,
};
pub(in crate::postgres) use self::event::{EVENT, event};
pub(in crate::postgres) use self::operation::{OPERATION, operation};

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

impl From<UnreadableRow> for ApplyError {
    fn from(row: UnreadableRow) -> Self {
        ApplyError::Refused(StoreError::Failed(row.to_string()))
    }
}

impl From<ReadError> for ApplyError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable(row) => row.into(),
            ReadError::Database(error) => ApplyError::Database(error),
        }
    }
}

/// Returns the number of a value as a column of the type `smallint` holds it.
pub(in crate::postgres) fn small(value: impl StoredNumber) -> i16 {
    i16::try_from(value.to_number()).unwrap_or(i16::MAX)
}
