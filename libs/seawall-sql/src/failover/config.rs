//! What a failover is told.

use std::time::Duration;

use seawall::failover::Failover;
use seawall::{Breaker, ConfigError, Guard, secs};
use sqlx::pool::PoolOptions;
use sqlx::{Database, Pool};

use super::executor::SqlFailover;
use super::log::SourceLog;

/// The time within which a connection has to be had. `sqlx` itself connects again with growing waits until then, so that a
/// server that restarts within it is not even noticed; a longer time is added to every call while a server is down and its
/// circuit is still closed.
pub const ACQUIRE_TIMEOUT: Duration = secs(2);

/// The time that one attempt on one side may take: more than [`ACQUIRE_TIMEOUT`], and less than a user waits.
pub const ATTEMPT_TIMEOUT: Duration = secs(5);

/// After this many failures in a row a side is not asked any more until its cooldown is over.
pub const FAILURES: u32 = 5;

/// How long a side that failed is left alone. The first calls after that ask it again, and the others follow if it answers. A
/// primary that has returned is thus used again about this long after its last failure; later, if its pool still holds
/// connections that hang.
pub const COOLDOWN: Duration = secs(5);

/// Where writes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum WritePolicy {
    /// Writes go to the primary alone.
    #[default]
    PrimaryOnly,
    /// A write goes to the next side if the one before certainly did nothing: it could not be reached, refused, or is a
    /// standby that takes no writes. For servers of one cluster, of which one at a time takes writes.
    AnySide,
}

/// Options for a pool that gets over the restart of its server: it fails within [`ACQUIRE_TIMEOUT`] instead of `sqlx`'s 30 s,
/// and tests each connection before use, so that one that broke while it lay idle is thrown away.
#[must_use]
pub fn pool_options<DB: Database>() -> PoolOptions<DB> {
    PoolOptions::new().acquire_timeout(ACQUIRE_TIMEOUT).test_before_acquire(true)
}

/// Builds a [`SqlFailover`].
#[derive(Debug)]
pub struct SqlFailoverBuilder<DB: Database> {
    name: String,
    sides: Vec<(Option<Guard>, Pool<DB>)>,
    writes: WritePolicy,
    call_timeout: Option<Duration>,
}

impl<DB: Database> SqlFailoverBuilder<DB> {
    pub(super) fn new(name: String) -> Self {
        SqlFailoverBuilder { name, sides: Vec::new(), writes: WritePolicy::default(), call_timeout: None }
    }

    /// Adds a side with a guard of its own: [`ATTEMPT_TIMEOUT`], one attempt, and a breaker of [`FAILURES`] and [`COOLDOWN`].
    /// The first side is the primary.
    #[must_use]
    pub fn side(mut self, pool: Pool<DB>) -> Self {
        self.sides.push((None, pool));
        self
    }

    /// Adds a side behind your own guard. Every side but the last needs a breaker.
    #[must_use]
    pub fn guarded_side(mut self, guard: Guard, pool: Pool<DB>) -> Self {
        self.sides.push((Some(guard), pool));
        self
    }

    /// Says where writes go.
    #[must_use]
    pub fn writes(mut self, policy: WritePolicy) -> Self {
        self.writes = policy;
        self
    }

    /// Bounds a call over all its sides. Without it each side takes as long as its guard allows.
    #[must_use]
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = Some(timeout);
        self
    }

    /// Builds the failover. It is an error to give it fewer than two sides, or a side without a breaker before the last one.
    pub fn build(self) -> Result<SqlFailover<DB>, ConfigError> {
        let mut guards = Vec::with_capacity(self.sides.len());
        let mut pools = Vec::with_capacity(self.sides.len());
        for (index, (guard, pool)) in self.sides.into_iter().enumerate() {
            guards.push(match guard {
                Some(guard) => guard,
                None => Guard::builder(format!("{}-{}", self.name, index + 1))
                    .attempt_timeout(ATTEMPT_TIMEOUT)
                    .no_retry()
                    .breaker(Breaker::consecutive_failures(FAILURES).cooldown(COOLDOWN))
                    .build()?,
            });
            pools.push(pool);
        }
        let mut failover = Failover::of(guards)?;
        if let Some(timeout) = self.call_timeout {
            failover = failover.call_timeout(timeout);
        }
        Ok(SqlFailover::new(failover, pools.into(), self.writes, SourceLog::new(&self.name)))
    }
}
