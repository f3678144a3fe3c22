//! What is told of events that come in, and of what is registered: numbers for each, a line a second for all.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Histogram, counter, histogram};
use seawall::telemetry::{Millis as Took, Sampler};
use seawall::{Clock, Tick};
use tracing::field::display;
use tracing::{Level, debug, enabled, error, info, warn};

use super::accept::{Accepted, Incoming, NotAccepted};
use super::numbers;
use super::pace::{Pace, Tempo};
use super::rulebook::Made;
use crate::domain::circuit::{Circuit, CircuitState};
use crate::domain::delivery::{DeliveryId, Reason};
use crate::domain::event::Event;
use crate::domain::slug::Slug;
use crate::domain::trace::TraceId;
use crate::port::store::Kept;

/// So many lines of one kind are written in a second at most; the next one says how many were not.
pub(super) const LINES_PER_SECOND: u32 = 20;

/// Watches events come in.
#[derive(Debug)]
pub(super) struct Watch {
    clock: Clock,
    accepted: Counter,
    deduplicated: Counter,
    refused: Counter,
    unmatched: Counter,
    filtered: Counter,
    duration: Histogram,
    tempo: Tempo,
    /// Since the last line.
    known_before: AtomicU64,
    for_nobody: AtomicU64,
    refusals: Sampler,
}

/// An event on its way in.
pub(super) struct Coming {
    id: String,
    trace: Option<TraceId>,
    began: Tick,
}

impl Watch {
    pub(super) fn new(clock: Clock) -> Self {
        let events = |outcome: &'static str| counter!(numbers::EVENTS, "outcome" => outcome);
        Watch {
            clock,
            accepted: events("accepted"),
            deduplicated: events("deduplicated"),
            refused: events("refused"),
            unmatched: counter!(numbers::EVENTS_UNMATCHED),
            filtered: counter!(numbers::EVENTS_FILTERED),
            duration: histogram!(numbers::ACCEPT_DURATION),
            tempo: Tempo::default(),
            known_before: AtomicU64::new(0),
            for_nobody: AtomicU64::new(0),
            refusals: Sampler::new(LINES_PER_SECOND),
        }
    }

    pub(super) fn comes(&self, event: &Incoming) -> Coming {
        let trace = event.trace.as_deref().and_then(TraceId::of);
        Coming { id: event.id.clone(), trace, began: self.clock.precise() }
    }

    /// What became of it.
    pub(super) fn ended(&self, coming: &Coming, answer: &Result<Accepted, NotAccepted>) {
        let took = self.clock.precise().since(coming.began);
        let trace = coming.trace.map(display);
        let accepted = match answer {
            Ok(accepted) => accepted,
            Err(error) => {
                self.refused.increment(1);
                // What the store did not take is told once, by whoever answers.
                if !matches!(error, NotAccepted::Store(_))
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
            self.filtered.increment(u64::from(accepted.tally.filtered));
            if accepted.tally.considered == 0 {
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

    /// The line of the second that has passed.
    pub(super) fn tell(&self) {
        let Some(Pace { count, p50, p99 }) = self.tempo.take() else { return };
        let deduplicated = self.known_before.swap(0, Ordering::Relaxed);
        let unmatched = self.for_nobody.swap(0, Ordering::Relaxed);
        let (p50, p99) = (Took(p50), Took(p99));
        info!(target: "seawall", count, deduplicated, unmatched, %p50, %p99, "[Accept][Event] Success.");
    }
}

/// A delivery has begun. One of which no request can be made is given up at once.
pub(super) fn made(id: DeliveryId, made: &Made, event: &Event) {
    let Err(mistake) = &made.request else { return };
    let (service, rule, reason) = (made.service.as_str(), made.rule.0.as_str(), made.reason().word());
    counter!(numbers::DEAD_LETTERS, "service" => service.to_owned(), "reason" => reason).increment(1);
    let trace = event.trace.as_deref().and_then(TraceId::of).map(display);
    if made.panicked {
        counter!(numbers::QUARANTINED, "service" => service.to_owned(), "cause" => "panic").increment(1);
        error!(
            target: "seawall", traceId = trace, deliveryId = %id, eventId = &*event.id, service, rule, ruleVersion = made.rule.1,
            reason, cause = %mistake, action = "ManualReview", "[Delivery][Quarantine] Failed!"
        );
        return;
    }
    error!(
        target: "seawall", traceId = trace, deliveryId = %id, eventId = &*event.id, service, rule, ruleVersion = made.rule.1,
        reason, cause = %mistake, action = "ManualReview", "[Accept][Render] Failed!"
    );
}

/// A delivery is given up because the process ended while it was handled, again and again.
pub(super) fn quarantined(kept: &Kept, cause: &str) {
    let (service, rule, reason) = (kept.service.as_str(), kept.rule.0.as_str(), Reason::Poison.word());
    counter!(numbers::DEAD_LETTERS, "service" => service.to_owned(), "reason" => reason).increment(1);
    counter!(numbers::QUARANTINED, "service" => service.to_owned(), "cause" => "crash").increment(1);
    let (trace, event, attempt) = (kept.trace.map(display), &*kept.event, kept.progress.failures + 1);
    error!(
        target: "seawall", traceId = trace, deliveryId = %kept.id, eventId = event, service, rule, ruleVersion = kept.rule.1,
        attempt, reason, cause, action = "ManualReview", "[Delivery][Quarantine] Failed!"
    );
}

/// So many deliveries of a service were given up at once, because it, or their rule, was deleted.
pub(super) fn buried(service: &Slug, count: usize) {
    let service = service.as_str().to_owned();
    counter!(numbers::DEAD_LETTERS, "service" => service, "reason" => Reason::Deleted.word())
        .increment(count as u64);
}

/// A circuit has moved, by itself or by hand.
pub(super) fn circuit_moved(circuit: &Circuit) {
    let Circuit { service, state, until, trips, reason, .. } = circuit;
    let (service, until, reason) = (service.as_str(), until.map(display), reason.as_deref());
    match state {
        CircuitState::Open => {
            let cause = reason.unwrap_or("too many of the last sends failed");
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
