//! Whether a write has failed for want of room.
//!
//! # Why try it out?
//! That the disk is full SQLite says itself. A quota that is used up it takes for any other write that fails, and what the system
//! called it can't be asked for safely. So something is written beside the database, and the system says it again.
//!
//! A write that fails is not a `fsync` that fails: nothing that was acknowledged hangs on it, the transaction is taken back, and
//! the next one writes the same place again.

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use seawall::{Clock, Tick};

/// More than is left where a page of the database finds no room.
const TRIED: usize = 64 * 1024;

thread_local! {
    /// The folder that this thread writes to. What SQLite calls back can be told nothing.
    static FOLDER: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    /// When there was none the last time.
    static SHORT: Cell<Option<Tick>> = const { Cell::new(None) };
}

/// A write that fails so soon after there was no room has failed for want of it: somebody may have made room before it could be tried
/// out.
const LATELY: Duration = Duration::from_secs(10);

/// From now on this thread writes to this database.
pub(super) fn is_of(database: Option<&str>) {
    let folder = database.and_then(|path| Path::new(path).parent()).map(Path::to_owned);
    FOLDER.with_borrow_mut(|of| *of = folder);
}

/// Whether there is none left where this thread writes to, or was none a moment ago.
pub(super) fn is_short() -> bool {
    let now = Clock::system().precise();
    if FOLDER.with_borrow(|folder| folder.as_deref().is_some_and(|folder| is_out_of_room(&tried(folder)))) {
        SHORT.set(Some(now));
    }
    is_recent(SHORT.get(), now)
}

fn is_recent(short: Option<Tick>, now: Tick) -> bool {
    short.is_some_and(|short| now.since(short) < LATELY)
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

    /// PRM-8: room that has come back between the write that failed and the look was missing all the same.
    #[test]
    fn prm_8_room_that_was_missing_a_moment_ago_was_missing() {
        let now = Clock::system().precise();
        assert!(is_recent(Some(now), now) && is_recent(Some(now), now + LATELY / 2));
        assert!(!is_recent(Some(now), now + LATELY) && !is_recent(None, now));
    }
}
