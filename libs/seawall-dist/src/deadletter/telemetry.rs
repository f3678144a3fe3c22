//! Log lines and metrics of dead letters.

use std::time::Duration;

use crate::StoreError;

use super::{ChangeOutcome, LetterChange, PutOutcome, Record, ReplayOutcome};

#[cfg(feature = "metrics")]
mod numbers {
    use std::collections::HashSet;
    use std::sync::{Mutex, PoisonError};

    use seawall::telemetry::Measure;

    use super::super::{GroupCount, Status};

    pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
        (
            "seawall.dead_letters",
            Measure::Gauge,
            &["kind", "place", "reason", "status"],
            "dead letters that are not deleted, by group",
        ),
        (
            "seawall.dead_letter.puts",
            Measure::Counter,
            &["kind", "reason", "outcome"],
            "records that were put away",
        ),
        ("seawall.dead_letter.replays", Measure::Counter, &["outcome"], "replays that ended"),
    ];

    /// The gauges of all groups. A gauge keeps its value until it is set again, so that the groups of the last time are
    /// remembered: one that is gone is set to zero.
    #[derive(Default)]
    pub(in crate::deadletter) struct GroupGauges {
        shown: Mutex<HashSet<Group>>,
    }

    /// The kind and the place of the origin, the reason and the status.
    type Group = (String, String, String, Status);

    impl GroupGauges {
        pub(in crate::deadletter) fn record(&self, counts: &[GroupCount]) {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            let mut gone = std::mem::take(&mut *shown);
            for GroupCount { kind, place, reason, status, count, .. } in counts {
                let group = (kind.clone(), place.clone(), reason.clone(), *status);
                gone.remove(&group);
                set(&group, *count as f64);
                shown.insert(group);
            }
            for group in &gone {
                set(group, 0.0);
            }
        }
    }

    fn set((kind, place, reason, status): &Group, count: f64) {
        metrics::gauge!(
            "seawall.dead_letters",
            "kind" => kind.clone(),
            "place" => place.clone(),
            "reason" => reason.clone(),
            "status" => status.name(),
        )
        .set(count);
    }
}

#[cfg(feature = "metrics")]
pub(super) use numbers::GroupGauges;
#[cfg(feature = "metrics")]
pub(crate) use numbers::METRICS;

pub(super) fn put(record: &Record, outcome: PutOutcome) {
    let _ = (record, outcome);
    #[cfg(feature = "metrics")]
    metrics::counter!(
        "seawall.dead_letter.puts",
        "kind" => record.origin.kind.clone(),
        "reason" => record.fault.reason.clone(),
        "outcome" => match outcome {
            PutOutcome::Created => "created",
            PutOutcome::Updated => "updated",
            PutOutcome::Known => "known",
        },
    )
    .increment(1);
    // An operator has to decide about a dead letter, so that its line is an error and is never left out.
    #[cfg(feature = "tracing")]
    if outcome != PutOutcome::Known {
        let Record { id, origin, fault, attempts, trace, .. } = record;
        tracing::error!(
            target: "seawall", traceId = seawall::telemetry::current_trace_id(), traceId = trace.as_deref(), id = %id, origin = %origin.kind, place = %origin.place,
            originalId = %origin.id, attempts = attempts.len(), reason = %fault.reason, cause = fault.message.as_deref(),
            action = "ManualReview", "[DeadLetter][Put] Stored."
        );
    }
}

pub(super) fn changed(id: &str, change: LetterChange, outcome: ChangeOutcome) {
    let _ = (id, change, outcome);
    #[cfg(feature = "tracing")]
    if outcome == ChangeOutcome::Changed {
        tracing::info!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), id, "[DeadLetter][{change:?}] Success.");
    }
}

/// The outcome of a replay could not be recorded.
pub(super) fn not_recorded(id: &str, error: &StoreError) {
    let _ = (id, error);
    #[cfg(feature = "tracing")]
    tracing::error!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), id, cause = %error, "[DeadLetter][Record] Failed!");
}

pub(super) fn replayed(id: &str, outcome: &ReplayOutcome, took: Duration) {
    let _ = (id, took);
    let word = match outcome {
        ReplayOutcome::Replayed { .. } => "replayed",
        ReplayOutcome::Failed { .. } => "failed",
        ReplayOutcome::Overtaken => "overtaken",
        ReplayOutcome::NotRecorded { .. } => "not_recorded",
        _ => return,
    };
    let _ = word;
    #[cfg(feature = "metrics")]
    metrics::counter!("seawall.dead_letter.replays", "outcome" => word).increment(1);
    #[cfg(feature = "tracing")]
    {
        let duration = seawall::telemetry::Millis(took);
        match outcome {
            ReplayOutcome::Replayed { generation, .. } => {
                tracing::info!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), id, generation, %duration, "[DeadLetter][Replay] Success.");
            }
            ReplayOutcome::Failed { error } => {
                tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), id, %duration, cause = %error, "[DeadLetter][Replay] Failed!");
            }
            // Its line is written where the record failed.
            ReplayOutcome::NotRecorded { .. } => {}
            _ => {
                tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), id, %duration, cause = "died again or taken over", "[DeadLetter][Replay] Overtaken.");
            }
        }
    }
}
