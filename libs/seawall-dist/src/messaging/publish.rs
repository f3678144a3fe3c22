//! What publishers of brokers say about each message.

use std::sync::Arc;
use std::time::Duration;

use seawall::Clock;

use crate::{Message, PublishError};

/// The log lines and metrics of a publisher: the same for every broker. Adapters call it once for each message.
#[derive(Clone, Debug)]
#[cfg_attr(not(any(feature = "metrics", feature = "tracing")), expect(dead_code, reason = "nobody listens"))]
pub struct PublishTelemetry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    #[cfg(feature = "metrics")]
    system: &'static str,
    #[cfg(feature = "tracing")]
    component: Arc<str>,
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    failures: seawall::telemetry::Sampler,
}

impl PublishTelemetry {
    /// Creates the telemetry of a publisher. The component stands in its log lines, such as `Kafka-Publisher`; the system in
    /// its metrics, such as `kafka`.
    #[must_use]
    pub fn new(component: &str, system: &'static str, clock: &Clock) -> Self {
        let _ = (component, system, clock);
        PublishTelemetry(Arc::new(Inner {
            #[cfg(feature = "metrics")]
            system,
            #[cfg(feature = "tracing")]
            component: component.into(),
            #[cfg(feature = "tracing")]
            clock: clock.clone(),
            #[cfg(feature = "tracing")]
            failures: seawall::telemetry::Sampler::new(seawall::telemetry::LINES_PER_SECOND),
        }))
    }

    /// A message is about to be sent.
    pub fn start(&self, message: &Message) {
        let _ = message;
        #[cfg(feature = "tracing")]
        tracing::debug!(target: "seawall", traceId = trace_id(message), eventType = message.event_type(), eventId = message.event_id(),
            aggregateId = message.aggregate_id(), topic = message.topic(),
            "[{}][{}] Start.", self.0.component, super::telemetry::operation(message));
    }

    /// The broker has acknowledged a message. The partition and the offset are for brokers that have them.
    pub fn acknowledged(
        &self,
        message: &Message,
        partition: Option<i32>,
        offset: Option<i64>,
        took: Duration,
    ) {
        let _ = (partition, offset);
        self.count(message, "acknowledged", took);
        #[cfg(feature = "tracing")]
        tracing::info!(target: "seawall", traceId = trace_id(message), eventType = message.event_type(), eventId = message.event_id(),
            aggregateId = message.aggregate_id(), topic = message.topic(), partition, offset,
            duration = %seawall::telemetry::Millis(took),
            "[{}][{}] Success.", self.0.component, super::telemetry::operation(message));
    }

    /// The broker did not take a message, or did not say so.
    pub fn failed(&self, message: &Message, error: &PublishError, took: Duration) {
        self.count(message, if error.fault().is_transient() { "failed" } else { "refused" }, took);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.0.failures.pass(self.0.clock.now()) {
            let (duration, cause) = (seawall::telemetry::Millis(took), error.to_string());
            let operation = super::telemetry::operation(message);
            if error.fault().is_transient() {
                let kind = super::telemetry::class_text(error.fault());
                tracing::warn!(target: "seawall", traceId = trace_id(message), eventType = message.event_type(),
                    eventId = message.event_id(), aggregateId = message.aggregate_id(), topic = message.topic(), %duration, kind, cause,
                    suppressed, "[{}][{operation}] Publish failed, will retry.", self.0.component);
            } else {
                tracing::error!(target: "seawall", traceId = trace_id(message), eventType = message.event_type(),
                    eventId = message.event_id(), aggregateId = message.aggregate_id(), topic = message.topic(), %duration, cause,
                    suppressed, "[{}][{operation}] Publish failed!", self.0.component);
            }
        }
    }

    fn count(&self, message: &Message, outcome: &'static str, took: Duration) {
        let _ = (message, outcome, took);
        #[cfg(feature = "metrics")]
        {
            let labels = [
                ("system", self.0.system.to_owned()),
                ("destination", message.topic().to_owned()),
                ("outcome", outcome.to_owned()),
            ];
            metrics::counter!("messaging.client.sent.messages", &labels).increment(1);
            metrics::histogram!("messaging.client.operation.duration", &labels).record(took.as_secs_f64());
        }
    }
}

/// The trace that a message belongs to, by its header `traceparent`.
#[cfg(feature = "tracing")]
fn trace_id(message: &Message) -> Option<&str> {
    message.header("traceparent").and_then(seawall::telemetry::trace_id_of)
}
