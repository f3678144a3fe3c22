//! Logs and metrics of guards.
#![doc = ""]
#![doc = include_str!("../../docs/telemetry.md")]

#[cfg(feature = "tracing")]
mod failover;
#[cfg(feature = "tracing")]
mod log;
#[cfg(feature = "metrics")]
mod metrics;
#[cfg(feature = "tracing")]
mod sampler;
mod span;
#[cfg(feature = "tracing")]
mod trace;
#[cfg(feature = "tracing-subscriber")]
mod trace_layer;
mod traceparent;
#[cfg(feature = "tracing")]
mod writer;

#[cfg(feature = "tracing")]
pub(crate) use failover::FailoverLog;
#[cfg(feature = "tracing")]
pub use log::{LINES_PER_SECOND, Log};
#[cfg(feature = "metrics")]
pub(crate) use metrics::record_gauges;
#[cfg(feature = "metrics")]
pub use metrics::{Measure, NAMES, describe};
#[cfg(feature = "tracing")]
pub use sampler::{Millis, Sampler};
pub(crate) use span::{AttemptOutcome, AttemptSpan, InSpan};
#[cfg(feature = "tracing")]
pub use trace::current_trace_id;
#[cfg(feature = "tracing-subscriber")]
pub use trace_layer::TraceIdLayer;
pub use traceparent::trace_id_of;
#[cfg(feature = "tracing")]
pub use writer::{FLUSH_TIME, LogHandle, LogWriter, LogWriterBuilder, QUEUED_BYTES_MAX, QUEUED_LINES_MAX};

use std::sync::Arc;

use crate::clock::Clock;
use crate::event::{Hooks, Listener};

/// What is written down about a guard. Nothing, unless somebody asks for it.
#[derive(Clone, Default, Debug)]
pub(crate) struct Telemetry {
    #[cfg(feature = "tracing")]
    pub(crate) log: Option<Log>,
    #[cfg(feature = "metrics")]
    pub(crate) metrics: bool,
    /// The name of the family, for a guard that is one of many: metrics bear it instead of the guard's own.
    pub(crate) family: Option<Arc<str>>,
    pub(crate) hooks: Hooks,
    /// Each attempt has a span.
    pub(crate) attempt_spans: bool,
}

impl Telemetry {
    /// What a registry asks for, beside what the guard itself does.
    pub(crate) fn add(&mut self, other: &Telemetry) {
        self.hooks.add(&other.hooks);
        self.attempt_spans |= other.attempt_spans;
        #[cfg(feature = "tracing")]
        if self.log.is_none() {
            self.log.clone_from(&other.log);
        }
        #[cfg(feature = "metrics")]
        {
            self.metrics |= other.metrics;
        }
    }

    /// From now on for many guards of one name.
    pub(crate) fn become_family(&mut self, name: &Arc<str>) {
        self.family = Some(name.clone());
        #[cfg(feature = "tracing")]
        {
            self.log = self.log.take().map(Log::shared);
        }
    }

    /// Those who hear of everything in the guard of this name.
    pub(crate) fn listeners(&self, name: &Arc<str>, clock: &Clock) -> Box<[Box<dyn Listener>]> {
        let _ = (name, clock); // Without log and metrics nobody needs them.
        #[allow(unused_mut, reason = "without log and metrics there is nobody")]
        let mut listeners: Vec<Box<dyn Listener>> = Vec::new();
        #[cfg(feature = "tracing")]
        if let Some(log) = &self.log {
            listeners.push(Box::new(log::GuardLog::new(log, name, clock.clone())));
        }
        #[cfg(feature = "metrics")]
        if self.metrics {
            let (label, is_family) = match &self.family {
                Some(family) => (family, true),
                None => (name, false),
            };
            listeners.push(Box::new(metrics::GuardMetrics::new(label, is_family)));
        }
        listeners.into()
    }
}
