//! Telemetry of events that come in: metrics for each, a log line for each failure, and one a second for the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Histogram, counter, histogram};
use seawall::telemetry::{Millis as Took, Sampler};
use seawall::{Clock, Tick};
use tracing::field::display;
use tracing::{Level, debug, enabled, error, info, warn};

use super::content::{AcceptError, AcceptedEvent, IncomingEvent};
use super::rule_set::RenderedDelivery;
use crate::domain::delivery::DeliveryId;
use crate::domain::event::Event;
use crate::domain::trace::TraceId;
use crate::metric_names;
use crate::service::ops::latency::{LINES_PER_SECOND, LatencyRecorder, LatencySummary};

/// Counts and logs incoming events.
#[derive(Debug)]
pub(in crate::service) struct AcceptTelemetry {
    clock: Clock,
    accepted: Counter,
    deduplicated: Counter,
    refused: Counter,
    unmatched: Counter,
    filtered: Counter,
    duration: Histogram,
    latency: LatencyRecorder,
    /// The repeated events since the last line.
    known_before: AtomicU64,
    for_nobody: AtomicU64,
    refusals: Sampler,
}

/// Measures one event from its arrival.
pub(in crate::service) struct AcceptTimer {
    id: String,
    trace: Option<TraceId>,
    began: Tick,
}

impl AcceptTelemetry {
    pub(in crate::service) fn new(clock: Clock) -> Self {
        let events = |outcome: &'static str| counter!(metric_names::EVENTS, "outcome" => outcome);
        AcceptTelemetry {
            clock,
            accepted: events("accepted"),
            deduplicated: events("deduplicated"),
            refused: events("refused"),
            unmatched: counter!(metric_names::EVENTS_UNMATCHED),
            filtered: counter!(metric_names::EVENTS_FILTERED),
            duration: histogram!(metric_names::ACCEPT_DURATION),
            latency: LatencyRecorder::default(),
            known_before: AtomicU64::new(0),
            for_nobody: AtomicU64::new(0),
            refusals: Sampler::new(LINES_PER_SECOND),
        }
    }

    pub(in crate::service) fn comes(&self, event: &IncomingEvent) -> AcceptTimer {
        let trace = event.trace.as_deref().and_then(TraceId::of);
        AcceptTimer { id: event.id.clone(), trace, began: self.clock.precise() }
    }

    /// Records the outcome of an event.
    pub(in crate::service) fn ended(
        &self,
        coming: &AcceptTimer,
        answer: &Result<AcceptedEvent, AcceptError>,
    ) {
        let took = self.clock.precise().since(coming.began);
        let trace = coming.trace.map(display);
        let accepted = match answer {
            Ok(accepted) => accepted,
            Err(error) => {
                self.refused.increment(1);
                // A failure of the store is logged once, with the answer to the request.
                if !matches!(error, AcceptError::Store(_))
                    && let Some(suppressed) = self.refusals.pass(self.clock.now())
                {
                    let event = &*coming.id;
                    warn!(target: "seawall", traceId = trace, eventId = event, cause = %error, suppressed, "[Accept][Event] Failed!");
                }
                return;
            }
        };
        self.duration.record(took);
        self.latency.add(took);
        if accepted.deduplicated {
            self.deduplicated.increment(1);
            self.known_before.fetch_add(1, Ordering::Relaxed);
        } else {
            self.accepted.increment(1);
            self.filtered.increment(u64::from(accepted.counts.filtered));
            if accepted.counts.considered == 0 {
                self.unmatched.increment(1);
                self.for_nobody.fetch_add(1, Ordering::Relaxed);
            }
        }
        if enabled!(target: "seawall", Level::DEBUG) {
            let (event, deliveries, deduplicated) =
                (&*accepted.id, accepted.deliveries.len(), accepted.deduplicated);
            let duration = Took(took);
            debug!(target: "seawall", traceId = trace, eventId = event, deliveries, deduplicated, %duration, "[Accept][Event] Success.");
        }
    }

    /// Logs the line of the last second.
    pub(in crate::service) fn report(&self) {
        let Some(LatencySummary { count, p50, p99 }) = self.latency.take() else { return };
        let deduplicated = self.known_before.swap(0, Ordering::Relaxed);
        let unmatched = self.for_nobody.swap(0, Ordering::Relaxed);
        let (p50, p99) = (Took(p50), Took(p99));
        info!(target: "seawall", count, deduplicated, unmatched, %p50, %p99, "[Accept][Event] Success.");
    }
}

/// Records a new delivery. One without a request is a dead letter at once.
pub(in crate::service) fn rendered(id: DeliveryId, rendered: &RenderedDelivery, event: &Event) {
    let Err(mistake) = &rendered.request else { return };
    let (service, rule, reason) =
        (rendered.service.as_str(), rendered.rule.0.as_str(), rendered.reason().word());
    counter!(metric_names::DEAD_LETTERS, "service" => service.to_owned(), "reason" => reason).increment(1);
    let trace = event.trace.as_deref().and_then(TraceId::of).map(display);
    if rendered.panicked {
        counter!(metric_names::QUARANTINED, "service" => service.to_owned(), "cause" => "panic").increment(1);
        error!(
            target: "seawall", traceId = trace, deliveryId = %id, eventId = &*event.id, service, rule, ruleVersion = rendered.rule.1,
            reason, cause = %mistake, action = "ManualReview", "[Delivery][Quarantine] Failed!"
        );
        return;
    }
    error!(
        target: "seawall", traceId = trace, deliveryId = %id, eventId = &*event.id, service, rule, ruleVersion = rendered.rule.1,
        reason, cause = %mistake, action = "ManualReview", "[Accept][Render] Failed!"
    );
}
