//! How locks are taken, held and given back.

use std::num::NonZeroU32;
use std::time::Duration;

use seawall::ConfigError;

/// The length of a lease: a dead holder's lock is free after a second.
pub const LEASE: Duration = Duration::from_secs(1);

/// The shortest lease: below it the network's noise is longer than a third of the lease.
pub const LEASE_MIN: Duration = Duration::from_millis(50);

/// The longest lease: nobody should wait longer than an hour for a dead holder.
pub const LEASE_MAX: Duration = Duration::from_secs(3_600);

/// The number of attempts to take a lock: with the delay between them they wait about five seconds, which is five leases of the
/// default length, so that a dead holder's lock is free before they end.
pub const ATTEMPTS: NonZeroU32 = NonZeroU32::new(32).expect("it is not zero");

/// The longest time of one attempt to take a lock. It is a third of the lease where that is shorter: a grant that comes later
/// would have to be renewed at once. A store whose own requests end within half of the lease needs no other limit. A store that hangs holds a caller up for this long, times the number of attempts.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// The longest delay between two attempts; each is between half of it and all of it.
pub const RETRY_DELAY: Duration = Duration::from_millis(200);

/// The longest delay between two attempts of [`Wait::UntilLocked`]: who waits for ever waits for this lock only.
pub const UNTIL_LOCKED_DELAY: Duration = Duration::from_millis(50);

/// How long giving the lock back may take. The lease ends it anyway; a caller that waits longer waits for nothing.
pub const RELEASE_LIMIT: Duration = Duration::from_secs(5);

/// The longest time that a lock is held: none unless told, because only the caller knows how long its work may take.
pub const MAX_HOLD: Option<Duration> = None;

/// What to do while somebody else has the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Wait {
    /// Makes this many attempts with this delay between them, whether somebody has the lock or the store failed. A fault of the
    /// store that is not transient, such as a right that is missing, ends them.
    Attempts {
        /// The number of attempts.
        attempts: NonZeroU32,
        /// The longest delay between two attempts.
        delay: Duration,
    },
    /// Waits as long as somebody else has the lock, with attempts every [`UNTIL_LOCKED_DELAY`]. A store that fails ends it.
    UntilLocked,
}

impl Wait {
    /// One attempt.
    pub const ONCE: Wait = Wait::Attempts { attempts: NonZeroU32::MIN, delay: RETRY_DELAY };
}

impl Default for Wait {
    fn default() -> Self {
        Wait::Attempts { attempts: ATTEMPTS, delay: RETRY_DELAY }
    }
}

/// How one lock is taken, held and given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LockOptions {
    pub(super) lease: Duration,
    pub(super) wait: Wait,
    pub(super) release_limit: Duration,
    pub(super) max_hold: Option<Duration>,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions { lease: LEASE, wait: Wait::default(), release_limit: RELEASE_LIMIT, max_hold: MAX_HOLD }
    }
}

impl LockOptions {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let mut problems = Vec::new();
        if !(LEASE_MIN..=LEASE_MAX).contains(&self.lease) {
            let (lease, least, most) = (self.lease, LEASE_MIN, LEASE_MAX);
            problems.push(("lease", format!("it is {lease:?}; write a time from {least:?} to {most:?}")));
        }
        if self.release_limit.is_zero() {
            problems.push(("release_limit", format!("it is zero; write a time such as {RELEASE_LIMIT:?}")));
        }
        if self.max_hold.is_some_and(|hold| hold.is_zero()) {
            problems.push(("max_hold", "it is zero; leave it out for no limit".into()));
        }
        if problems.is_empty() { Ok(()) } else { Err(ConfigError::new("the lock", problems)) }
    }
}
