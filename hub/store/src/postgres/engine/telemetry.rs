//! What is told of the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use seawall::Clock;
use seawall::telemetry::Sampler;
use tracing::{info, warn};

use super::address::Address;
use super::connect::ConnectError;

/// Logs when the database is gone, and when it is there again.
pub(in crate::postgres) struct ConnectTelemetry {
    clock: Clock,
    away: AtomicBool,
    open: AtomicUsize,
    line: Sampler,
}

impl ConnectTelemetry {
    pub(in crate::postgres) fn new(clock: Clock) -> Self {
        ConnectTelemetry {
            clock,
            away: AtomicBool::new(false),
            open: AtomicUsize::new(0),
            line: Sampler::new(1),
        }
    }

    /// Counts a connection until the guard is dropped.
    pub(in crate::postgres) fn open(self: &Arc<Self>) -> OpenConnection {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self.clone())
    }

    /// Returns the number of open connections.
    pub(in crate::postgres) fn count(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Records a connection.
    pub(in crate::postgres) fn connected(&self) {
        if self.away.swap(false, Ordering::Relaxed) {
            info!(target: "seawall", "[Store][Connect] Success.");
        }
    }

    /// Records that a connection could not be made. It is tried again.
    pub(in crate::postgres) fn not_connected(&self, address: &Address, error: &ConnectError) {
        self.away.store(true, Ordering::Relaxed);
        if let Some(suppressed) = self.line.pass(self.clock.now()) {
            let cause = error.explained(address);
            warn!(target: "seawall", %cause, suppressed, "[Store][Connect] Retry triggered.");
        }
    }
}

/// A connection that is counted.
pub(in crate::postgres) struct OpenConnection(Arc<ConnectTelemetry>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
