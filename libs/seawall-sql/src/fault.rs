//! What the errors of `sqlx` mean.
#![doc = ""]
#![doc = include_str!("../docs/faults.md")]

use std::borrow::Cow;
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
    match Code::of(error) {
        Code::SqlState(code) => of_sqlstate(&code),
        Code::Sqlite(code) => of_sqlite(code),
    }
}

/// The code of a database's error.
enum Code<'e> {
    /// The five characters of PostgreSQL.
    SqlState(Cow<'e, str>),
    /// The number of SQLite, whose kind is in the lowest byte.
    #[cfg_attr(not(feature = "sqlite"), expect(dead_code, reason = "only SQLite has such codes"))]
    Sqlite(u32),
}

impl<'e> Code<'e> {
    fn of(error: &'e dyn DatabaseError) -> Code<'e> {
        let code = error.code().unwrap_or_default();
        #[cfg(feature = "sqlite")]
        if error.try_downcast_ref::<sqlx::sqlite::SqliteError>().is_some() {
            return Code::Sqlite(code.parse().unwrap_or_default());
        }
        Code::SqlState(code)
    }
}

/// See the appendix "PostgreSQL Error Codes" of its manual.
fn of_sqlstate(code: &str) -> Fault {
    match code {
        // Serialisation failure, deadlock, a lock that was not to be had: another transaction was in the way.
        "40001" | "40P01" | "55P03" => Fault::conflict(),
        // Nobody knows whether the statement took effect.
        "40003" => Fault::io(),
        // The statement took too long; it did nothing.
        "57014" => Fault::timeout().ran(Ran::No),
        // The transaction was idle or open for too long, and was rolled back.
        "25P03" | "25P04" => Fault::timeout().ran(Ran::No),
        // Too many connections: the server asks for fewer.
        "53300" => Fault::throttled().ran(Ran::No),
        // The server starts, stops or recovers.
        "57P01" | "57P02" | "57P05" => Fault::io(),
        "57P03" => Fault::unreachable(),
        // The transaction had failed before, and whoever began it did not end it.
        "25P02" => Fault::protocol().ran(Ran::No),
        // A prepared statement is on another connection than the one that a pooler in between has chosen.
        "26000" | "42P05" => Fault::protocol().ran(Ran::No),
        // A standby, or a server that was demoted: another one may take it.
        "25006" => Fault::protocol().ran(Ran::No),
        _ => match code.get(..2).unwrap_or_default() {
            "08" => Fault::io(),
            // Disk or memory is full.
            "53" => Fault::protocol().ran(Ran::No),
            // An error of the operating system, such as of the disk.
            "58" => Fault::protocol(),
            // Wrong password, no such database, no privilege.
            "28" | "3D" => Fault::business().ran(Ran::No),
            "XX" => Fault::system(),
            // A code that is none comes from a server that is none.
            "" => Fault::system(),
            _ => Fault::business(),
        },
    }
}

/// The kinds of SQLite's result codes. See "Result and Error Codes" of its manual.
mod sqlite_code {
    pub(super) const BUSY: u32 = 5;
    pub(super) const LOCKED: u32 = 6;
    pub(super) const NO_MEMORY: u32 = 7;
    pub(super) const IO_ERROR: u32 = 10;
    pub(super) const CORRUPT: u32 = 11;
    pub(super) const FULL: u32 = 13;
    pub(super) const CANT_OPEN: u32 = 14;
    pub(super) const NOT_A_DATABASE: u32 = 26;
}

fn of_sqlite(code: u32) -> Fault {
    use sqlite_code::{BUSY, CANT_OPEN, CORRUPT, FULL, IO_ERROR, LOCKED, NO_MEMORY, NOT_A_DATABASE};
    match code & 0xff {
        BUSY | LOCKED => Fault::conflict(),
        NO_MEMORY | FULL | CANT_OPEN => Fault::protocol().ran(Ran::No),
        IO_ERROR => Fault::io(),
        CORRUPT | NOT_A_DATABASE => Fault::system(),
        _ => Fault::business(),
    }
}

/// Whether another transaction was in the way, so that this one was rolled back and may run again.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn is_conflict(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    match Code::of(error.as_ref()) {
        Code::SqlState(code) => matches!(code.as_ref(), "40001" | "40P01"),
        Code::Sqlite(code) => matches!(code & 0xff, sqlite_code::BUSY | sqlite_code::LOCKED),
    }
}

/// What became of a transaction whose commit failed.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommitOutcome {
    /// The database refused the commit.
    RolledBack,
    /// The commit may have taken effect.
    Unknown,
}

/// What the error of a commit says about the transaction. Only what the database itself says about the transaction is
/// believed: a server that is told to stop may have committed and not got to say so.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(crate) fn commit_outcome(error: &sqlx::Error) -> CommitOutcome {
    let sqlx::Error::Database(error) = error else { return CommitOutcome::Unknown };
    let unknown = match Code::of(error.as_ref()) {
        Code::SqlState(code) => {
            code == "40003"
                || matches!(code.get(..2).unwrap_or_default(), "08" | "57" | "58" | "XX" | "F0" | "")
        }
        Code::Sqlite(code) => code & 0xff == sqlite_code::IO_ERROR,
    };
    if unknown { CommitOutcome::Unknown } else { CommitOutcome::RolledBack }
}

/// Makes a store's error of the error that an action ended with.
pub(crate) fn store_error(action: &'static str) -> impl Fn(sqlx::Error) -> StoreError + Copy {
    move |error| StoreError::new(action, fault_of(&error), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-8: no code of a server makes the classifier panic.
    #[test]
    fn prm_8_any_code_is_judged() {
        for code in ["", "4", "ä", "4ä001", "日本語", "57P0", "\u{0}\u{0}\u{0}\u{0}\u{0}", "400010000"] {
            let _ = of_sqlstate(code);
        }
        assert_eq!(of_sqlstate(""), Fault::system());
        for code in ["25P02", "26000", "42P05"] {
            assert_eq!(of_sqlstate(code), Fault::protocol().ran(Ran::No));
        }
        for code in [0, 1, u32::MAX] {
            let _ = of_sqlite(code);
        }
        // Extended codes keep their kind in the lowest byte: SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_FSYNC.
        assert_eq!(of_sqlite(517), Fault::conflict());
        assert_eq!(of_sqlite(1034), Fault::io());
    }
}
