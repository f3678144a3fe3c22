//! What sagas do as log lines and numbers. Without the features `tracing` and `metrics` these functions do nothing.

use std::collections::BTreeMap;

#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

use super::definition::DefinitionId;
use super::error::SagaError;
use super::journal::EntryKind;
use super::store::{SagaRecord, SagaState};
use crate::StoreError;

#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
    (
        "seawall.sagas",
        Measure::Gauge,
        &["state"],
        "sagas that have not ended, by state: `running`, `compensating`, `needs_attention`",
    ),
    (
        "seawall.sagas.unclaimed",
        Measure::Gauge,
        &["saga"],
        "active sagas that no process has driven for long, by definition",
    ),
    ("seawall.sagas.started", Measure::Counter, &["saga"], "sagas that were started"),
    ("seawall.sagas.ended", Measure::Counter, &["saga", "state"], "sagas that ended, by how"),
    (
        "seawall.saga.takeovers",
        Measure::Counter,
        &["saga"],
        "sagas that were taken over from another process",
    ),
    (
        "seawall.saga.step.retries",
        Measure::Counter,
        &["saga", "kind"],
        "attempts that failed and are made again",
    ),
    ("seawall.saga.leases.lost", Measure::Counter, &[], "sagas that a process lost while it drove them"),
];

/// Whether anybody wants to know how many sagas there are.
pub(super) const COUNTS_STATES: bool = cfg!(feature = "metrics");

/// Whether anybody wants to know of sagas that nobody drives.
pub(super) const SHOWS_UNCLAIMED: bool = cfg!(any(feature = "metrics", feature = "tracing"));

macro_rules! log {
    ($level:ident, $($line:tt)+) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), $($line)+);
    };
}

macro_rules! count {
    ($name:literal $(, $label:literal => $value:expr)*) => {
        #[cfg(feature = "metrics")]
        metrics::counter!($name $(, $label => $value)*).increment(1);
    };
}

pub(super) fn started(record: &SagaRecord) {
    let _ = record;
    log!(info, sagaId = %record.id, saga = %record.definition, entity = record.entity, "[Saga][Start] Start.");
    count!("seawall.sagas.started", "saga" => record.definition.to_string());
}

/// Tells a saga that was submitted, and that nobody drove before, from one whose process went away or stopped.
pub(super) fn claimed(record: &SagaRecord) {
    if record.lease.fence <= 1 {
        log!(info, sagaId = %record.id, saga = %record.definition, "[Saga][Begin] Start.");
    } else {
        log!(warn, sagaId = %record.id, saga = %record.definition, state = record.state.name(), fence = record.lease.fence, "[Saga][TakeOver] Start.");
        count!("seawall.saga.takeovers", "saga" => record.definition.to_string());
    }
}

pub(super) fn attempt_failed(
    record: &SagaRecord,
    step: &str,
    kind: EntryKind,
    attempt: u32,
    cause: &str,
    again: bool,
) {
    let _ = (record, step, kind, attempt, cause);
    let compensation = matches!(kind, EntryKind::CompensationAttemptFailed | EntryKind::CompensationGivenUp);
    let _ = compensation;
    if again {
        log!(warn, sagaId = %record.id, saga = %record.definition, step, compensation, attempt, cause, "[Saga][Step] Retry triggered.");
        count!("seawall.saga.step.retries", "saga" => record.definition.to_string(), "kind" => if compensation { "compensation" } else { "action" });
    } else if compensation {
        log!(error, sagaId = %record.id, saga = %record.definition, step, compensation, attempt, cause, action = "ManualReview", "[Saga][Step] Failed!");
    } else {
        log!(warn, sagaId = %record.id, saga = %record.definition, step, compensation, attempt, cause, action = "Compensate", "[Saga][Step] Failed!");
    }
}

pub(super) fn ended(record: &SagaRecord, state: SagaState) {
    let _ = (record, state);
    #[cfg(feature = "tracing")]
    let cause = record.reason.as_deref();
    match state {
        SagaState::NeedsAttention => {
            log!(error, sagaId = %record.id, saga = %record.definition, cause, action = "ManualReview", "[Saga][NeedsAttention] Failed!");
        }
        SagaState::Compensated => {
            log!(warn, sagaId = %record.id, saga = %record.definition, cause, "[Saga][Compensate] Success.");
        }
        _ => {
            log!(info, sagaId = %record.id, saga = %record.definition, "[Saga][Complete] Success.");
        }
    }
    count!("seawall.sagas.ended", "saga" => record.definition.to_string(), "state" => state.name());
}

pub(super) fn reopened(record: &SagaRecord) {
    let _ = record;
    log!(info, sagaId = %record.id, saga = %record.definition, state = record.state.name(), "[Saga][Retry] Start.");
}

pub(super) fn resolved(record: &SagaRecord) {
    let _ = record;
    log!(info, sagaId = %record.id, saga = %record.definition, "[Saga][Resolve] Success.");
}

pub(super) fn lease_lost(id: &str) {
    let _ = id;
    log!(warn, sagaId = id, "[Saga][Lease] Failed!");
    count!("seawall.saga.leases.lost");
}

pub(super) fn failed(operation: &str, id: &str, error: &SagaError) {
    let _ = (operation, id);
    let cause = match error {
        SagaError::Store(error) => error.to_string(),
        other => other.to_string(),
    };
    let _ = &cause;
    log!(warn, sagaId = id, cause, "[Saga][{operation}] Failed!");
}

pub(super) fn panicked(id: &str, cause: &str) {
    let _ = (id, cause);
    log!(error, sagaId = id, cause = format_args!("panicked: {cause}"), "[Saga][Drive] Failed!");
}

pub(super) fn store_failed(operation: &str, error: StoreError) {
    failed(operation, "", &SagaError::Store(error));
}

pub(super) fn states(counts: &[(SagaState, u64)]) {
    for state in SagaState::OPEN {
        let count = counts.iter().find(|(of, _)| *of == state).map_or(0, |(_, count)| *count);
        let _ = count;
        #[cfg(feature = "metrics")]
        metrics::gauge!("seawall.sagas", "state" => state.name()).set(count as f64);
    }
}

/// Shows what nobody drives: a number in every period, a line when a definition appears.
pub(super) fn unclaimed(counts: &[(DefinitionId, u64)], shown: &mut BTreeMap<DefinitionId, u64>) {
    // What is gone is shown as zero, or its last number would stay for ever.
    let gone = shown.keys().filter(|id| counts.iter().all(|(of, _)| of != *id)).cloned();
    let gone: Vec<_> = gone.map(|id| (id, 0)).collect();
    for (id, count) in counts.iter().chain(&gone) {
        let before = shown.insert(id.clone(), *count).unwrap_or(0);
        if before == 0 && *count > 0 {
            log!(warn, saga = %id, count, cause = "no process drives them", "[Saga][Unclaimed] Failed!");
        }
        #[cfg(feature = "metrics")]
        metrics::gauge!("seawall.sagas.unclaimed", "saga" => id.to_string()).set(*count as f64);
    }
}
