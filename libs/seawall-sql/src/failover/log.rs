//! The log of a failover: `[DataSource][primary] Query success. rows=3 duration=2ms`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use seawall::failover::Side;
use seawall::{Clock, Tick};

use super::executor::SqlFailoverError;

/// The log of one failover.
pub(super) struct SourceLog {
    #[cfg_attr(
        not(any(feature = "tracing", feature = "metrics")),
        expect(dead_code, reason = "it is for logs and metrics")
    )]
    name: String,
    clock: Clock,
    #[cfg(feature = "tracing")]
    samplers: Samplers,
}

/// Each kind of line has its own allowance, so that many of one kind leave room for the others.
#[cfg(feature = "tracing")]
struct Samplers {
    answers: [seawall::telemetry::Sampler; 2],
    switches: seawall::telemetry::Sampler,
    failures: [seawall::telemetry::Sampler; 2],
}

impl SourceLog {
    pub(super) fn new(name: &str) -> Self {
        #[cfg(feature = "tracing")]
        let sampler = || seawall::telemetry::Sampler::new(seawall::telemetry::LINES_PER_SECOND);
        SourceLog {
            name: name.to_owned(),
            clock: Clock::default(),
            #[cfg(feature = "tracing")]
            samplers: Samplers {
                answers: [sampler(), sampler()],
                switches: sampler(),
                failures: [sampler(), sampler()],
            },
        }
    }

    pub(super) fn call(&self) -> CallLog<'_> {
        CallLog {
            log: self,
            began: self.clock.precise(),
            asked: AtomicUsize::new(0),
            failures: Failures::default(),
        }
    }
}

/// What is known of one call.
pub(super) struct CallLog<'l> {
    log: &'l SourceLog,
    began: Tick,
    /// The number of the last side that was asked, counted from 1.
    asked: AtomicUsize,
    failures: Failures,
}

/// The error of the last attempt that ended with one.
#[derive(Clone, Default)]
pub(super) struct Failures(Arc<Mutex<Option<String>>>);

impl Failures {
    pub(super) fn note(&self, error: &sqlx::Error) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl CallLog<'_> {
    pub(super) fn failures(&self) -> Failures {
        self.failures.clone()
    }

    /// An attempt on this side begins. The first one on a side that is not the primary is a switch.
    pub(super) fn asks(&self, side: Side) {
        let asked = self.asked.swap(side.index() + 1, Ordering::Relaxed);
        if side != Side::PRIMARY && asked <= side.index() {
            // A side that was asked and left no error took too long; one that was not asked has an open circuit.
            let cause = self.failures.take();
            let silent = if asked < side.index() { "circuit open" } else { "timed out" };
            self.switched(side, cause.as_deref().unwrap_or(silent));
        }
    }

    #[cfg_attr(not(feature = "tracing"), expect(unused_variables, clippy::unused_self))]
    fn switched(&self, to: Side, cause: &str) {
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.log.samplers.switches.pass(self.log.clock.now()) {
            let (duration, name) = (self.duration(), &self.log.name);
            let from = name_of(to.index() - 1);
            tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %duration, cause, suppressed, "[{name}][Failover] {from} failed, switching to {to}.");
        }
    }

    /// A side answered with this many rows.
    pub(super) fn answered(&self, side: Side, rows: u64) {
        let _ = rows;
        #[cfg(feature = "metrics")]
        metrics::counter!("seawall.sql.answers", "source" => self.log.name.clone(), "side" => name_of(side.index()))
            .increment(1);
        #[cfg(feature = "tracing")]
        if tracing::enabled!(target: "seawall", tracing::Level::INFO)
            && let Some(suppressed) =
                self.log.samplers.answers[side.index().min(1)].pass(self.log.clock.now())
        {
            let (duration, name) = (self.duration(), &self.log.name);
            let what = if side == Side::PRIMARY { "Query" } else { "Failover" };
            tracing::info!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), rows, %duration, suppressed, "[{name}][{side}] {what} success.");
        }
        let _ = side;
    }

    /// No side answered. If all of `sides` failed, somebody has to look.
    pub(super) fn failed(&self, sides: usize, error: &SqlFailoverError) {
        let failed = 1 + std::iter::successors(error.previous(), |error| error.previous()).count();
        let all = failed >= sides;
        let _ = all;
        #[cfg(feature = "metrics")]
        metrics::counter!("seawall.sql.failures", "source" => self.log.name.clone(), "all" => if all { "true" } else { "false" })
            .increment(1);
        #[cfg(feature = "tracing")]
        if let Some(suppressed) = self.log.samplers.failures[usize::from(all)].pass(self.log.clock.now()) {
            let (duration, name) = (self.duration(), &self.log.name);
            if all && sides == 2 {
                tracing::error!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %duration, cause = %error, suppressed, "[{name}][Failover] Both primary and secondary failed!");
            } else if all {
                tracing::error!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %duration, cause = %error, suppressed, "[{name}][Failover] All {sides} sides failed!");
            } else {
                let side = name_of(failed - 1);
                tracing::warn!(target: "seawall", traceId = seawall::telemetry::current_trace_id(), %duration, cause = %error, suppressed, "[{name}][{side}] Query failed!");
            }
        }
        let _ = self.took();
    }

    fn took(&self) -> Duration {
        self.log.clock.precise().since(self.began)
    }

    #[cfg(feature = "tracing")]
    fn duration(&self) -> seawall::telemetry::Millis {
        seawall::telemetry::Millis(self.took())
    }
}

/// The name of a side by its place, as [`Side`] writes it.
#[cfg(any(feature = "tracing", feature = "metrics"))]
fn name_of(index: usize) -> String {
    match index {
        0 => Side::PRIMARY.to_string(),
        1 => Side::SECONDARY.to_string(),
        index => format!("side {}", index + 1),
    }
}
