//! The limiter itself.

use std::fmt;
use std::time::Duration;

use super::config::RateLimit;
use super::machine::{Rules, Turn, convert, give_back, take};
use crate::clock::{Clock, Rounded, Tick};
use crate::config::{ConfigError, Problems};
use crate::sync::{AtomicU64, Ordering};
use crate::versions::Versions;

/// A rate limiter that many threads share. Made by [`RateLimit::build`].
#[derive(Debug)]
pub struct RateLimiter {
    due: AtomicU64,
    versions: Versions<Version>,
    pub(super) clock: Clock,
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
        self.acquire_within(1, Duration::ZERO).map(|_| ())
    }

    /// Takes so many calls if all of them may pass now. Never waits. No call, or more of them than the burst, are refused.
    pub fn try_acquire_many(&self, calls: u32) -> Result<(), Limited> {
        self.check_fits(calls)?;
        self.acquire_within(calls, Duration::ZERO).map(|_| ())
    }

    /// Takes one call, now or in its turn, if that comes within the configured wait.
    ///
    /// Whoever gets a turn in the future waits until [`Reservation::at`]; dropped before that, the call is given back.
    pub fn reserve(&self) -> Result<Reservation<'_>, Limited> {
        self.reserve_unchecked(1)
    }

    /// As [`reserve`](RateLimiter::reserve), for so many calls at once. No call, or more of them than the burst, are refused.
    pub fn reserve_many(&self, calls: u32) -> Result<Reservation<'_>, Limited> {
        self.check_fits(calls)?;
        self.reserve_unchecked(calls)
    }

    fn check_fits(&self, calls: u32) -> Result<(), Limited> {
        let burst = self.versions.newest().rules.burst_calls();
        if (1..=burst).contains(&calls) {
            return Ok(());
        }
        self.limited.fetch_add(1, Ordering::Relaxed);
        Err(Limited { retry_after: Duration::MAX, calls, burst })
    }

    #[inline]
    fn reserve_unchecked(&self, calls: u32) -> Result<Reservation<'_>, Limited> {
        let wait = self.acquire_within(calls, self.versions.newest().max_wait)?;
        // The stopwatch has a scale of its own, so a turn in the future is told by the clock that is waited by. It is read
        // after the stopwatch: a turn may be told a moment late, never early.
        Ok(Reservation { limiter: self, calls, at: wait.map(|wait| self.clock.precise() + wait) })
    }

    /// How long the calls have to wait, if they have to.
    #[inline]
    fn acquire_within(&self, calls: u32, max_wait: Duration) -> Result<Option<Duration>, Limited> {
        // Read first, because the clock of another kind is a function that all registers in use are saved for.
        let now = self.clock.stopwatch(self.made);
        let rules = &self.versions.newest().rules;
        let mut due = self.due.load(Ordering::Acquire);
        loop {
            let (next, turn) = take(due, now, calls, rules);
            let wait = match turn {
                Turn::Now => None,
                Turn::After(nanos) => Some(self.wait(nanos, calls, max_wait)?),
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
    fn wait(&self, nanos: u64, calls: u32, max_wait: Duration) -> Result<Duration, Limited> {
        let wait = Duration::from_nanos(nanos);
        if wait <= max_wait {
            return Ok(wait);
        }
        self.limited.fetch_add(1, Ordering::Relaxed);
        Err(Limited { retry_after: wait, calls, burst: u32::MAX })
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
    calls: u32,
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
            let _ = self.limiter.due.fetch_update(Ordering::AcqRel, Ordering::Acquire, |due| {
                Some(give_back(due, self.calls, rules))
            });
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
    calls: u32,
    /// Known only where it is exceeded.
    burst: u32,
}

impl Limited {
    /// When to come back. The longest duration there is, if that is [never](Limited::never_fits).
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        self.retry_after
    }

    /// Whether asking again is of no use, because no call was asked for, or more than the burst.
    #[must_use]
    pub fn never_fits(&self) -> bool {
        self.calls == 0 || self.calls > self.burst
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Limited { calls, burst, .. } = self;
        if *calls == 0 {
            return f.write_str("0 calls take nothing of the rate limit; ask for at least 1");
        }
        if calls > burst {
            return write!(f, "{calls} calls at once are above the burst of {burst}; ask for fewer");
        }
        write!(f, "above the rate limit, try again in {}", Rounded(self.retry_after))
    }
}

impl std::error::Error for Limited {}
