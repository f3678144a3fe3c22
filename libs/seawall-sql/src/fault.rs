//! What the errors of `sqlx` mean.

use std::error::Error as StdError;

use seawall::fault::Ran;
use seawall::{Classify, Fault};
use seawall_dist::StoreError;
use sqlx::error::{DatabaseError, ErrorKind};

/// Judges results with a [`sqlx::Error`], for a guard around code that uses `sqlx` directly.
///
/// A database error decides by its SQLSTATE (PostgreSQL) or result code (SQLite). What a statement did before the connection
/// broke is unknown, and most of all for a `COMMIT`: retry it only where that is safe.
#[derive(Clone, Copy, Debug, Default)]
pub struct SqlxErrors;

impl<T> Classify<T, sqlx::Error> for SqlxErrors {
    fn classify(&self, result: &Result<T, sqlx::Error>) -> Option<Fault> {
        result.as_ref().err().map(fault_of)
    }

    fn source(error: &sqlx::Error) -> Option<&(dyn StdError + 'static)> {
        Some(error)
    }
}

/// What an error of `sqlx` means.
#[must_use]
pub fn fault_of(error: &sqlx::Error) -> Fault {
    match error {
        sqlx::Error::Database(error) => of_database(error.as_ref()),
        sqlx::Error::Io(error) => Fault::of_io(error.kind()),
        // No connection was free, or none could be made: nothing was sent.
        sqlx::Error::PoolTimedOut => Fault::timeout().ran(Ran::No),
        sqlx::Error::PoolClosed | sqlx::Error::BeginFailed => Fault::io().ran(Ran::No),
        sqlx::Error::Tls(_) => Fault::io().ran(Ran::No),
        sqlx::Error::WorkerCrashed => Fault::io(),
        sqlx::Error::Protocol(_) => Fault::io(),
        sqlx::Error::Configuration(_)
        | sqlx::Error::InvalidArgument(_)
        | sqlx::Error::Encode(_)
        | sqlx::Error::TypeNotFound { .. } => Fault::business().ran(Ran::No),
        sqlx::Error::RowNotFound
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::Decode(_) => Fault::business(),
        _ => Fault::system(),
    }
}

fn of_database(error: &dyn DatabaseError) -> Fault {
    if error.kind() != ErrorKind::Other {
        return Fault::business();
    }
    let code = error.code().unwrap_or_default();
    // A SQLSTATE has five characters; SQLite's codes are numbers, the kind in the lowest byte.
    if code.len() == 5 { of_sqlstate(&code) } else { of_sqlite(code.parse().unwrap_or_default()) }
}

/// See the appendix "PostgreSQL Error Codes" of its manual.
fn of_sqlstate(code: &str) -> Fault {
    match code {
        // Serialisation failure, deadlock: the transaction was rolled back.
        "40001" | "40P01" => Fault::protocol().ran(Ran::No),
        // A lock was not to be had at once or in time; the statement did nothing.
        "55P03" | "25P03" => Fault::timeout().ran(Ran::No),
        "57014" => Fault::timeout().ran(Ran::No),
        // Too many connections: the server asks for fewer.
        "53300" => Fault::throttled().ran(Ran::No),
        // The server starts, stops or recovers.
        "57P01" | "57P02" | "57P05" => Fault::io(),
        "57P03" => Fault::unreachable(),
        // A standby, or a server that was demoted: another one may take it.
        "25006" => Fault::protocol().ran(Ran::No),
        _ => match &code[..2] {
            "08" => Fault::io(),
            // Disk or memory is full.
            "53" => Fault::protocol().ran(Ran::No),
            // An error of the operating system, such as of the disk.
            "58" => Fault::protocol(),
            // Wrong password, no such database, no privilege.
            "28" | "3D" => Fault::business().ran(Ran::No),
            "XX" => Fault::system(),
            _ => Fault::business(),
        },
    }
}

/// See "Result and Error Codes" of SQLite's manual.
fn of_sqlite(code: u32) -> Fault {
    const BUSY: u32 = 5;
    const LOCKED: u32 = 6;
    const NO_MEMORY: u32 = 7;
    const IO_ERROR: u32 = 10;
    const FULL: u32 = 13;
    const CANT_OPEN: u32 = 14;
    match code & 0xff {
        BUSY | LOCKED => Fault::protocol().ran(Ran::No),
        NO_MEMORY | FULL | CANT_OPEN => Fault::protocol().ran(Ran::No),
        IO_ERROR => Fault::io(),
        _ => Fault::business(),
    }
}

/// Makes a store's error of the error that an action ended with.
pub(crate) fn store_error(action: &'static str) -> impl Fn(sqlx::Error) -> StoreError + Copy {
    move |error| StoreError::new(action, fault_of(&error), error)
}
