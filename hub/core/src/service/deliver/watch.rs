//! What is told of the deliveries of one service: numbers for each, a line for each failure, and one a second for the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, Histogram, counter, histogram};
use seawall::Tick;
use seawall::telemetry::{Millis as Took, Sampler};
use seawall_dist::deadletter::Attempt;
use tracing::field::display;
use tracing::{Level, debug, enabled, error, info, warn};

use super::hand::InHand;
use crate::domain::delivery::{Outcome, Reason};
use crate::domain::slug::Slug;
use crate::port::store::Following;
use crate::service::numbers;
use crate::service::pace::{Pace, Tempo};
use crate::service::watch::LINES_PER_SECOND;

/// How a send ended, in the label `error.type`.
const ENDS: [&str; 9] =
    ["none", "3xx", "4xx", "5xx", "timeout", "unreachable", "impossible", "other", "panic"];

/// Watches the deliveries of one service.
#[derive(Debug)]
pub(super) struct Watch {
    service: Slug,
    attempts: [Counter; ENDS.len()],
    duration: Histogram,
    /// At the first try, and later.
    delivered: [Counter; 2],
    dead: [Counter; 2],
    retried: [Counter; 2],
    deferred: Counter,
    held: Counter,
    letters: [Counter; Reason::ALL.len()],
    /// Calls that somebody waited for: well at the first attempt and later, and not.
    called: [[Counter; 2]; 2],
    quarantined: Counter,
    tempo: Tempo,
    /// Since the last line.
    later: AtomicU64,
    refused: AtomicU64,
    retries: Sampler,
    failures: Sampler,
}

impl Watch {
    pub(super) fn new(service: &Slug) -> Self {
        let name = || service.as_str().to_owned();
        let became = |outcome: &'static str, retried: &'static str| counter!(numbers::DELIVERIES, "service" => name(), "outcome" => outcome, "retried" => retried);
        let both = |outcome| [became(outcome, "false"), became(outcome, "true")];
        Watch {
            attempts: ENDS.map(|end| counter!(numbers::ATTEMPTS, "service" => name(), "error.type" => end)),
            duration: histogram!(numbers::CLIENT_DURATION, "service" => name()),
            delivered: both("delivered"),
            dead: both("deadLettered"),
            retried: both("retried"),
            deferred: became("deferred", "false"),
            held: became("held", "false"),
            letters: Reason::ALL.map(
                |reason| counter!(numbers::DEAD_LETTERS, "service" => name(), "reason" => reason.word()),
            ),
            called: ["success", "failed"].map(|outcome| {
                ["false", "true"].map(|retried| {
                    counter!(numbers::GATEWAY_CALLS, "service" => name(), "outcome" => outcome, "retried" => retried)
                })
            }),
            quarantined: counter!(numbers::QUARANTINED, "service" => name(), "cause" => "panic"),
            tempo: Tempo::default(),
            later: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            retries: Sampler::new(LINES_PER_SECOND),
            failures: Sampler::new(LINES_PER_SECOND),
            service: service.clone(),
        }
    }

    /// A send has ended so.
    pub(super) fn sent(&self, outcome: Outcome, attempt: &Attempt) {
        let (end, answered) = match outcome {
            Outcome::Delivered => (0, true),
            Outcome::Answered { status: 300..=399, .. } => (1, true),
            Outcome::Answered { status: 400..=499, .. } | Outcome::TokenRefused => (2, true),
            // A probe that was answered so was answered by an error of the peer.
            Outcome::Answered { status: 500..=599, .. } | Outcome::FailedProbe { .. } => (3, true),
            Outcome::Answered { .. } => (7, true),
            Outcome::TimedOut => (4, true),
            Outcome::Unreachable => (5, true),
            Outcome::Impossible => (6, false),
            Outcome::Panicked => (8, false),
            // The guard has counted it.
            Outcome::Deferred { .. } => return,
        };
        self.attempts[end].increment(1);
        if answered {
            self.duration.record(attempt.took);
        }
    }

    /// The guard did not let it pass: it stays where it is.
    pub(super) fn deferred(&self) {
        self.deferred.increment(1);
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A call that somebody waited for has ended after so many attempts.
    pub(super) fn called(&self, well: bool, attempts: u32) {
        self.called[usize::from(!well)][usize::from(attempts > 1)].increment(1);
    }

    /// Its rule is disabled.
    pub(super) fn held(&self) {
        self.held.increment(1);
    }

    /// This follows a send.
    pub(super) fn follows(&self, delivery: &InHand, next: &Following, attempt: &Attempt, now: Tick) {
        let again = usize::from(delivery.progress.failures > 0);
        match *next {
            Following::Delivered => {
                self.delivered[again].increment(1);
                self.tempo.add(attempt.took);
                self.later.fetch_add(again as u64, Ordering::Relaxed);
                if enabled!(target: "seawall", Level::DEBUG) {
                    let InHand { id, event, rule, trace, .. } = delivery;
                    let (trace, event, service) = (trace.map(display), &**event, self.service.as_str());
                    let (number, duration) = (delivery.progress.failures + 1, Took(attempt.took));
                    debug!(
                        target: "seawall", traceId = trace, deliveryId = %id, eventId = event, service, rule = rule.as_str(),
                        attempt = number, %duration, "[Deliver][Send] Success."
                    );
                }
            }
            Following::Waits { until, progress, .. } => {
                self.retried[again].increment(1);
                if let Some(suppressed) = self.retries.pass(now) {
                    let InHand { id, event, rule, trace, .. } = delivery;
                    let (trace, event, service) = (trace.map(display), &**event, self.service.as_str());
                    let (status, duration) = (status(attempt), Took(attempt.took));
                    warn!(
                        target: "seawall", traceId = trace, deliveryId = %id, eventId = event, service, rule = rule.as_str(),
                        attempt = progress.failures, httpStatus = status, %duration, cause = cause(attempt), nextAt = %until,
                        action = "QueueForRetry", suppressed, "[Deliver][Send] Retry triggered."
                    );
                }
            }
            Following::Held => self.held(),
            Following::DeadLetter { reason, .. } => {
                self.dead[again].increment(1);
                self.gives_up(delivery, reason, attempt, now);
            }
        }
    }

    /// A delivery is given up: somebody has to look, and finds here what went in.
    fn gives_up(&self, delivery: &InHand, reason: Reason, attempt: &Attempt, now: Tick) {
        self.letters[reason as usize].increment(1);
        if reason == Reason::Poison {
            self.quarantined.increment(1);
        }
        let Some(suppressed) = self.failures.pass(now) else { return };
        let InHand { id, event, rule, rule_version, trace, .. } = delivery;
        let (trace, event, service) = (trace.map(display), &**event, self.service.as_str());
        let (status, number) = (status(attempt), delivery.progress.failures + 1);
        let duration = Took(attempt.took);
        // What stands after the question mark may be anything, a key too.
        let request = attempt.sent.as_ref().and_then(|sent| sent.line.split('?').next());
        if reason == Reason::Poison {
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

    /// The line of the second that has passed.
    pub(super) fn tell(&self) {
        let Some(Pace { count, p50, p99 }) = self.tempo.take() else { return };
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
