//! A copy of the database, taken beside the writer, and a database restored from it.
//!
//! # Why `VACUUM INTO`, and not page by page?
//! A copy that is made page by page starts again after every write, and under load has no end. This one reads one state of
//! the database from beginning to end, whatever is written meanwhile, and leaves out what is free. Its price: while it runs, the
//! write-ahead log can't be folded back and grows.
//!
//! # What a name promises
//! A file gets its name when all of it is on the disk. A backup or a restore that was interrupted has left nothing that could be
//! taken for a whole one; one that failed has left nothing that takes up room.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags};

use crate::sqlite::OpenError;
use crate::sqlite::engine::place::{DATABASE, LOG, make_file_private, make_private, take_lock};
use crate::sqlite::engine::schema;
use crate::sqlite::transfer::moved;

const UNFINISHED: &str = "seawall.db.unfinished";

/// A verified copy of a database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyReport {
    /// The version of the schema.
    pub version: u32,
    /// The size in bytes.
    pub bytes: u64,
    /// The number of events in it.
    pub events: u64,
}

/// Copies the database of one folder into another, which must be new or empty. A hub may run on it meanwhile.
///
/// Before the copy gets its name, `besides` adds the other files.
pub fn backup(
    data: &Path,
    to: &Path,
    besides: impl FnOnce() -> io::Result<()>,
) -> Result<CopyReport, OpenError> {
    if let Some(to) = moved(data) {
        let word = format!(
            "its data was moved to the database `{to}`; use `pg_dump` or `pg_basebackup`, and save `secret.key` too"
        );
        return Err(at("can't back up", data, &word));
    }
    let from = data.join(DATABASE);
    if !from.is_file() {
        return Err(OpenError(format!("there is no `{DATABASE}` in `{}`", data.display())));
    }
    make_private(to).map_err(|error| at("can't create", to, &error))?;
    refuse_full(to, &[UNFINISHED])?;
    let unfinished = fresh(to)?;
    let source = Connection::open_with_flags(&from, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .map_err(|error| at("can't open", &from, &error))?;
    let name =
        unfinished.path.to_str().ok_or_else(|| at("can't write to", to, &"its name is not valid UTF-8"))?;
    source.execute("VACUUM INTO ?1", [name]).map_err(|error| at("can't copy", &from, &error))?;
    let copied = checked(&unfinished.path, "quick_check")?;
    besides().map_err(|error| at("can't write to", to, &error))?;
    finish(to)?;
    Ok(copied)
}

/// Restores a backup into a folder that must be new or empty. The database gets a new id: since the backup, deliveries have got
/// ids that must not be used again.
///
/// Before the database gets its name, `besides` adds the other files.
pub fn restore(
    from: &Path,
    data: &Path,
    besides: impl FnOnce() -> io::Result<()>,
) -> Result<CopyReport, OpenError> {
    let source = from.join(DATABASE);
    if !source.is_file() {
        return Err(OpenError(format!(
            "there is no `{DATABASE}` in `{}`: the backup is incomplete",
            from.display()
        )));
    }
    if fs::metadata(from.join(LOG)).is_ok_and(|log| log.len() > 0) {
        let word = format!(
            "`{LOG}` is beside it and holds acknowledged data: this is the data directory of a hub and not a backup; create \
             one with `seawall backup`"
        );
        return Err(at("can't restore from", from, &word));
    }
    make_private(data).map_err(|error| at("can't create", data, &error))?;
    // The existing files first, so that nothing is put into a folder that is refused.
    refuse_full(data, &[UNFINISHED, "lock"])?;
    let _lock = take_lock(data)?;
    refuse_full(data, &[UNFINISHED, "lock"])?;
    let unfinished = fresh(data)?;
    let path = &unfinished.path;
    copy_bytes(&source, path).map_err(|error| at("can't copy", &source, &error))?;
    // What is checked is what will be used.
    let copied = checked(path, "integrity_check")?;
    let connection = Connection::open(path).map_err(|error| at("can't open", path, &error))?;
    connection
        .execute("UPDATE meta SET era = random()", [])
        .map_err(|error| at("can't renew", path, &error))?;
    drop(connection);
    besides().map_err(|error| at("can't write to", data, &error))?;
    finish(data)?;
    Ok(copied)
}

fn at(what: &str, path: &Path, why: &dyn std::fmt::Display) -> OpenError {
    OpenError(format!("{what} `{}`: {why}", path.display()))
}

/// Refuses a folder with other files than an earlier attempt has left.
fn refuse_full(folder: &Path, allowed: &[&str]) -> Result<(), OpenError> {
    let entries = fs::read_dir(folder).map_err(|error| at("can't read", folder, &error))?;
    for entry in entries {
        let name = entry.map_err(|error| at("can't read", folder, &error))?.file_name();
        if !allowed.iter().any(|allowed| name == *allowed) {
            let word = format!("`{}` is in it; choose a folder that is new or empty", name.display());
            return Err(at("can't write to", folder, &word));
        }
    }
    Ok(())
}

/// Copies the bytes of a file without its permissions: a backup may be readable by everybody, or read-only.
fn copy_bytes(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = OpenOptions::new().write(true).truncate(true).open(to)?;
    io::copy(&mut File::open(from)?, &mut target).map(drop)
}

/// A file that has not got its name yet. It is deleted if it never does, because the disk may be full because of it.
pub(super) struct PartialFile {
    pub(super) path: PathBuf,
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // One that has its name is not there any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Creates an empty file for its owner only.
pub(super) fn fresh(folder: &Path) -> Result<PartialFile, OpenError> {
    let path = folder.join(UNFINISHED);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(at("can't write to", folder, &error));
        }
        _ => {}
    }
    make_file_private(&path).map_err(|error| at("can't write to", folder, &error))?;
    Ok(PartialFile { path })
}

/// Checks that the copy can be read and that this program knows its schema.
fn checked(path: &Path, check: &str) -> Result<CopyReport, OpenError> {
    let read = || -> rusqlite::Result<(String, u32, u64)> {
        let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let found = connection.query_row(&format!("PRAGMA {check}(1)"), [], |row| row.get(0))?;
        let version = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let events: i64 = connection.query_row("SELECT count(*) FROM events", [], |row| row.get(0))?;
        connection.query_row("SELECT era FROM meta", [], |row| row.get::<_, i64>(0))?;
        Ok((found, version, events.cast_unsigned()))
    };
    let (found, version, events) =
        read().map_err(|error| at("this is not a database of the hub:", path, &error))?;
    if found != "ok" {
        return Err(at("the database is damaged:", path, &found));
    }
    schema::check_version(version)?;
    let bytes = fs::metadata(path).map_err(|error| at("can't read", path, &error))?.len();
    Ok(CopyReport { version, bytes, events })
}

/// Syncs the file to the disk, and only then renames it.
pub(super) fn finish(folder: &Path) -> Result<(), OpenError> {
    let (unfinished, whole) = (folder.join(UNFINISHED), folder.join(DATABASE));
    let done = || {
        File::open(&unfinished)?.sync_all()?;
        fs::rename(&unfinished, &whole)?;
        // The name is part of the folder.
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok::<(), io::Error>(())
    };
    done().map_err(|error| at("can't write to", folder, &error))
}
