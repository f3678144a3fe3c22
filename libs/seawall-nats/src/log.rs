//! The log lines of what pulls: `[NATS-Consumer][Subscribe] Success.`.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;
#[cfg(feature = "tracing")]
use seawall::telemetry::{LINES_PER_SECOND, Millis, Sampler};
#[cfg(feature = "tracing")]
use tracing::{error, info, warn};

use crate::NatsError;
use crate::pull::PullTarget;

/// The log of one consumer, collector or intake.
#[derive(Debug)]
pub(crate) struct ConsumerLog {
    #[cfg(feature = "tracing")]
    component: Arc<str>,
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    sampler: Sampler,
}

#[cfg(feature = "tracing")]
impl ConsumerLog {
    pub(crate) fn new(component: impl Into<Arc<str>>, clock: &Clock) -> Self {
        let sampler = Sampler::new(LINES_PER_SECOND);
        ConsumerLog { component: component.into(), clock: clock.clone(), sampler }
    }

    pub(crate) fn subscribed(&self, target: &PullTarget) {
        info!(target: "seawall", stream = &*target.stream, consumer = &*target.consumer, "[{}][Subscribe] Success.", self.component);
    }

    pub(crate) fn interrupted(&self, target: &PullTarget, cause: &NatsError, wait: Duration) {
        let Some(suppressed) = self.sampler.pass(self.clock.now()) else { return };
        warn!(target: "seawall", stream = &*target.stream, consumer = &*target.consumer, %cause, wait = %Millis(wait), suppressed,
            "[{}][Subscribe] Retry triggered.", self.component);
    }

    pub(crate) fn ended(&self, target: &PullTarget, cause: &NatsError) {
        error!(target: "seawall", stream = &*target.stream, consumer = &*target.consumer, %cause, action = "ManualReview",
            "[{}][Subscribe] Failed!", self.component);
    }

    /// A request about one message failed: an acknowledgement, or the storing of a letter.
    pub(crate) fn failed(&self, operation: &str, target: &PullTarget, sequence: u64, cause: &dyn Display) {
        let Some(suppressed) = self.sampler.pass(self.clock.now()) else { return };
        warn!(target: "seawall", stream = &*target.stream, consumer = &*target.consumer, sequence, %cause, suppressed,
            "[{}][{operation}] Failed! The message is delivered again.", self.component);
    }

    /// A message is in the dead letters.
    pub(crate) fn buried(&self, stream: &str, consumer: &str, sequence: u64, reason: &str) {
        error!(target: "seawall", stream, consumer, sequence, reason, action = "ManualReview", "[{}][DeadLetter] Stored.", self.component);
    }

    /// A message is in the dead letters without its payload.
    pub(crate) fn gone(&self, stream: &str, consumer: &str, sequence: u64) {
        error!(target: "seawall", stream, consumer, sequence, action = "ManualReview",
            "[{}][DeadLetter] Stored without payload! The stream has removed the message.", self.component);
    }

    pub(crate) fn stopped(&self, target: &PullTarget, returned: usize, aborted: usize) {
        info!(target: "seawall", stream = &*target.stream, consumer = &*target.consumer, returned, aborted, "[{}][Stop] Success.", self.component);
    }
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "there are lines with the feature `tracing`")]
impl ConsumerLog {
    pub(crate) fn new(_: impl Into<Arc<str>>, _: &Clock) -> Self {
        ConsumerLog {}
    }

    pub(crate) fn subscribed(&self, _: &PullTarget) {}

    pub(crate) fn interrupted(&self, _: &PullTarget, _: &NatsError, _: Duration) {}

    pub(crate) fn ended(&self, _: &PullTarget, _: &NatsError) {}

    pub(crate) fn failed(&self, _: &str, _: &PullTarget, _: u64, _: &dyn Display) {}

    pub(crate) fn buried(&self, _: &str, _: &str, _: u64, _: &str) {}

    pub(crate) fn gone(&self, _: &str, _: &str, _: u64) {}

    pub(crate) fn stopped(&self, _: &PullTarget, _: usize, _: usize) {}
}
