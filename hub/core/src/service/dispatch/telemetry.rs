//! Telemetry of the deliveries of one service: metrics for each, a log line for each failure, and one a second for the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Histogram, counter, histogram};
use seawall::Tick;
use seawall::telemetry::{Millis as Took, Sampler};
use seawall_dist::deadletter::Attempt;
use tracing::field::display;
use tracing::{Level, debug, enabled, error, info, warn};

use super::load::PendingDelivery;
use crate::domain::circuit::{Circuit, CircuitState};
use crate::domain::delivery::{DeadLetterReason, Decision, Disposition, ErrorType, Outcome};
use crate::domain::slug::Slug;
use crate::metric_names;
use crate::port::store::StoredDelivery;
use crate::service::ops::latency::{LINES_PER_SECOND, LatencyRecorder, LatencySummary};

/// Counts and logs the deliveries of one service.
#[derive(Debug)]
pub(super) struct DeliveryTelemetry {
    service: Slug,
    attempts: [Counter; ErrorType::ALL.len()],
    duration: Histogram,
    /// Deliveries on the first attempt, and later.
    delivered: [Counter; 2],
    dead: [Counter; 2],
    retried: [Counter; 2],
    deferred: Counter,
    held: Counter,
    letters: [Counter; DeadLetterReason::ALL.len()],
    /// Gateway calls: successes on the first attempt and later, and failures.
    called: [[Counter; 2]; 2],
    quarantined: Counter,
    latency: LatencyRecorder,
    /// The retries since the last line.
    later: AtomicU64,
    refused: AtomicU64,
    retries: Sampler,
    failures: Sampler,
}

impl DeliveryTelemetry {
    pub(super) fn new(service: &Slug) -> Self {
        let name = || service.as_str().to_owned();
        let became = |outcome: &'static str, retried: &'static str| counter!(metric_names::DELIVERIES, "service" => name(), "outcome" => outcome, "retried" => retried);
        let both = |outcome| [became(outcome, "false"), became(outcome, "true")];
        DeliveryTelemetry {
            attempts: ErrorType::ALL
                .map(|kind| counter!(metric_names::ATTEMPTS, "service" => name(), "error.type" => kind.word())),
            duration: histogram!(metric_names::CLIENT_DURATION, "service" => name()),
            delivered: both("delivered"),
            dead: both("deadLettered"),
            retried: both("retried"),
            deferred: became("deferred", "false"),
            held: became("held", "false"),
            letters: DeadLetterReason::ALL.map(
                |reason| counter!(metric_names::DEAD_LETTERS, "service" => name(), "reason" => reason.word()),
            ),
            called: ["success", "failed"].map(|outcome| {
                ["false", "true"].map(|retried| {
                    counter!(metric_names::GATEWAY_CALLS, "service" => name(), "outcome" => outcome, "retried" => retried)
                })
            }),
            quarantined: counter!(metric_names::QUARANTINED, "service" => name(), "cause" => "panic"),
            latency: LatencyRecorder::default(),
            later: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            retries: Sampler::new(LINES_PER_SECOND),
            failures: Sampler::new(LINES_PER_SECOND),
            service: service.clone(),
        }
    }

    /// Records the end of an attempt.
    pub(super) fn attempted(&self, outcome: &Outcome, attempt: &Attempt) {
        let Some(kind) = outcome.error_type() else { return };
        self.attempts[kind as usize].increment(1);
        if !matches!(kind, ErrorType::Impossible | ErrorType::Panic) {
            self.duration.record(attempt.took);
        }
    }

    /// Records that the guard deferred a delivery.
    pub(super) fn deferred(&self) {
        self.deferred.increment(1);
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the end of a gateway call after a number of attempts.
    pub(super) fn called(&self, well: bool, attempts: u32) {
        self.called[usize::from(!well)][usize::from(attempts > 1)].increment(1);
    }

    /// Records the decision on a delivery.
    pub(super) fn decided(
        &self,
        delivery: &PendingDelivery,
        decision: &Decision,
        attempt: &Attempt,
        now: Tick,
    ) {
        let again = usize::from(delivery.progress.failures > 0);
        match decision.disposition {
            Disposition::Delivered => {
                self.delivered[again].increment(1);
                self.latency.add(attempt.took);
                self.later.fetch_add(again as u64, Ordering::Relaxed);
                if enabled!(target: "seawall", Level::DEBUG) {
                    let PendingDelivery { id, event, rule, trace, .. } = delivery;
                    let (trace, event, service) = (trace.map(display), &**event, self.service.as_str());
                    let (number, duration) = (delivery.progress.failures + 1, Took(attempt.took));
                    debug!(
                        target: "seawall", traceId = trace, deliveryId = %id, eventId = event, service, rule = rule.as_str(),
                        attempt = number, %duration, "[Deliver][Send] Success."
                    );
                }
            }
            Disposition::Retry { due, .. } => {
                self.retried[again].increment(1);
                if let Some(suppressed) = self.retries.pass(now) {
                    let PendingDelivery { id, event, rule, trace, .. } = delivery;
                    let (trace, event, service) = (trace.map(display), &**event, self.service.as_str());
                    let (status, duration) = (status(attempt), Took(attempt.took));
                    warn!(
                        target: "seawall", traceId = trace, deliveryId = %id, eventId = event, service, rule = rule.as_str(),
                        attempt = decision.progress.failures, httpStatus = status, %duration, cause = cause(attempt), nextAt = %due,
                        action = "QueueForRetry", suppressed, "[Deliver][Send] Retry triggered."
                    );
                }
            }
            Disposition::Hold => self.held.increment(1),
            Disposition::Defer { .. } => self.deferred(),
            Disposition::DeadLetter { reason, .. } => {
                self.dead[again].increment(1);
                self.gives_up(delivery, reason, attempt, now);
            }
        }
    }

    /// Logs a dead letter with what an operator needs to know.
    fn gives_up(&self, delivery: &PendingDelivery, reason: DeadLetterReason, attempt: &Attempt, now: Tick) {
        self.letters[reason as usize].increment(1);
        if reason == DeadLetterReason::Poison {
            self.quarantined.increment(1);
        }
        let Some(suppressed) = self.failures.pass(now) else { return };
        let PendingDelivery { id, event, rule, rule_version, trace, .. } = delivery;
        let (trace, event, service) = (trace.map(display), &**event, self.service.as_str());
        let (status, number) = (status(attempt), delivery.progress.failures + 1);
        let duration = Took(attempt.took);
        // What stands after the question mark may be anything, a key too.
        let request = attempt.sent.as_ref().and_then(|sent| sent.line.split('?').next());
        if reason == DeadLetterReason::Poison {
            error!(
                target: "seawall", traceId = trace, deliveryId = %id, eventId = event, service, rule = rule.as_str(),
                ruleVersion = rule_version, attempt = number, reason = reason.word(), cause = cause(attempt),
                action = "ManualReview", suppressed, "[Delivery][Quarantine] Failed!"
            );
            return;
        }
        error!(
            target: "seawall", traceId = trace, deliveryId = %id, eventId = event, service, rule = rule.as_str(),
            ruleVersion = rule_version, attempt = number, reason = reason.word(), httpStatus = status, %duration, cause = cause(attempt),
            request, action = "ManualReview", suppressed, "[Deliver][Send] Failed!"
        );
    }

    /// Logs the line of the last second.
    pub(super) fn report(&self) {
        let Some(LatencySummary { count, p50, p99 }) = self.latency.take() else { return };
        let (retried, deferred) =
            (self.later.swap(0, Ordering::Relaxed), self.refused.swap(0, Ordering::Relaxed));
        let (service, p50, p99) = (self.service.as_str(), Took(p50), Took(p99));
        info!(target: "seawall", service, count, retried, deferred, %p50, %p99, "[Deliver][Send] Success.");
    }
}

fn status(attempt: &Attempt) -> Option<u16> {
    attempt.answer.as_ref().map(|answer| answer.status)
}

fn cause(attempt: &Attempt) -> &str {
    attempt.error.as_deref().unwrap_or("unknown")
}

/// Logs that a delivery is quarantined, because it crashed the process repeatedly.
pub(in crate::service) fn quarantined(delivery: &StoredDelivery, cause: &str) {
    let (service, rule, reason) =
        (delivery.service.as_str(), delivery.rule.0.as_str(), DeadLetterReason::Poison.word());
    counter!(metric_names::DEAD_LETTERS, "service" => service.to_owned(), "reason" => reason).increment(1);
    counter!(metric_names::QUARANTINED, "service" => service.to_owned(), "cause" => "crash").increment(1);
    let (trace, event, attempt) =
        (delivery.trace.map(display), &*delivery.event, delivery.progress.failures + 1);
    error!(
        target: "seawall", traceId = trace, deliveryId = %delivery.id, eventId = event, service, rule, ruleVersion = delivery.rule.1,
        attempt, reason, cause, action = "ManualReview", "[Delivery][Quarantine] Failed!"
    );
}

/// Logs that a circuit has changed, by itself or manually.
pub(in crate::service) fn circuit_moved(circuit: &Circuit) {
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

/// Counts deliveries of a service that were dead-lettered, because it or their rule was deleted.
pub(in crate::service) fn dead_lettered(service: &Slug, count: usize) {
    let service = service.as_str().to_owned();
    counter!(metric_names::DEAD_LETTERS, "service" => service, "reason" => DeadLetterReason::Deleted.word())
        .increment(count as u64);
}
