//! The limiter itself.

use std::fmt;
use std::time::Duration;

use super::config::RateLimit;
use super::machine::{Rules, Turn, convert, give_back, take};
use crate::clock::{Clock, Tick};
use crate::config::{ConfigError, Problems};
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A rate limiter that many threads share. Made by [`RateLimit::build`].
#[derive(Debug)]
pub struct RateLimiter {
    due: AtomicU64,
    versions: Versions<Version>,
    clock: Clock,
    /// When it was made. Where the clock may begin anywhere, due times count from here.
    made: Tick,
    limited: AtomicU64,
}

#[derive(Debug)]
struct Version {
    rules: Rules,
    max_wait: Duration,
    text: String,
}

impl Version {
    fn new(limit: &RateLimit) -> Self {
        Version { rules: limit.rules(), max_wait: limit.max_wait, text: limit.to_string() }
    }
}

impl RateLimiter {
    pub(crate) fn new(limit: &RateLimit, clock: Clock) -> Self {
        RateLimiter {
            due: AtomicU64::new(0),
            versions: Versions::new(Version::new(limit)),
            made: clock.precise(),
            clock,
            limited: AtomicU64::new(0),
        }
    }

    /// Takes one call if it may pass now. Never waits.
    #[inline]
    pub fn try_acquire(&self) -> Result<(), Limited> {
        self.acquire_within(Duration::ZERO).map(|_| ())
    }

    /// Takes one call, now or in its turn, if that comes within the configured wait.
    ///
    /// Whoever gets a turn in the future waits until [`Reservation::at`]; dropped before that, the call is given back.
    pub fn reserve(&self) -> Result<Reservation<'_>, Limited> {
        let wait = self.acquire_within(self.versions.newest().max_wait)?;
        // The stopwatch has a scale of its own, so a turn in the future is told by the clock that is waited by. It is read
        // after the stopwatch: a turn may be told a moment late, never early.
        Ok(Reservation { limiter: self, at: wait.map(|wait| self.clock.precise() + wait) })
    }

    /// How long the call has to wait, if it has to.
    #[inline]
    fn acquire_within(&self, max_wait: Duration) -> Result<Option<Duration>, Limited> {
        // Read first, because the clock of another kind is a function that all registers in use are saved for.
        let now = self.clock.stopwatch(self.made);
        let rules = &self.versions.newest().rules;
        let mut due = self.due.load(Ordering::Acquire);
        loop {
            let (next, turn) = take(due, now, rules);
            let wait = match turn {
                Turn::Now => None,
                Turn::After(nanos) => Some(self.wait(nanos, max_wait)?),
            };
            match self.due.compare_exchange_weak(due, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(wait),
                Err(other) => due = other,
            }
        }
    }

    /// The wait, if it is not too long. Out of line, so that what passes at once is short.
    #[cold]
    #[inline(never)]
    fn wait(&self, nanos: u64, max_wait: Duration) -> Result<Duration, Limited> {
        let wait = Duration::from_nanos(nanos);
        if wait <= max_wait {
            return Ok(wait);
        }
        self.limited.fetch_add(1, Ordering::Relaxed);
        Err(Limited { retry_after: wait })
    }

    /// How many calls were refused.
    #[must_use]
    pub fn limited(&self) -> u64 {
        self.limited.load(Ordering::Relaxed)
    }

    /// Changes the limit of a running limiter. As many calls as are spent of the burst stay spent.
    pub fn reconfigure(&self, limit: &RateLimit) -> Result<(), ConfigError> {
        let mut problems = Problems::default();
        limit.check(&mut problems);
        problems.into_result("the rate limiter", ())?;
        let published = self.versions.publish(|old| {
            let new = Version::new(limit);
            let now = self.clock.stopwatch(self.made);
            let _ = self.due.fetch_update(Ordering::AcqRel, Ordering::Acquire, |due| {
                Some(convert(due, now, &old.rules, &new.rules))
            });
            new
        });
        published.map_err(|too_many| too_many.refusal("the rate limiter", "rate_limit"))
    }

    /// What it allows, in words.
    #[must_use]
    pub fn explain(&self) -> &str {
        &self.versions.newest().text
    }
}

/// A turn, now or later.
#[must_use = "dropping a turn that has not come gives it back"]
pub struct Reservation<'a> {
    limiter: &'a RateLimiter,
    at: Option<Tick>,
}

impl Reservation<'_> {
    /// When the turn comes; `None` if it is there.
    #[must_use]
    pub fn at(&self) -> Option<Tick> {
        self.at
    }

    /// The turn has come and is used.
    pub fn used(mut self) {
        self.at = None;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.at.is_some() {
            let rules = &self.limiter.versions.newest().rules;
            let _ = self
                .limiter
                .due
                .fetch_update(Ordering::AcqRel, Ordering::Acquire, |due| Some(give_back(due, rules)));
        }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("at", &self.at).finish()
    }
}

/// A call above the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limited {
    retry_after: Duration,
}

impl Limited {
    /// When to come back.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.retry_after
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "above the rate limit, try again in {:?}", self.retry_after)
    }
}

impl std::error::Error for Limited {}
