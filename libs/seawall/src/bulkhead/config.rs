//! What a bulkhead is told.

use std::fmt;
use std::time::Duration;

use super::policy::Gate;
use crate::clock::Clock;
use crate::config::{ConfigError, Problems};

/// Calls at once. With three seconds for each that is at least seven calls a second, and a hung peer costs twenty waiting
/// tasks instead of all of them.
pub const MAX_CALLS: u32 = 20;
/// Where a wait is asked for, as many may wait as may run, if nothing else is said.
pub const MAX_WAITING: u32 = MAX_CALLS;
/// More calls at once than this are no limit.
const CALLS_MAX: u32 = 1_000_000;

/// The configuration of a bulkhead: at most so many calls at once, and a bounded line of those who wait for a place.
///
/// ```
/// use seawall::{Bulkhead, secs};
/// let gate = Bulkhead::max_calls(2).build()?;
/// let (one, two) = (gate.try_enter()?, gate.try_enter()?);
/// assert!(gate.try_enter().is_err());
/// drop(one);
/// assert!(gate.try_enter().is_ok());
/// # drop(two);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bulkhead {
    pub(super) calls: u32,
    pub(super) waiting: u32,
    pub(crate) max_wait: Duration,
    pub(super) adapt: Option<Adapt>,
}

/// How a limit finds itself.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Adapt {
    /// By timeouts: one more for each round of good answers while the limit is in use, a tenth fewer for a round with a timeout or a
    /// throttled answer.
    Timeouts {
        /// Never fewer.
        min: u32,
        /// Never more.
        max: u32,
    },
    /// By latency: fewer as soon as answers take longer than they did over a long time, before anything times out.
    Latency {
        /// Never fewer.
        min: u32,
        /// Never more.
        max: u32,
    },
}

impl Default for Bulkhead {
    fn default() -> Self {
        Bulkhead::max_calls(MAX_CALLS)
    }
}

impl Bulkhead {
    /// At most this many calls at once.
    #[must_use]
    pub const fn max_calls(calls: u32) -> Self {
        Bulkhead { calls, waiting: 0, max_wait: Duration::ZERO, adapt: None }
    }

    /// Whoever finds it full waits up to this long for a place, in the order of arrival.
    #[must_use]
    pub const fn max_wait(mut self, max_wait: Duration) -> Self {
        self.max_wait = max_wait;
        if self.waiting == 0 {
            self.waiting = MAX_WAITING;
        }
        self
    }

    /// At most this many wait; who comes then is refused at once.
    #[must_use]
    pub const fn max_waiting(mut self, waiting: u32) -> Self {
        self.waiting = waiting;
        self
    }

    /// The limit finds itself, starting from [`max_calls`](Bulkhead::max_calls).
    #[must_use]
    pub const fn adaptive(mut self, adapt: Adapt) -> Self {
        self.adapt = Some(adapt);
        self
    }

    /// A bulkhead on its own, on the default clock.
    pub fn build(self) -> Result<Gate, ConfigError> {
        self.build_with(Clock::default())
    }

    /// A bulkhead on its own, on this clock.
    pub fn build_with(self, clock: Clock) -> Result<Gate, ConfigError> {
        let mut problems = Problems::default();
        self.check(&mut problems);
        problems.into_result("the bulkhead", ())?;
        Ok(Gate::new(&self, clock))
    }

    #[cfg(not(seawall_loom))]
    pub(crate) const fn is_adaptive(&self) -> bool {
        self.adapt.is_some()
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        problems.refuse_if(!(1..=CALLS_MAX).contains(&self.calls), "bulkhead.max_calls", || {
            format!(
                "{} calls at once are not between 1 and {CALLS_MAX}; leave the bulkhead out for no limit",
                self.calls
            )
        });
        problems.refuse_if(self.waiting > CALLS_MAX, "bulkhead.max_waiting", || {
            format!("{} waiting calls are no bound; {CALLS_MAX} is the most", self.waiting)
        });
        problems.refuse_if(self.waiting > 0 && self.max_wait.is_zero(), "bulkhead.max_wait", || {
            "a line in which nobody may wait; say how long one may".into()
        });
        if let Some(Adapt::Timeouts { min, max } | Adapt::Latency { min, max }) = self.adapt {
            problems.refuse_if(min == 0 || min > self.calls || self.calls > max, "bulkhead.adaptive", || {
                format!(
                    "it starts at {} calls, which is not between {min} (at least 1) and {max}",
                    self.calls
                )
            });
        }
    }
}

impl fmt::Display for Bulkhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.adapt {
            None => write!(f, "{} calls at once", self.calls)?,
            Some(Adapt::Timeouts { min, max }) => {
                write!(f, "{min} to {max} calls at once by timeouts, from {}", self.calls)?;
            }
            Some(Adapt::Latency { min, max }) => {
                write!(f, "{min} to {max} calls at once by latency, from {}", self.calls)?;
            }
        }
        if self.waiting > 0 {
            write!(f, ", {} wait up to {:?}", self.waiting, self.max_wait)?;
        }
        Ok(())
    }
}
