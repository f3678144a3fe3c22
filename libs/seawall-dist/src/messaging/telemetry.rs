//! What consumers and publishers do as log lines and as numbers.

use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, Fault};

use super::{DeathReason, Delivery};

#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

/// The names are those that OpenTelemetry has for messaging.
#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
    (
        "messaging.process.duration",
        Measure::Histogram,
        &["system", "destination", "outcome"],
        "time that handlers take",
    ),
    (
        "messaging.client.consumed.messages",
        Measure::Counter,
        &["system", "destination", "outcome"],
        "messages that were processed, by what came of them",
    ),
    (
        "messaging.client.sent.messages",
        Measure::Counter,
        &["system", "destination", "outcome"],
        "messages that were published, or were not",
    ),
    (
        "messaging.client.operation.duration",
        Measure::Histogram,
        &["system", "destination", "outcome"],
        "time until the broker acknowledged a message",
    ),
    (
        "messaging.dead_letters.taken",
        Measure::Counter,
        &["system", "destination"],
        "dead letters that were taken over from a broker",
    ),
];

/// The telemetry of one consumer.
#[derive(Debug)]
pub(super) struct Telemetry {
    #[cfg(feature = "metrics")]
    system: &'static str,
    #[cfg(feature = "tracing")]
    component: Arc<str>,
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    samplers: [seawall::telemetry::Sampler; 4],
}

/// Writes a line about a delivery: trace, event and position are in each of them.
#[cfg(feature = "tracing")]
macro_rules! line {
    ($level:ident, $self:expr, $delivery:expr, { $($field:tt)* }, $($text:tt)*) => {{
        let (delivery, message): (&Delivery, _) = ($delivery, $delivery.message());
        tracing::$level!(target: "seawall", traceId = delivery.trace_id(), eventType = message.event_type(),
            eventId = message.event_id(), aggregateId = message.aggregate_id(), place = delivery.place(),
            partition = delivery.position("partition"), offset = delivery.position("offset"),
            sequence = delivery.position("sequence"), deliveryTag = delivery.position("deliveryTag"),
            attempt = delivery.attempt(), $($field)* "[{}][{}] {}", $self.component, operation(message), format_args!($($text)*));
    }};
}

impl Telemetry {
    pub(super) fn new(component: &Arc<str>, system: &'static str, clock: &Clock) -> Self {
        let _ = (component, system, clock);
        Telemetry {
            #[cfg(feature = "metrics")]
            system,
            #[cfg(feature = "tracing")]
            component: Arc::clone(component),
            #[cfg(feature = "tracing")]
            clock: clock.clone(),
            #[cfg(feature = "tracing")]
            samplers: [(); 4]
                .map(|()| seawall::telemetry::Sampler::new(seawall::telemetry::LINES_PER_SECOND)),
        }
    }

    /// Whether a line of this kind may be written, and how many were left out before it.
    #[cfg(feature = "tracing")]
    fn passes(&self, kind: usize) -> Option<Option<u64>> {
        self.samplers[kind].pass(self.clock.now())
    }

    fn count(&self, delivery: &Delivery, outcome: &'static str, took: Duration) {
        let _ = (delivery, outcome, took);
        #[cfg(feature = "metrics")]
        {
            let labels = [
                ("system", self.system.to_owned()),
                ("destination", delivery.place().to_owned()),
                ("outcome", outcome.to_owned()),
            ];
            metrics::counter!("messaging.client.consumed.messages", &labels).increment(1);
            metrics::histogram!("messaging.process.duration", &labels).record(took.as_secs_f64());
        }
    }

    pub(super) fn received(&self, delivery: &Delivery) {
        let _ = delivery;
        #[cfg(feature = "tracing")]
        line!(info, self, delivery, {}, "Received.");
    }

    pub(super) fn done(&self, delivery: &Delivery, took: Duration) {
        self.count(delivery, "processed", took);
        #[cfg(feature = "tracing")]
        line!(info, self, delivery, { duration = %seawall::telemetry::Millis(took), }, "Processed success.");
    }

    pub(super) fn duplicate(&self, delivery: &Delivery, took: Duration) {
        self.count(delivery, "duplicate", took);
        #[cfg(feature = "tracing")]
        line!(info, self, delivery, { action = "Acknowledge", }, "Processed before.");
    }

    pub(super) fn failed(&self, delivery: &Delivery, fault: Fault, cause: &str, took: Duration) {
        let _ = (fault, cause);
        self.count(delivery, "failed", took);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.passes(0) {
            let duration = seawall::telemetry::Millis(took);
            if fault.class() == seawall::fault::Class::System {
                line!(error, self, delivery, { %duration, cause, action = "Retry", suppressed, }, "Processing failed!");
            } else {
                line!(warn, self, delivery, { %duration, cause, action = "Retry", suppressed, }, "{}, will retry.", class_text(fault));
            }
        }
    }

    pub(super) fn released(&self, delivery: &Delivery, cause: &str, after: Duration, took: Duration) {
        let _ = (cause, after);
        self.count(delivery, "released", took);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.passes(1) {
            let delay = seawall::telemetry::Millis(after);
            line!(warn, self, delivery, { %delay, cause, action = "Release", suppressed, }, "Not attempted, given back.");
        }
    }

    pub(super) fn died(&self, delivery: &Delivery, reason: DeathReason, cause: &str, took: Duration) {
        let _ = cause;
        self.count(delivery, outcome_of(reason), took);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.passes(2) {
            let text = match reason {
                DeathReason::Invalid => "Validation failed, sending to dead letters.",
                DeathReason::Refused => "Refused, sending to dead letters.",
                DeathReason::Attempts => "Attempts exhausted, sending to dead letters.",
                DeathReason::Crashes => "Delivered too often, sending to dead letters.",
                DeathReason::Unknown => "Outcome unknown, sending to dead letters.",
            };
            let duration = seawall::telemetry::Millis(took);
            line!(error, self, delivery, { %duration, reason = reason.name(), cause, action = "DeadLetter", suppressed, }, "{text}");
        }
    }
}

fn outcome_of(reason: DeathReason) -> &'static str {
    match reason {
        DeathReason::Invalid => "dead_invalid",
        DeathReason::Refused => "dead_refused",
        DeathReason::Attempts => "dead_attempts",
        DeathReason::Crashes => "dead_crashes",
        DeathReason::Unknown => "dead_unknown",
    }
}

/// The operation in a log line: the event type.
#[cfg(feature = "tracing")]
pub(super) fn operation(message: &crate::Message) -> &str {
    Some(message.event_type()).filter(|event_type| !event_type.is_empty()).unwrap_or("Message")
}

/// The kind of a failure in the order in which adapters handle them: I/O, timeout, protocol.
#[cfg(feature = "tracing")]
pub(super) fn class_text(fault: Fault) -> &'static str {
    match fault.class() {
        seawall::fault::Class::Business => "Refused",
        seawall::fault::Class::Io => "I/O error",
        seawall::fault::Class::Timeout => "Timeout",
        seawall::fault::Class::Protocol => "Protocol error",
        _ => "Failed",
    }
}

#[cfg(all(test, feature = "metrics"))]
mod tests {
    /// OBS-2: names do not change by accident.
    #[test]
    fn obs_2_the_names_of_the_metrics_begin_alike() {
        assert!(super::METRICS.iter().all(|(name, ..)| name.starts_with("messaging.")));
    }
}
