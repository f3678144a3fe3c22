//! The log lines of a subscription: `[RabbitMQ-Consumer][Subscribe] Success. queue=…`.

use std::fmt::Display;
use std::time::Duration;

/// What a subscription tells about itself. What becomes of each message is told by its processor.
#[derive(Clone, Debug)]
pub(super) struct SubscriptionLog {
    pub(super) component: String,
    pub(super) queue: String,
}

impl SubscriptionLog {
    pub(super) fn subscribed(&self) {
        #[cfg(feature = "tracing")]
        tracing::info!(target: "seawall", queue = self.queue.as_str(), "[{}][Subscribe] Success.", self.component);
        self.touch();
    }

    /// The subscription was lost or refused, and is made again.
    pub(super) fn lost(&self, wait: Duration, cause: &dyn Display) {
        let _ = (wait, cause);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", queue = self.queue.as_str(), wait = %seawall::telemetry::Millis(wait), cause = %cause,
            "[{}][Subscribe] Retry triggered.", self.component);
        self.touch();
    }

    /// The subscription was refused for good.
    pub(super) fn refused(&self, cause: &dyn Display) {
        let _ = cause;
        #[cfg(feature = "tracing")]
        tracing::error!(target: "seawall", queue = self.queue.as_str(), cause = %cause, action = "ManualReview",
            "[{}][Subscribe] Failed!", self.component);
        self.touch();
    }

    /// The consumer has stopped; what it still had was given back.
    pub(super) fn stopped(&self, given_back: usize) {
        let _ = given_back;
        #[cfg(feature = "tracing")]
        tracing::info!(target: "seawall", queue = self.queue.as_str(), givenBack = given_back, "[{}][Stop] Success.", self.component);
        self.touch();
    }

    /// A message could not be passed on to its retry queue or the dead letter queue yet. It stays where it is meanwhile.
    pub(super) fn not_forwarded(&self, event_id: &str, to: &str, wait: Duration, cause: &dyn Display) {
        let _ = (event_id, to, wait, cause);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", queue = self.queue.as_str(), eventId = event_id, to, wait = %seawall::telemetry::Millis(wait),
            cause = %cause, "[{}][Forward] Retry triggered.", self.component);
        self.touch();
    }

    /// The server did not take an acknowledgement, and delivers the message again.
    pub(super) fn not_acknowledged(&self, event_id: &str, cause: &dyn Display) {
        let _ = (event_id, cause);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", queue = self.queue.as_str(), eventId = event_id, cause = %cause,
            "[{}][Acknowledge] Failed, the message comes again.", self.component);
        self.touch();
    }

    /// Reads the fields where there are no lines.
    fn touch(&self) {
        let _ = (&self.component, &self.queue);
    }
}
