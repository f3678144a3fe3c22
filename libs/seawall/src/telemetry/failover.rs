//! The log of a failover: `[DataSource][primary] Query success. duration=…ms`.

use std::fmt::Display;
use std::sync::Arc;

use tracing::{Level, enabled, error, info, warn};

use super::Log;
use super::sampler::{Millis, Sampler};
use super::trace::TraceIdSource;
use crate::clock::{Clock, Tick};
use crate::failover::Side;

/// The log of a failover.
#[derive(Clone)]
pub(crate) struct FailoverLog {
    name: Arc<str>,
    clock: Clock,
    samplers: Arc<Samplers>,
    trace_ids: TraceIdSource,
}

/// Each kind of line has its own allowance, so that many of one kind leave room for the others.
struct Samplers {
    /// Answers of the primary, and of any other side.
    answers: [Sampler; 2],
    switches: Sampler,
    failures: Sampler,
}

impl FailoverLog {
    pub(crate) fn new(name: &str, clock: Clock, log: &Log) -> Self {
        let sampler = || Sampler::new(log.lines_per_second);
        let samplers = Samplers { answers: [sampler(), sampler()], switches: sampler(), failures: sampler() };
        FailoverLog {
            name: name.into(),
            clock,
            samplers: Arc::new(samplers),
            trace_ids: log.trace_ids.clone(),
        }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.precise()
    }

    pub(crate) fn answered(&self, side: Side, began: Tick) {
        if enabled!(target: "seawall", Level::INFO)
            && let Some(suppressed) = self.samplers.answers[side.index().min(1)].pass(self.clock.now())
        {
            let duration = Millis(self.now().since(began));
            info!(target: "seawall", traceId = self.trace_ids.field(), %duration, suppressed, "[{}][{side}] Query success.", self.name);
        }
    }

    pub(crate) fn switches(&self, from: Side, began: Tick, cause: &dyn Display) {
        if enabled!(target: "seawall", Level::WARN)
            && let Some(suppressed) = self.samplers.switches.pass(self.clock.now())
        {
            let (duration, next) = (Millis(self.now().since(began)), from.next());
            warn!(target: "seawall", traceId = self.trace_ids.field(), %duration, %cause, suppressed, "[{}][{from}] Query failed! Asking the {next}.", self.name);
        }
    }

    pub(crate) fn failed(&self, last: Side, began: Tick, cause: &dyn Display) {
        if enabled!(target: "seawall", Level::ERROR)
            && let Some(suppressed) = self.samplers.failures.pass(self.clock.now())
        {
            let duration = Millis(self.now().since(began));
            let sides = match last {
                Side::PRIMARY => "primary",
                Side::SECONDARY => "both",
                _ => "all",
            };
            error!(target: "seawall", traceId = self.trace_ids.field(), %duration, %cause, suppressed, "[{}][{sides}] Query failed!", self.name);
        }
    }
}
