//! A copy of all that a hub keeps, and a hub made of it again.
//!
//! The copy holds the database, and the keys to its secrets only if somebody says so: whoever has both has the secrets.

use std::fmt;
use std::path::Path;

use seawall::Clock;
use seawall_hub_core::service::wall_time;
use seawall_hub_store::{CopyReport, OpenError, backup};

use crate::dashboard::end_all_sessions;
use crate::seal::file::KeyFile;

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupReport {
    pub database: CopyReport,
    /// Whether `secret.key` is there too.
    pub secrets: bool,
}

/// Why nothing was copied.
#[derive(Debug)]
pub struct BackupError(String);

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BackupError {}

impl From<OpenError> for BackupError {
    fn from(error: OpenError) -> Self {
        BackupError(error.to_string())
    }
}

fn key(error: &std::io::Error) -> BackupError {
    BackupError(format!("can't read `secret.key`: {error}"))
}

/// Copies what is kept in a folder into another one, whether a hub runs on it or not.
pub fn copy(data: &Path, to: &Path, secrets: bool) -> Result<BackupReport, BackupError> {
    let before = if secrets { KeyFile::read(data).map_err(|error| key(&error))? } else { None };
    if secrets && before.is_none() {
        return Err(BackupError(format!("there is no `secret.key` in `{}`", data.display())));
    }
    let database = backup::backup(data, to, || match before {
        // The keys may have changed meanwhile, and it is not known which of them the copy needs.
        Some(before) => before.merged(KeyFile::read(data)?).write(to),
        None => Ok(()),
    })?;
    Ok(BackupReport { database, secrets })
}

/// Makes the data of a hub from a copy, in a folder that is new or empty.
pub fn restore(from: &Path, data: &Path, clock: &Clock) -> Result<BackupReport, BackupError> {
    let keys = KeyFile::read(from).map_err(|error| key(&error))?;
    let secrets = keys.is_some();
    let database = backup::restore(from, data, || {
        // A copy does not know which sessions were ended, before it was made or since. So all are.
        end_all_sessions(data, wall_time(clock))?;
        keys.map_or(Ok(()), |keys| keys.write(data))
    })?;
    Ok(BackupReport { database, secrets })
}
