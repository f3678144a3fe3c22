//! What locks do as numbers and log lines.

use std::fmt::Display;
use std::time::Duration;

#[cfg(feature = "metrics")]
use metrics::{counter, gauge, histogram};
#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;
#[cfg(feature = "tracing")]
use seawall::telemetry::{LINES_PER_SECOND, Millis, Sampler, current_trace_id};
#[cfg(feature = "tracing")]
use tracing::{Level, enabled, info, warn};

use super::{BootClock, FencingToken, Lease, LockError, LockKey};

/// Keys are no labels, because there is no bound on them.
#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
    (
        "seawall.lock.wait.duration",
        Measure::Histogram,
        &["locks", "outcome"],
        "how long callers waited for a lock",
    ),
    ("seawall.lock.waiting", Measure::Gauge, &["locks"], "callers that wait for a lock now"),
    (
        "seawall.lock.contentions",
        Measure::Counter,
        &["locks"],
        "attempts that found the lock held by somebody else",
    ),
    ("seawall.lock.hold.duration", Measure::Histogram, &["locks"], "how long locks were held"),
    (
        "seawall.lock.losses",
        Measure::Counter,
        &["locks", "reason"],
        "locks that were lost while their work ran",
    ),
    ("seawall.lock.renewals.failed", Measure::Counter, &["locks"], "renewals that the store did not answer"),
    ("seawall.lock.releases.failed", Measure::Counter, &["locks"], "locks that could not be given back"),
];

/// How waiting for a lock ended, in the label `outcome`.
#[derive(Clone, Copy)]
pub(super) enum WaitOutcome {
    Acquired,
    Contended,
    Failed,
    /// The caller dropped its call.
    Abandoned,
}

impl WaitOutcome {
    #[cfg(feature = "metrics")]
    fn label(self) -> &'static str {
        match self {
            WaitOutcome::Acquired => "acquired",
            WaitOutcome::Contended => "contended",
            WaitOutcome::Failed => "failed",
            WaitOutcome::Abandoned => "abandoned",
        }
    }
}

/// What is told about the locks of one name.
pub(super) struct LockTelemetry {
    #[cfg(feature = "metrics")]
    name: std::sync::Arc<str>,
    #[cfg(any(feature = "metrics", feature = "tracing"))]
    clock: BootClock,
    #[cfg(feature = "tracing")]
    samplers: Samplers,
}

/// Each kind of line has its own allowance, so that many of one kind leave room for the others.
#[cfg(feature = "tracing")]
struct Samplers {
    acquired: Sampler,
    refused: Sampler,
    lost: Sampler,
    renewals: Sampler,
    releases: Sampler,
}

/// One caller that waits for a lock.
pub(super) struct Waiter<'a> {
    telemetry: &'a LockTelemetry,
    outcome: WaitOutcome,
    waited: Option<Duration>,
    #[cfg(feature = "metrics")]
    began: seawall::Tick,
}

/// Writes one line, if anybody listens at that level and the sampler lets it pass.
#[cfg(feature = "tracing")]
macro_rules! line {
    ($write:ident at $level:ident, $self:ident.$sampler:ident, $status:literal, $($fields:tt)+) => {
        if enabled!(target: "seawall", Level::$level)
            && let Some(suppressed) = $self.samplers.$sampler.pass($self.clock.now())
        {
            $write!(target: "seawall", traceId = current_trace_id(), $($fields)+, suppressed, $status);
        }
    };
}

#[cfg_attr(not(all(feature = "metrics", feature = "tracing")), allow(unused_variables, clippy::unused_self))]
impl LockTelemetry {
    pub(super) fn new(name: &str, clock: &BootClock) -> Self {
        #[cfg(feature = "tracing")]
        let sampler = || Sampler::new(LINES_PER_SECOND);
        LockTelemetry {
            #[cfg(feature = "metrics")]
            name: name.into(),
            #[cfg(any(feature = "metrics", feature = "tracing"))]
            clock: clock.clone(),
            #[cfg(feature = "tracing")]
            samplers: Samplers {
                acquired: sampler(),
                refused: sampler(),
                lost: sampler(),
                renewals: sampler(),
                releases: sampler(),
            },
        }
    }

    /// A caller begins to wait.
    pub(super) fn waits(&self) -> Waiter<'_> {
        #[cfg(feature = "metrics")]
        gauge!("seawall.lock.waiting", "locks" => self.name.clone()).increment(1.0);
        Waiter {
            telemetry: self,
            outcome: WaitOutcome::Abandoned,
            waited: None,
            #[cfg(feature = "metrics")]
            began: self.clock.now(),
        }
    }

    pub(super) fn acquired(&self, lease: &Lease, attempts: u32, waited: Duration) {
        #[cfg(feature = "tracing")]
        line!(info at INFO, self.acquired, "[Lock][Acquire] Success.", key = %lease.key(), fence = lease.fence().as_i64(), attempts, duration = %Millis(waited));
    }

    /// An attempt found the lock held.
    pub(super) fn contended(&self) {
        #[cfg(feature = "metrics")]
        counter!("seawall.lock.contentions", "locks" => self.name.clone()).increment(1);
    }

    pub(super) fn not_acquired(&self, error: &LockError, attempts: u32, waited: Duration) {
        #[cfg(feature = "tracing")]
        line!(warn at WARN, self.refused, "[Lock][Acquire] Failed!", attempts, duration = %Millis(waited), cause = %WithSources(error));
    }

    /// Work under a lock has ended, in whatever way.
    pub(super) fn held(&self, held: Duration) {
        #[cfg(feature = "metrics")]
        histogram!("seawall.lock.hold.duration", "locks" => self.name.clone()).record(held.as_secs_f64());
    }

    /// Work was cancelled.
    pub(super) fn lost(&self, error: &LockError, fence: FencingToken) {
        #[cfg(feature = "metrics")]
        {
            let reason = match error {
                LockError::Lost { reason: super::LossReason::TakenOver, .. } => "taken_over",
                LockError::HeldTooLong { .. } => "held_too_long",
                _ => "not_renewed",
            };
            counter!("seawall.lock.losses", "locks" => self.name.clone(), "reason" => reason).increment(1);
        }
        #[cfg(feature = "tracing")]
        line!(warn at WARN, self.lost, "[Lock][Hold] Failed!", fence = fence.as_i64(), cause = %error);
    }

    pub(super) fn renewal_failed(&self, key: &LockKey, cause: &dyn Display) {
        #[cfg(feature = "metrics")]
        counter!("seawall.lock.renewals.failed", "locks" => self.name.clone()).increment(1);
        #[cfg(feature = "tracing")]
        line!(warn at WARN, self.renewals, "[Lock][Renew] Failed!", key = %key, cause = %cause);
    }

    pub(super) fn release_failed(&self, key: &LockKey, cause: &dyn Display) {
        #[cfg(feature = "metrics")]
        counter!("seawall.lock.releases.failed", "locks" => self.name.clone()).increment(1);
        #[cfg(feature = "tracing")]
        line!(warn at WARN, self.releases, "[Lock][Release] Failed!", key = %key, cause = %cause);
    }
}

impl Waiter<'_> {
    pub(super) fn ended(mut self, outcome: WaitOutcome, waited: Duration) {
        (self.outcome, self.waited) = (outcome, Some(waited));
    }
}

/// A caller that drops its call while it waits has ended its wait too.
impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        #[cfg(feature = "metrics")]
        {
            let name = &self.telemetry.name;
            let waited = self.waited.unwrap_or_else(|| self.telemetry.clock.now().since(self.began));
            gauge!("seawall.lock.waiting", "locks" => name.clone()).decrement(1.0);
            histogram!("seawall.lock.wait.duration", "locks" => name.clone(), "outcome" => self.outcome.label())
                .record(waited.as_secs_f64());
        }
        #[cfg(not(feature = "metrics"))]
        let _ = (self.telemetry, self.outcome, self.waited);
    }
}

/// An error with what the store said. The last source is a fault, which the store's error names already.
#[cfg(feature = "tracing")]
struct WithSources<'a>(&'a LockError);

#[cfg(feature = "tracing")]
impl Display for WithSources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)?;
        match self.0 {
            LockError::Store { error, .. } => write!(f, ": {error}"),
            _ => Ok(()),
        }
    }
}
