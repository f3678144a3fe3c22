//! The log lines of a connection: `[NATS-Connection][Connect] Success.`.

use std::time::Duration;

use seawall::Clock;
#[cfg(feature = "tracing")]
use seawall::telemetry::{LINES_PER_SECOND, Millis, Sampler};
#[cfg(feature = "tracing")]
use tracing::{error, info, warn};

/// The log of one connection. A server that is away for long costs a line per attempt, and no more than the sampler allows.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    sampler: Sampler,
}

#[cfg(feature = "tracing")]
impl ConnectionLog {
    pub(super) fn new(clock: Clock) -> Self {
        ConnectionLog { clock, sampler: Sampler::new(LINES_PER_SECOND) }
    }

    pub(super) fn connected(&self) {
        info!(target: "seawall", "[NATS-Connection][Connect] Success.");
    }

    pub(super) fn disconnected(&self) {
        warn!(target: "seawall", "[NATS-Connection][Connect] Connection lost, will reconnect.");
    }

    /// Writes that an attempt to connect failed. Refused credentials need a person.
    pub(super) fn failed(&self, cause: &str, refused: bool, pause: Option<Duration>) {
        let Some(suppressed) = self.sampler.pass(self.clock.now()) else { return };
        let wait = pause.map(|pause| tracing::field::display(Millis(pause)));
        if refused {
            error!(target: "seawall", cause, wait, action = "ManualReview", suppressed, "[NATS-Connection][Connect] Credentials refused!");
        } else {
            warn!(target: "seawall", cause, wait, suppressed, "[NATS-Connection][Connect] Failed! Retry triggered.");
        }
    }

    pub(super) fn refused(&self, cause: &str) {
        let Some(suppressed) = self.sampler.pass(self.clock.now()) else { return };
        error!(target: "seawall", cause, action = "ManualReview", suppressed, "[NATS-Connection][Permission] Refused by the server!");
    }

    pub(super) fn slow_consumer(&self, subscription: u64) {
        let Some(suppressed) = self.sampler.pass(self.clock.now()) else { return };
        warn!(target: "seawall", subscription, suppressed, "[NATS-Connection][Receive] Slow consumer, messages are delivered again.");
    }
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "there are lines with the feature `tracing`")]
impl ConnectionLog {
    pub(super) fn new(_: Clock) -> Self {
        ConnectionLog {}
    }

    pub(super) fn connected(&self) {}

    pub(super) fn disconnected(&self) {}

    pub(super) fn failed(&self, _: &str, _: bool, _: Option<Duration>) {}

    pub(super) fn refused(&self, _: &str) {}

    pub(super) fn slow_consumer(&self, _: u64) {}
}
