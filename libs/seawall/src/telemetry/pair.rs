//! The log of two of a kind: `[DataSource][primary] Query success. duration=…ms`.

use std::fmt::Display;
use std::sync::Arc;

use tracing::{Level, enabled, error, info, warn};

use super::Log;
use super::sampler::{Millis, Sampler};
use crate::clock::{Clock, Tick};
use crate::failover::Side;

/// The log of a failover.
#[derive(Clone)]
pub(crate) struct PairLog {
    name: Arc<str>,
    clock: Clock,
    samplers: Arc<[Sampler; 4]>,
}

impl PairLog {
    pub(crate) fn new(name: &str, clock: Clock, log: &Log) -> Self {
        let samplers = std::array::from_fn(|_| Sampler::new(log.lines_per_second));
        PairLog { name: name.into(), clock, samplers: Arc::new(samplers) }
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.precise()
    }

    pub(crate) fn answered(&self, side: Side, began: Tick) {
        if enabled!(target: "seawall", Level::INFO)
            && let Some(suppressed) = self.samplers[side as usize].pass(self.clock.now())
        {
            let duration = Millis(self.now().since(began));
            info!(target: "seawall", %duration, suppressed, "[{}][{side}] Query success.", self.name);
        }
    }

    pub(crate) fn switches(&self, began: Tick, cause: &impl Display) {
        if enabled!(target: "seawall", Level::WARN)
            && let Some(suppressed) = self.samplers[2].pass(self.clock.now())
        {
            let duration = Millis(self.now().since(began));
            warn!(target: "seawall", %duration, %cause, suppressed, "[{}][primary] Query failed! Asking the secondary.", self.name);
        }
    }

    pub(crate) fn failed(&self, began: Tick, cause: &impl Display) {
        if enabled!(target: "seawall", Level::ERROR)
            && let Some(suppressed) = self.samplers[3].pass(self.clock.now())
        {
            let duration = Millis(self.now().since(began));
            error!(target: "seawall", %duration, %cause, suppressed, "[{}][both] Query failed!", self.name);
        }
    }
}
