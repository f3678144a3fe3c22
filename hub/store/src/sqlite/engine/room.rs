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

/// The size of the test file: more than what is left where a page of the database finds no room.
const TRIED: usize = 64 * 1024;

/// What a writer looks at when a write has failed.
struct WriterPlace {
    folder: PathBuf,
    clock: Clock,
}

thread_local! {
    /// The folder that this thread writes to and its clock, because SQLite's callback has no argument for them.
    static PLACE: RefCell<Option<WriterPlace>> = const { RefCell::new(None) };
    /// When there was no room the last time.
    static SHORT: Cell<Option<Tick>> = const { Cell::new(None) };
}

/// The time after a lack of room in which another failed write counts as such: somebody may have made room before it could be
/// tested.
const LATELY: Duration = Duration::from_secs(10);

/// Sets the database that this thread writes to.
pub(crate) fn is_of(database: Option<&str>, clock: &Clock) {
    let folder = database.and_then(|path| Path::new(path).parent());
    PLACE.with_borrow_mut(|place| {
        *place = folder.map(|folder| WriterPlace { folder: folder.to_owned(), clock: clock.clone() });
    });
}

/// Whether the disk that this thread writes to is full, or was a moment ago.
pub(crate) fn is_short() -> bool {
    PLACE.with_borrow(|place| {
        let Some(WriterPlace { folder, clock }) = place else { return false };
        let now = clock.precise();
        if is_out_of_room(&tried(folder)) {
            SHORT.set(Some(now));
        }
        is_recent(SHORT.get(), now)
    })
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
        // No place is known yet, so there is room.
        assert!(!is_short());
        let folder = tempfile::TempDir::new().unwrap();
        is_of(folder.path().join("seawall.db").to_str(), &Clock::system());
        assert!(!is_short());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left of it");
        is_of(None, &Clock::system());
    }

    /// PRM-8: room that has come back between the write that failed and the look was missing all the same.
    #[test]
    fn prm_8_room_that_was_missing_a_moment_ago_was_missing() {
        let now = Clock::system().precise();
        assert!(is_recent(Some(now), now) && is_recent(Some(now), now + LATELY / 2));
        assert!(!is_recent(Some(now), now + LATELY) && !is_recent(None, now));
    }
}
