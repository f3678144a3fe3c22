//! Settings of `once`.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::{Clock, ConfigError};
use tokio::sync::watch;

use super::once::{Idempotency, Shared};
use super::store::IdempotencyStore;
use super::telemetry::Telemetry;
use super::{KEPT, LEASE};

/// The largest result that is stored: answers of APIs are below it, and files belong elsewhere.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;

/// The name in metrics and log lines of a handle that has none.
pub const NAME: &str = "default";

/// The shortest lease. A third of it has to be longer than a slow answer of the store.
pub const LEASE_MIN: Duration = Duration::from_millis(100);

/// What happens to a key whose execution was abandoned: its call was dropped, it panicked, or its lease was lost. Nobody knows
/// whether the work took effect.
///
/// After the death of the whole process the key expires, whatever is chosen here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum AbandonedAction {
    /// The claim stands until its lease ends, and then the next call runs the work again: the same as after the death of the
    /// process. Calls before that get [`InFlight`](super::OnceError::InFlight).
    #[default]
    Expire,
    /// The key is freed at once. For work that may be repeated at any time, also beside its first execution.
    Release,
    /// The key is blocked until [`resolve`](Idempotency::resolve), and later calls get
    /// [`Unknown`](super::OnceError::Unknown). If the store can't be told within five seconds, the key expires.
    Block,
}

/// Chooses the settings of an [`Idempotency`] handle.
#[must_use]
pub struct IdempotencyBuilder {
    store: Arc<dyn IdempotencyStore>,
    name: Arc<str>,
    lease: Duration,
    ttl: Duration,
    result_bytes_max: usize,
    abandoned: AbandonedAction,
    clock: Clock,
}

impl IdempotencyBuilder {
    pub(super) fn new(store: Arc<dyn IdempotencyStore>) -> Self {
        IdempotencyBuilder {
            store,
            name: NAME.into(),
            lease: LEASE,
            ttl: KEPT,
            result_bytes_max: RESULT_BYTES_MAX,
            abandoned: AbandonedAction::default(),
            clock: Clock::default(),
        }
    }

    /// Sets the name in metrics and log lines: what the work is, such as `payments`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Sets how long a dead executor's key is blocked; [`LEASE`] unless told. The handle renews it every third of this time
    /// while the work runs.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets how long results are kept; [`KEPT`] unless told. Keep them longer than any client repeats its requests.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the size of the largest result that is stored; [`RESULT_BYTES_MAX`] unless told.
    pub fn result_bytes_max(mut self, bytes: usize) -> Self {
        self.result_bytes_max = bytes;
        self
    }

    /// Sets what happens to a key whose call was dropped, panicked, or lost its lease; it [expires](AbandonedAction::Expire)
    /// unless told.
    pub fn on_abandoned(mut self, action: AbandonedAction) -> Self {
        self.abandoned = action;
        self
    }

    /// Sets the clock that the validity of leases is measured with.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Makes the handle.
    pub fn build(self) -> Result<Idempotency, ConfigError> {
        let mut problems = Vec::new();
        if self.lease < LEASE_MIN {
            let reason = format!("a lease of {:?} can't be renewed in time; 30 s is usual", self.lease);
            problems.push(("idempotency.lease", reason));
        }
        if self.ttl < self.lease {
            let reason = format!("results are kept for {:?}, which is shorter than the lease", self.ttl);
            problems.push(("idempotency.ttl", reason));
        }
        if !problems.is_empty() {
            return Err(ConfigError::new("idempotency", problems));
        }
        let telemetry = Telemetry::new(&self.name);
        Ok(Idempotency::of(Shared {
            store: self.store,
            lease: self.lease,
            ttl: self.ttl,
            result_bytes_max: self.result_bytes_max,
            abandoned: self.abandoned,
            detached: watch::Sender::new(0),
            clock: self.clock,
            telemetry,
        }))
    }
}

impl fmt::Debug for IdempotencyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdempotencyBuilder")
            .field("name", &self.name)
            .field("lease", &self.lease)
            .field("ttl", &self.ttl)
            .field("result_bytes_max", &self.result_bytes_max)
            .field("abandoned", &self.abandoned)
            .finish_non_exhaustive()
    }
}
