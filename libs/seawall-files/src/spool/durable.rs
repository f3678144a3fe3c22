//! Writes that survive a crash of the machine.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Makes the names in a folder durable: a file that was renamed into it is there after a crash.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Moves a file to another folder of the same disk, for good.
pub(super) fn move_file(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to)?;
    sync_parent(to)?;
    sync_parent(from)
}

/// Writes a small file as a whole: after a crash it has its old content or the new one.
pub(super) fn write_file(staging: &Path, to: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = File::create(staging)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(staging, to)?;
    sync_parent(to)
}

/// Removes a file for good. One that is not there is no error.
pub(super) fn remove_file(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync_parent(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), sync_folder)
}
