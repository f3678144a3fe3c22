//! Metrics and log lines.

use std::sync::Arc;

#[cfg(feature = "metrics")]
use metrics::{Counter, Gauge, counter, gauge};
#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

use super::error::DecidedBy;

#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
    (
        "seawall.limit.calls",
        Measure::Counter,
        &["name", "outcome", "by"],
        "calls that were admitted or limited, by the shared or the local limit",
    ),
    (
        "seawall.limit.fallbacks",
        Measure::Counter,
        &["name"],
        "how often a process went over to its local limit",
    ),
    ("seawall.limit.local", Measure::Gauge, &["name"], "1 while the process uses its local limit, else 0"),
];

pub(super) struct Telemetry {
    #[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "only lines name it"))]
    name: Arc<str>,
    #[cfg(feature = "metrics")]
    calls: [[Counter; 2]; 2],
    #[cfg(feature = "metrics")]
    fallbacks: Counter,
    #[cfg(feature = "metrics")]
    local: Gauge,
}

impl Telemetry {
    pub(super) fn new(name: &Arc<str>) -> Self {
        #[cfg(feature = "metrics")]
        let count = |outcome: &'static str, by: &'static str| counter!("seawall.limit.calls", "name" => name.to_string(), "outcome" => outcome, "by" => by);
        Telemetry {
            name: name.clone(),
            #[cfg(feature = "metrics")]
            calls: ["limited", "admitted"].map(|outcome| ["shared", "local"].map(|by| count(outcome, by))),
            #[cfg(feature = "metrics")]
            fallbacks: counter!("seawall.limit.fallbacks", "name" => name.to_string()),
            #[cfg(feature = "metrics")]
            local: gauge!("seawall.limit.local", "name" => name.to_string()),
        }
    }

    pub(super) fn decided(&self, admitted: bool, by: DecidedBy) {
        let _ = (admitted, by);
        #[cfg(feature = "metrics")]
        self.calls[usize::from(admitted)][usize::from(by == DecidedBy::Local)].increment(1);
    }

    pub(super) fn fell_back(&self, cause: &str, action: &'static str) {
        let _ = (cause, action);
        #[cfg(feature = "metrics")]
        {
            self.fallbacks.increment(1);
            self.local.set(1.0);
        }
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), cause, action, "[{}][limit] Fallback activated.", self.name);
    }

    pub(super) fn came_back(&self) {
        #[cfg(feature = "metrics")]
        self.local.set(0.0);
        #[cfg(feature = "tracing")]
        tracing::info!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), "[{}][limit] Shared again.", self.name);
    }
}
