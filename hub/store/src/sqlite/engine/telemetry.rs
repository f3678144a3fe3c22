//! What is told of the disk of the database: its free space, and how much of it is used.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use metrics::gauge;
use seawall::Clock;
use seawall_hub_core::metric_names;
use seawall_hub_core::port::store::StoreHealth;

use crate::telemetry::AnswerTelemetry;

/// Logs whether there is room on the disk, and measures it.
pub(crate) struct DiskTelemetry {
    answers: AnswerTelemetry,
    database: PathBuf,
    wal: PathBuf,
}

impl DiskTelemetry {
    /// Watches the disk of the database at this path.
    pub(crate) fn new(database: &Path, clock: Clock) -> Self {
        let mut wal = database.as_os_str().to_owned();
        wal.push("-wal");
        DiskTelemetry { answers: AnswerTelemetry::new(clock), database: database.to_owned(), wal: wal.into() }
    }

    /// Returns the health of the store; `refused` units found their lane full.
    pub(crate) fn health(&self, refused: u64) -> StoreHealth {
        self.answers.health(refused, self.free())
    }

    /// Returns the free space for users who may not use the last of it.
    #[cfg(unix)]
    fn free(&self) -> Option<u64> {
        let found = rustix::fs::statvfs(self.database.parent()?).ok()?;
        Some(found.f_bavail.saturating_mul(found.f_frsize))
    }

    #[cfg(not(unix))]
    fn free(&self) -> Option<u64> {
        None
    }

    pub(crate) fn record_gauges(&self, waiting: [usize; 4]) {
        self.answers.record_queue(waiting);
        let size = |path: &Path| fs::metadata(path).map_or(0, |file| file.len()) as f64;
        gauge!(metric_names::STORE_WAL).set(size(&self.wal));
        if let Some(free) = self.free() {
            gauge!(metric_names::STORE_FREE).set(free as f64);
        }
        gauge!(metric_names::STORE_SIZE).set(size(&self.database));
    }
}

impl Deref for DiskTelemetry {
    type Target = AnswerTelemetry;

    fn deref(&self) -> &AnswerTelemetry {
        &self.answers
    }
}
