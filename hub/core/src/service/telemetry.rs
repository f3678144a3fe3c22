//! What is told of events that come in, and of what is registered: numbers for each, a line a second for all.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Histogram, counter, histogram};
use seawall::telemetry::{Millis as Took, Sampler};
use seawall::{Clock, Tick};
use tracing::field::display;
use tracing::{Level, debug, enabled, error, info, warn};

use super::accept::{AcceptError, AcceptedEvent, IncomingEvent};
use super::latency::{LatencyRecorder, LatencySummary};
use super::metric_names;
use super::rule_set::RenderedDelivery;
use crate::domain::circuit::{Circuit, CircuitState};
use crate::domain::delivery::{DeadLetterReason, DeliveryId};
use crate::domain::event::Event;
use crate::domain::slug::Slug;
use crate::domain::trace::TraceId;
use crate::port::store::StoredDelivery;

/// The maximum number of lines of one kind in a second; the next one says how many were left out.
pub(super) const LINES_PER_SECOND: u32 = 20;

/// Counts and logs incoming events.
#[derive(Debug)]
pub(super) struct AcceptTelemetry {
    clock: Clock,
    accepted: Counter,
    deduplicated: Counter,
    refused: Counter,
    unmatched: Counter,
    filtered: Counter,
    duration: Histogram,
    tempo: LatencyRecorder,
    /// The repeated events since the last line.
    known_before: AtomicU64,
    for_nobody: AtomicU64,
    refusals: Sampler,
}

/// Measures one event from its arrival.
pub(super) struct AcceptTimer {
    id: String,
    trace: Option<TraceId>,
    began: Tick,
}

impl AcceptTelemetry {
    pub(super) fn new(clock: Clock) -> Self {
        let events = |outcome: &'static str| counter!(metric_names::EVENTS, "outcome" => outcome);
        AcceptTelemetry {
            clock,
            accepted: events("accepted"),
            deduplicated: events("deduplicated"),
            refused: events("refused"),
            unmatched: counter!(metric_names::EVENTS_UNMATCHED),
            filtered: counter!(metric_names::EVENTS_FILTERED),
            duration: histogram!(metric_names::ACCEPT_DURATION),
            tempo: LatencyRecorder::default(),
            known_before: AtomicU64::new(0),
            for_nobody: AtomicU64::new(0),
            refusals: Sampler::new(LINES_PER_SECOND),
        }
    }

    pub(super) fn comes(&self, event: &IncomingEvent) -> AcceptTimer {
        let trace = event.trace.as_deref().and_then(TraceId::of);
        AcceptTimer { id: event.id.clone(), trace, began: self.clock.precise() }
    }

    /// Records the outcome of an event.
    pub(super) fn ended(&self, coming: &AcceptTimer, answer: &Result<AcceptedEvent, AcceptError>) {
        let took = self.clock.precise().since(coming.began);
        let trace = coming.trace.map(display);
        let accepted = match answer {
            Ok(accepted) => accepted,
            Err(error) => {
                self.refused.increment(1);
                // What the store did not take is told once, by whoever answers.
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
        self.tempo.add(took);
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
    pub(super) fn report(&self) {
        let Some(LatencySummary { count, p50, p99 }) = self.tempo.take() else { return };
        let deduplicated = self.known_before.swap(0, Ordering::Relaxed);
        let unmatched = self.for_nobody.swap(0, Ordering::Relaxed);
        let (p50, p99) = (Took(p50), Took(p99));
        info!(target: "seawall", count, deduplicated, unmatched, %p50, %p99, "[Accept][Event] Success.");
    }
}

/// Records a new delivery. One without a request is a dead letter at once.
pub(super) fn rendered(id: DeliveryId, rendered: &RenderedDelivery, event: &Event) {
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

/// Logs that a delivery is quarantined, because it crashed the process repeatedly.
pub(super) fn quarantined(kept: &StoredDelivery, cause: &str) {
    let (service, rule, reason) =
        (kept.service.as_str(), kept.rule.0.as_str(), DeadLetterReason::Poison.word());
    counter!(metric_names::DEAD_LETTERS, "service" => service.to_owned(), "reason" => reason).increment(1);
    counter!(metric_names::QUARANTINED, "service" => service.to_owned(), "cause" => "crash").increment(1);
    let (trace, event, attempt) = (kept.trace.map(display), &*kept.event, kept.progress.failures + 1);
    error!(
        target: "seawall", traceId = trace, deliveryId = %kept.id, eventId = event, service, rule, ruleVersion = kept.rule.1,
        attempt, reason, cause, action = "ManualReview", "[Delivery][Quarantine] Failed!"
    );
}

/// Logs that deliveries of a service were dead-lettered, because it or their rule was deleted.
pub(super) fn dead_lettered(service: &Slug, count: usize) {
    let service = service.as_str().to_owned();
    counter!(metric_names::DEAD_LETTERS, "service" => service, "reason" => DeadLetterReason::Deleted.word())
        .increment(count as u64);
}

/// Logs that a circuit has changed, by itself or manually.
pub(super) fn circuit_moved(circuit: &Circuit) {
    let Circuit { service, state, until, trips, reason, .. } = circuit;
    let (service, until, reason) = (service.as_str(), until.map(display), reason.as_deref());
    match state {
        CircuitState::Open => {
            let cause = reason.unwrap_or("too many of the last attempts failed");
            error!(target: "seawall", service, until, trips, cause, action = "QueueForRetry", "[Circuit][Open] Failed!");
        }
        CircuitState::HalfOpen => warn!(target: "seawall", service, "[Circuit][HalfOpen] Start."),
        CircuitState::Closed => info!(target: "seawall", service, reason, "[Circuit][Close] Success."),
        CircuitState::ForcedOpen => {
            warn!(target: "seawall", service, reason, action = "QueueForRetry", "[Circuit][ForceOpen] Success.");
        }
        CircuitState::ForcedClosed => {
            warn!(target: "seawall", service, reason, "[Circuit][ForceClose] Success.");
        }
    }
}
