//! What is told of the store.

use std::sync::atomic::{AtomicBool, Ordering};

use seawall::Clock;
use seawall::telemetry::Sampler;
use tracing::{info, warn};

use super::address::Address;
use super::connect::ConnectError;

/// Logs when the database is gone, and when it is there again.
pub(in crate::postgres) struct ConnectTelemetry {
    clock: Clock,
    away: AtomicBool,
    line: Sampler,
}

impl ConnectTelemetry {
    pub(in crate::postgres) fn new(clock: Clock) -> Self {
        ConnectTelemetry { clock, away: AtomicBool::new(false), line: Sampler::new(1) }
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
