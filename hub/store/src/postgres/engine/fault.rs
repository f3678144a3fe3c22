//! What an error of the database means for the hub.

use seawall_hub_core::port::store::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::postgres::rows::ReadError;
use crate::postgres::write::applier::ApplyError;

/// What an error of the database means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::postgres) enum DatabaseFault {
    /// Others were in the way: the same may succeed at once.
    Conflict,
    /// The connection is lost or of no use any more.
    Connection,
    /// The disk of the server is full.
    Full,
    /// Something that was stored can't be read any more.
    Damaged,
    /// The statement has failed for another reason.
    Other,
}

impl DatabaseFault {
    pub(in crate::postgres) fn of(error: &Error) -> DatabaseFault {
        let Some(code) = error.code() else {
            // What the driver itself can't read or write does not become readable on another connection.
            return if error.is_closed() || is_of_the_network(error) {
                DatabaseFault::Connection
            } else {
                DatabaseFault::Other
            };
        };
        match code.code() {
            "40001" | "40P01" | "55P03" => DatabaseFault::Conflict,
            // A node that was demoted or a server that shuts down, starts, recovers or has no room for a connection.
            "25006" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "53300" => DatabaseFault::Connection,
            "53100" => DatabaseFault::Full,
            "XX001" | "XX002" => DatabaseFault::Damaged,
            code if code.starts_with("08") => DatabaseFault::Connection,
            _ => DatabaseFault::Other,
        }
    }
}

/// Whether the error comes from a socket, or from what was read there.
fn is_of_the_network(error: &Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            // What can't be written in the first place never reaches the network.
            return error.kind() != std::io::ErrorKind::InvalidInput;
        }
        source = error.source();
    }
    false
}

/// Returns the text of an error with what the server said about it, without values of rows.
pub(in crate::postgres) fn text(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// Translates an error for whoever asked.
pub(in crate::postgres) fn translate(error: &Error) -> StoreError {
    match DatabaseFault::of(error) {
        DatabaseFault::Full => StoreError::Full,
        DatabaseFault::Damaged => StoreError::Damaged(text(error)),
        DatabaseFault::Connection => StoreError::Unavailable { sent: false },
        DatabaseFault::Conflict | DatabaseFault::Other => StoreError::Failed(text(error)),
    }
}

/// Why a query has no answer.
pub(in crate::postgres) trait QueryError: Send {
    /// Whether another connection may have the answer.
    fn is_of_connection(&self) -> bool;

    /// Translates the error for whoever asked.
    fn translated(&self) -> StoreError;
}

impl QueryError for Error {
    fn is_of_connection(&self) -> bool {
        DatabaseFault::of(self) == DatabaseFault::Connection
    }

    fn translated(&self) -> StoreError {
        if self.code() == Some(&SqlState::QUERY_CANCELED) {
            return StoreError::Failed("the query took too long; narrow it down".into());
        }
        translate(self)
    }
}

impl QueryError for ReadError {
    fn is_of_connection(&self) -> bool {
        matches!(self, ReadError::Database(error) if error.is_of_connection())
    }

    fn translated(&self) -> StoreError {
        match self {
            ReadError::Unreadable(row) => StoreError::Failed(row.to_string()),
            ReadError::Database(error) => error.translated(),
        }
    }
}

impl QueryError for ApplyError {
    fn is_of_connection(&self) -> bool {
        matches!(self, ApplyError::Database(error) if error.is_of_connection())
    }

    fn translated(&self) -> StoreError {
        match self {
            ApplyError::Refused(error) => error.clone(),
            ApplyError::Database(error) => error.translated(),
        }
    }
}
