//! A copy of all that a hub keeps, and a hub made of it again.
//!
//! The copy holds the database, and the keys to its secrets only if somebody says so: whoever has both has the secrets.

use std::fmt;
use std::path::Path;

use seawall::Clock;
use seawall_hub_core::service::wall_time;
use seawall_hub_store::{Copied, OpenError, backup};

use crate::dashboard::end_all_sessions;
use crate::seal::file::KeyFile;

/// What was copied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The database.
    pub database: Copied,
    /// Whether `secret.key` is there too.
    pub secrets: bool,
}

/// Why nothing was copied.
#[derive(Debug)]
pub struct NotCopied(String);

impl fmt::Display for NotCopied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotCopied {}

impl From<OpenError> for NotCopied {
    fn from(error: OpenError) -> Self {
        NotCopied(error.to_string())
    }
}

fn key(error: &std::io::Error) -> NotCopied {
    NotCopied(format!("can't read `secret.key`: {error}"))
}

/// Copies what is kept in a folder into another one, whether a hub runs on it or not.
pub fn copy(data: &Path, to: &Path, secrets: bool) -> Result<Copy, NotCopied> {
    let before = if secrets { KeyFile::read(data).map_err(|error| key(&error))? } else { None };
    if secrets && before.is_none() {
        return Err(NotCopied(format!("there is no `secret.key` in `{}`", data.display())));
    }
    let database = backup::backup(data, to, || match before {
        // The keys may have changed meanwhile, and it is not known which of them the copy needs.
        Some(before) => before.merged(KeyFile::read(data)?).write(to),
        None => Ok(()),
    })?;
    Ok(Copy { database, secrets })
}

/// Makes the data of a hub from a copy, in a folder that is new or empty.
pub fn restore(from: &Path, data: &Path) -> Result<Copy, NotCopied> {
    let keys = KeyFile::read(from).map_err(|error| key(&error))?;
    let secrets = keys.is_some();
    let database = backup::restore(from, data, || {
        // A copy does not know which sessions were ended, before it was made or since. So all are.
        end_all_sessions(data, wall_time(&Clock::default()))?;
        keys.map_or(Ok(()), |keys| keys.write(data))
    })?;
    Ok(Copy { database, secrets })
}
