//! Metrics and log lines.

use std::fmt::Display;
use std::sync::Arc;

#[cfg(feature = "metrics")]
use metrics::Counter;
#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

use super::key::IdempotencyKey;
use super::options::AbandonedAction;

#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[(
    "seawall.idempotency.calls",
    Measure::Counter,
    &["name", "outcome"],
    "calls under a key: run, replay, in_flight, mismatch, unknown, refused, failed, lost, not_recorded, abandoned",
)];

/// What a call came to, in the label `outcome`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CallOutcome {
    Run,
    Replay,
    InFlight,
    Mismatch,
    Unknown,
    Refused,
    Failed,
    Lost,
    NotRecorded,
    Abandoned,
}

#[cfg(feature = "metrics")]
const LABELS: [(CallOutcome, &str); 10] = [
    (CallOutcome::Run, "run"),
    (CallOutcome::Replay, "replay"),
    (CallOutcome::InFlight, "in_flight"),
    (CallOutcome::Mismatch, "mismatch"),
    (CallOutcome::Unknown, "unknown"),
    (CallOutcome::Refused, "refused"),
    (CallOutcome::Failed, "failed"),
    (CallOutcome::Lost, "lost"),
    (CallOutcome::NotRecorded, "not_recorded"),
    (CallOutcome::Abandoned, "abandoned"),
];

/// The counters of one handle, registered once.
pub(super) struct Telemetry {
    #[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "only lines name it"))]
    name: Arc<str>,
    #[cfg(feature = "metrics")]
    calls: [(CallOutcome, Counter); LABELS.len()],
}

impl Telemetry {
    pub(super) fn new(name: &Arc<str>) -> Self {
        Telemetry {
            name: name.clone(),
            #[cfg(feature = "metrics")]
            calls: LABELS.map(|(outcome, label)| {
                let counter = metrics::counter!(
                    "seawall.idempotency.calls", "name" => name.to_string(), "outcome" => label
                );
                (outcome, counter)
            }),
        }
    }

    pub(super) fn count(&self, outcome: CallOutcome) {
        let _ = outcome;
        #[cfg(feature = "metrics")]
        if let Some((_, counter)) = self.calls.iter().find(|(of, _)| *of == outcome) {
            counter.increment(1);
        }
    }

    /// The store did not answer, and the work was not started.
    pub(super) fn refused(&self, key: &IdempotencyKey, cause: &dyn Display) {
        self.count(CallOutcome::Refused);
        let _ = (key, cause);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %key, %cause, action = "Refuse", "[{}][once] Failed!", self.name);
    }

    /// The work was dropped or panicked, and may have taken effect.
    pub(super) fn abandoned(&self, key: &IdempotencyKey, action: AbandonedAction) {
        let _ = (key, action);
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %key, ?action, "[{}][once] Abandoned!", self.name);
    }

    /// The key was lost, and the work cancelled.
    pub(super) fn lost(&self, key: &IdempotencyKey, cause: &dyn Display) {
        self.count(CallOutcome::Lost);
        let _ = (key, cause);
        #[cfg(feature = "tracing")]
        tracing::error!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %key, %cause, "[{}][once] Lost!", self.name);
    }

    /// The work is done, and its result is not stored.
    pub(super) fn not_recorded(&self, key: &IdempotencyKey, cause: &dyn Display) {
        self.count(CallOutcome::NotRecorded);
        let _ = (key, cause);
        #[cfg(feature = "tracing")]
        tracing::error!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %key, %cause, action = "ManualReview", "[{}][record] Failed!", self.name);
    }
}
