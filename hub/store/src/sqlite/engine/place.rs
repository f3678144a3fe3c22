//! The folder: for its owner only, for one process at a time, and whole.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use seawall_hub_core::port::store::StoreError;

use crate::sqlite::OpenError;
use crate::sqlite::engine::writer::translate;

pub(crate) const DATABASE: &str = "seawall.db";
/// The write-ahead log of the database.
pub(crate) const LOG: &str = "seawall.db-wal";
/// Held by the process that uses the folder. It contains a text once there was a database.
const LOCK: &str = "lock";
const LOCK_TEXT: &str = "A hub keeps its database in this folder.\n";
/// The key file of the secrets in the database. It is created after the database.
const KEY: &str = "secret.key";
/// The time that a checkpoint waits for readers and writers.
const FOLD_WAIT: Duration = Duration::from_secs(2);

/// Creates the folder for its owner only. The permissions of an existing one stay as they are, because they may be intended.
pub(crate) fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Creates the database file for its owner only; its log gets the same permissions.
pub(crate) fn make_file_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Takes the lock of a folder, for as long as the file is open.
pub(crate) fn take_lock(folder: &Path) -> Result<File, OpenError> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join(LOCK));
    let lock = lock
        .map_err(|error| OpenError(format!("can't write to the folder `{}`: {error}", folder.display())))?;
    if is_ours(&lock) {
        return Ok(lock);
    }
    let held = "another process uses it; stop that one, or choose another folder";
    Err(OpenError(format!("can't use the folder `{}`: {held}", folder.display())))
}

/// Tries to take the lock, more than once: a process that has just ended may hold it a moment longer, and so may a child that
/// another thread is about to start.
fn is_ours(lock: &File) -> bool {
    (0..10).any(|turn| {
        if turn > 0 {
            #[expect(
                clippy::disallowed_methods,
                reason = "at the start of the process, before anything runs"
            )]
            thread::sleep(Duration::from_millis(50));
        }
        lock.try_lock().is_ok()
    })
}

/// Writes into the lock that there is a database.
pub(crate) fn mark_lock(mut lock: &File) -> std::io::Result<()> {
    if lock.metadata()?.len() > 0 {
        return Ok(());
    }
    lock.write_all(LOCK_TEXT.as_bytes())?;
    lock.sync_all()
}

/// Refuses a folder where the database is gone and something that belongs to it is left: a new database would take over the log of
/// the old one, with what was acknowledged last. A first start that was interrupted has left nothing but an empty lock.
pub(crate) fn refuse_without_database(folder: &Path) -> Result<(), OpenError> {
    let bytes = |name: &str| fs::metadata(folder.join(name)).ok().map(|file| file.len());
    let gone = match bytes(DATABASE) {
        None => "missing",
        Some(0) => "empty",
        Some(_) => return Ok(()),
    };
    let left: Vec<String> = [LOG, KEY, LOCK]
        .into_iter()
        .filter(|name| bytes(name).is_some_and(|bytes| bytes > 0))
        .map(|name| format!("`{name}`"))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let (place, left) = (folder.display(), left.join(", "));
    Err(OpenError(format!(
        "`{DATABASE}` is {gone} in `{place}`, but {left} exists: nothing was changed. Restore `{DATABASE}` to this folder, or \
         restore a backup into a new folder with `seawall restore`; to start without the acknowledged data, move {left} \
         away first"
    )))
}

/// Checkpoints the write-ahead log, and empties it.
pub(crate) fn fold_log(database: &Path) -> Result<(), StoreError> {
    let fold = || -> rusqlite::Result<bool> {
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(FOLD_WAIT)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
    };
    match fold() {
        Ok(false) => Ok(()),
        Ok(true) => Err(StoreError::Busy),
        Err(error) => Err(translate(&error)),
    }
}
