//! The folder: for its owner only, and for one process at a time.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::OpenError;

/// Makes the folder, if it is not there, for its owner only. One that is there is left as it is: somebody may have meant it so.
pub(super) fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Makes the file of the database, if it is not there, for its owner only; its log is made like it.
pub(super) fn make_file_private(path: &Path) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Takes the lock of a folder, for as long as the file is open.
pub(super) fn take_lock(folder: &Path) -> Result<File, OpenError> {
    let lock = OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("lock"));
    let lock = lock
        .map_err(|error| OpenError(format!("can't write to the folder `{}`: {error}", folder.display())))?;
    if is_ours(&lock) {
        return Ok(lock);
    }
    let held = "another process uses it; stop that one, or choose another folder";
    Err(OpenError(format!("can't use the folder `{}`: {held}", folder.display())))
}

/// Asks for the lock of a folder. A process that has just ended may hold it a moment longer, and so may a child that another
/// thread is about to start, so it is asked for more than once.
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
