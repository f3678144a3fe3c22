//! The bound on the bytes of a spool.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts bytes against the bound: those in the folder, as they were counted last, and those that are being written.
#[derive(Debug)]
pub(super) struct Room {
    bytes_max: u64,
    /// The bytes in the folder when they were last counted.
    counted: AtomicU64,
    /// The bytes of files that are being written by this process.
    staged: AtomicU64,
}

impl Room {
    pub(super) fn new(bytes_max: u64) -> Self {
        Room { bytes_max, counted: AtomicU64::new(0), staged: AtomicU64::new(0) }
    }

    pub(super) fn counted(&self, bytes: u64) {
        self.counted.store(bytes, Ordering::Relaxed);
    }

    /// Takes room for so many bytes, or says that the spool is full.
    pub(super) fn take(&self, bytes: u64) -> io::Result<()> {
        let staged = self.staged.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if self.counted.load(Ordering::Relaxed).saturating_add(staged) <= self.bytes_max {
            return Ok(());
        }
        self.give_back(bytes);
        let text = format!("the spool is full: it may have {} bytes", self.bytes_max);
        Err(io::Error::new(io::ErrorKind::QuotaExceeded, text))
    }

    pub(super) fn give_back(&self, bytes: u64) {
        self.staged.fetch_sub(bytes, Ordering::Relaxed);
    }
}
