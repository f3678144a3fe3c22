//! What a rate limiter is told.

use std::fmt;
use std::time::Duration;

use super::machine::Rules;
use super::policy::RateLimiter;
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};

/// The configuration of a rate limiter: so many calls per period, and a burst of them at once.
///
/// ```
/// use seawall::{RateLimit, secs};
/// let limiter = RateLimit::calls(2).per(secs(60)).build()?;
/// assert!(limiter.try_acquire().is_ok());
/// assert!(limiter.try_acquire().is_ok());
/// let limited = limiter.try_acquire().unwrap_err();
/// assert!(limited.retry_after() <= secs(30));
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateLimit {
    calls: u32,
    period: Duration,
    burst: Option<u32>,
    pub(crate) max_wait: Duration,
}

impl RateLimit {
    /// So many calls per period: per second, if [`per`](RateLimit::per) does not say otherwise.
    #[must_use]
    pub const fn calls(calls: u32) -> Self {
        RateLimit { calls, period: Duration::from_secs(1), burst: None, max_wait: Duration::ZERO }
    }

    /// The period.
    #[must_use]
    pub const fn per(mut self, period: Duration) -> Self {
        self.period = period;
        self
    }

    /// So many calls may come at once after a pause. By default as many as the period allows.
    #[must_use]
    pub const fn burst(mut self, burst: u32) -> Self {
        self.burst = Some(burst);
        self
    }

    /// A call waits up to this long for its turn, in the order in which they came. By default it does not wait.
    #[must_use]
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        self
    }

    /// A limiter on its own, on the default clock.
    pub fn build(self) -> Result<RateLimiter, ConfigError> {
        self.build_with(Clock::default())
    }

    /// A limiter on its own, on this clock.
    pub fn build_with(self, clock: Clock) -> Result<RateLimiter, ConfigError> {
        let mut problems = Problems::default();
        self.check(&mut problems);
        problems.into_result("the rate limiter", ())?;
        Ok(RateLimiter::new(&self, clock))
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.refuse_if(self.calls == 0, "rate_limit.calls", || {
            "0 calls would refuse everything; force the breaker open if that is meant".into()
        });
        problems.refuse_if(
            !(Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&self.period),
            "rate_limit.per",
            || format!("a period of {:?} is not between 1 ms and a day; 1 s is usual", self.period),
        );
        let interval = self.period.as_nanos() / u128::from(self.calls.max(1));
        problems.refuse_if(interval < 10, "rate_limit.calls", || {
            format!(
                "{} calls per {:?} are more than any machine makes; leave the limit out",
                self.calls, self.period
            )
        });
        problems.refuse_if(self.burst == Some(0), "rate_limit.burst", || {
            "a burst of 0 would refuse everything; 1 spaces the calls evenly".into()
        });
        problems.refuse_if(self.max_wait > Duration::from_secs(3_600), "rate_limit.max_wait", || {
            format!("{:?} is longer than anybody waits; an hour is the most", self.max_wait)
        });
    }

    pub(super) fn rules(&self) -> Rules {
        Rules::new(self.calls, self.period, self.burst.unwrap_or(self.calls))
    }
}

impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let burst = self.burst.unwrap_or(self.calls);
        write!(f, "{} calls per {:?}, {burst} at once", self.calls, self.period)?;
        if self.max_wait.is_zero() { Ok(()) } else { write!(f, ", waits up to {:?}", self.max_wait) }
    }
}
