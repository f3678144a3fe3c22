//! Whether a write has failed for want of room.
//!
//! # Why try it out?
//! That the disk is full SQLite says itself. A quota that is used up it takes for any other write that fails, and what the system
//! called it can't be asked for safely. So something is written beside the database, and the system says it again.
//!
//! A write that fails is not a `fsync` that fails: nothing that was acknowledged hangs on it, the transaction is taken back, and
//! the next one writes the same place again.

use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// More than is left where a page of the database finds no room.
const TRIED: usize = 64 * 1024;

thread_local! {
    /// The folder that this thread writes to. What SQLite calls back can be told nothing.
    static FOLDER: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
}

/// From now on this thread writes to this database.
pub(super) fn is_of(database: Option<&str>) {
    let folder = database.and_then(|path| Path::new(path).parent()).map(Path::to_owned);
    FOLDER.with_borrow_mut(|of| *of = folder);
}

/// Whether there is none left where this thread writes to.
pub(super) fn is_short() -> bool {
    FOLDER.with_borrow(|folder| folder.as_deref().is_some_and(|folder| is_out_of_room(&tried(folder))))
}

fn tried(folder: &Path) -> io::Result<()> {
    let path = folder.join("room.tried");
    let written = fs::write(&path, [1; TRIED]);
    // If it is not there, or can't go, the next time will do.
    let _ = fs::remove_file(&path);
    written
}

fn is_out_of_room(written: &io::Result<()>) -> bool {
    written
        .as_ref()
        .is_err_and(|error| matches!(error.kind(), ErrorKind::QuotaExceeded | ErrorKind::StorageFull))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRM-8: no room is no room by either name, and any other failure is none.
    #[test]
    fn prm_8_a_quota_is_room_too() {
        for (kind, is) in
            [(ErrorKind::QuotaExceeded, true), (ErrorKind::StorageFull, true), (ErrorKind::Other, false)]
        {
            assert_eq!(is_out_of_room(&Err(kind.into())), is, "{kind}");
        }
        assert!(!is_out_of_room(&Ok(())));
        // Nobody has said where, and where there is room.
        assert!(!is_short());
        let folder = tempfile::TempDir::new().unwrap();
        is_of(folder.path().join("seawall.db").to_str());
        assert!(!is_short());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of it");
        is_of(None);
    }
}
