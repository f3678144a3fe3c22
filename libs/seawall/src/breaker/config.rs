//! What a breaker is told.

use std::fmt;
use std::time::Duration;

use super::policy::CircuitBreaker;
use super::settings::minimum_of;
#[cfg(not(seawall_loom))]
use super::ticket::Outcome;
use crate::clock::Clock;
use crate::config::{ConfigError, Percent, Problems};
use crate::fault::Names;
#[cfg(not(seawall_loom))]
use crate::fault::{Fault, Listed, Verdict};

/// Failures in a row that open a circuit, if nothing else is said: one or two happen to anybody.
pub const CONSECUTIVE_FAILURES: u32 = 5;
/// How long an open circuit refuses: long enough for a restart, short enough for a person who waits.
pub const COOLDOWN: Duration = Duration::from_secs(30);
/// Probes at once: one is enough to find out, and a service that is just coming up is spared the rest.
pub const PROBES: u32 = 1;
/// Successful probes that close it.
pub const SUCCESSES: u32 = 1;
/// A probe of which nothing was heard for this long has failed.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// The share of slow calls that opens a circuit, in percent.
pub const SLOW_RATE: u8 = 100;
/// The longest cooldown, where cooldowns grow.
pub const COOLDOWN_MAX: Duration = Duration::from_secs(600);
/// Below this many calls a rate means nothing.
pub const MINIMUM_CALLS: u32 = 20;
/// A call that was dropped after this long counts as a failure, where no slow threshold and no attempt timeout
/// says otherwise.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(1);

/// Which calls a rate is taken of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Window {
    /// The last so many calls.
    Calls(u32),
    /// The calls of the last while.
    Time(Duration),
}

/// What the breaker of a guard counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Scope {
    /// Each attempt: the circuit opens as soon as the peer has failed often enough.
    #[default]
    Attempt,
    /// Each call with all its attempts as one.
    Call,
}

/// The configuration of a circuit breaker.
///
/// It begins with what opens the circuit, [`consecutive_failures`](Breaker::consecutive_failures) or
/// [`failure_rate`](Breaker::failure_rate), and everything else has a default.
#[derive(Clone, PartialEq, Debug)]
pub struct Breaker {
    pub(super) trip: Trip,
    pub(super) slow: Option<(Duration, Percent)>,
    pub(super) cooldown: Duration,
    pub(super) growth: f64,
    pub(super) cooldown_max: Duration,
    pub(super) jitter: Percent,
    pub(super) probes: u32,
    pub(super) judged: Judged,
    pub(super) probe_timeout: Duration,
    pub(super) ramp: Duration,
    pub(super) automatic: bool,
    pub(super) abandoned_after: Option<Duration>,
    pub(crate) scope: Scope,
    record_names: Option<Names>,
    ignore_names: Option<Names>,
    pub(super) seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Trip {
    Streak(u32),
    Rate { failures: Percent, window: Window, minimum: Option<u32> },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Judged {
    Each { successes: u32 },
    Together,
}

impl Default for Breaker {
    fn default() -> Self {
        Breaker::consecutive_failures(CONSECUTIVE_FAILURES)
    }
}

impl Breaker {
    /// Opens after this many failures in a row.
    #[must_use]
    pub fn consecutive_failures(failures: u32) -> Self {
        Breaker::new(Trip::Streak(failures))
    }

    /// Opens when this share of the calls in the window has failed: of the last 100 calls, if neither
    /// [`over_calls`](Breaker::over_calls) nor [`over_time`](Breaker::over_time) says otherwise.
    #[must_use]
    pub fn failure_rate(share: impl Into<Percent>) -> Self {
        Breaker::new(Trip::Rate { failures: share.into(), window: Window::Calls(100), minimum: None })
    }

    fn new(trip: Trip) -> Self {
        Breaker {
            trip,
            slow: None,
            cooldown: COOLDOWN,
            growth: 1.0,
            cooldown_max: COOLDOWN_MAX,
            jitter: Percent::from(0),
            probes: PROBES,
            judged: Judged::Each { successes: SUCCESSES },
            probe_timeout: PROBE_TIMEOUT,
            ramp: Duration::ZERO,
            automatic: false,
            abandoned_after: None,
            scope: Scope::Attempt,
            record_names: None,
            ignore_names: None,
            seed: None,
        }
    }

    /// The rate is taken of the last `calls` calls.
    #[must_use]
    pub fn over_calls(self, calls: u32) -> Self {
        self.over(Window::Calls(calls))
    }

    /// The rate is taken of the calls of the last while.
    #[must_use]
    pub fn over_time(self, window: Duration) -> Self {
        self.over(Window::Time(window))
    }

    fn over(mut self, new: Window) -> Self {
        match &mut self.trip {
            Trip::Rate { window, .. } => *window = new,
            Trip::Streak(_) => {
                self.trip = Trip::Rate { failures: Percent::from(50), window: new, minimum: None }
            }
        }
        self
    }

    /// No rate counts below this many calls in the window. By default 20, or the whole window if it is smaller.
    #[must_use]
    pub fn minimum_calls(mut self, calls: u32) -> Self {
        match &mut self.trip {
            Trip::Rate { minimum, .. } => *minimum = Some(calls),
            Trip::Streak(_) => {
                self.trip = Trip::Rate {
                    failures: Percent::from(50),
                    window: Window::Calls(100),
                    minimum: Some(calls),
                };
            }
        }
        self
    }

    /// Calls that take at least this long, successful or not, are slow, and a window full of them opens the circuit too.
    /// [`slow_rate`](Breaker::slow_rate) sets a smaller share.
    #[must_use]
    pub fn slow_after(mut self, threshold: Duration) -> Self {
        let share = self.slow.map_or(SLOW_RATE.into(), |(_, share)| share);
        self.slow = Some((threshold, share));
        self
    }

    /// The share of slow calls in the window that opens the circuit. Needs [`slow_after`](Breaker::slow_after).
    #[must_use]
    pub fn slow_rate(mut self, share: impl Into<Percent>) -> Self {
        // A threshold of zero is refused when the breaker is built, with a text that names what is missing.
        let threshold = self.slow.map_or(Duration::ZERO, |(threshold, _)| threshold);
        self.slow = Some((threshold, share.into()));
        self
    }

    /// How long an open circuit refuses before it probes.
    #[must_use]
    pub fn cooldown(mut self, cooldown: Duration) -> Self {
        self.cooldown = cooldown;
        self
    }

    /// Each trip that follows the one before without health in between has a cooldown this many times longer,
    /// up to [`cooldown_max`](Breaker::cooldown_max).
    #[must_use]
    pub fn cooldown_growth(mut self, times: f64) -> Self {
        self.growth = times;
        self
    }

    /// The longest cooldown, where it grows.
    #[must_use]
    pub fn cooldown_max(mut self, max: Duration) -> Self {
        self.cooldown_max = max;
        self
    }

    /// Up to this share of the cooldown is added by chance, so that many processes do not probe together.
    #[must_use]
    pub fn cooldown_jitter(mut self, share: impl Into<Percent>) -> Self {
        self.jitter = share.into();
        self
    }

    /// At most this many probes at a time while half-open.
    #[must_use]
    pub fn probes(mut self, probes: u32) -> Self {
        self.probes = probes;
        self
    }

    /// Closes after this many successful probes; the first failed one opens it again.
    #[must_use]
    pub fn close_after(mut self, successes: u32) -> Self {
        self.judged = Judged::Each { successes };
        self
    }

    /// Lets [`probes`](Breaker::probes) probes through in all and judges them together by the failure rate, as resilience4j
    /// does.
    #[must_use]
    pub fn judge_probes_together(mut self) -> Self {
        self.judged = Judged::Together;
        self
    }

    /// A probe of which nothing was heard for this long has failed, so that a hung call or a lost ticket can't
    /// keep the circuit half-open.
    #[must_use]
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    /// After closing, the share of calls that pass grows evenly over this time, so that a service that has just
    /// recovered is not hit by everybody at once.
    #[must_use]
    pub fn ramp(mut self, ramp: Duration) -> Self {
        self.ramp = ramp;
        self
    }

    /// Looking at an open circuit whose cooldown is over makes it half-open, without waiting for a call.
    #[must_use]
    pub fn automatic_half_open(mut self) -> Self {
        self.automatic = true;
        self
    }

    /// A call that is dropped after it ran for longer than this counts as a failure. By default the smallest of the slow
    /// threshold, half of the attempt timeout and half of the call timeout, or one second if there is none of them.
    ///
    /// A call that is dropped earlier counts as nothing while most calls are answered. Where calls that were dropped early
    /// outnumber the answers of late, the peer is suspected to hang, and each call that starts from then on and is dropped
    /// early counts as a failure too.
    #[must_use]
    pub fn abandoned_after(mut self, threshold: Duration) -> Self {
        self.abandoned_after = Some(threshold);
        self
    }

    /// What a guard's breaker counts: each attempt (the default) or each call.
    #[must_use]
    pub fn scope(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// In a guard only faults with these [names](crate::Fault::named) are failures; others count as successes. Well-known
    /// exceptions of Java stand for the faults of their kind: `IOException`, `SocketTimeoutException`.
    #[must_use]
    pub fn record_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.record_names = Some(Names::new(names));
        self
    }

    /// In a guard faults with these [names](crate::Fault::named) are neither failures nor successes.
    #[must_use]
    pub fn ignore_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.ignore_names = Some(Names::new(names));
        self
    }

    /// What a fault is to the circuit of a guard.
    #[cfg(not(seawall_loom))]
    pub(crate) fn outcome_of(&self, fault: Fault) -> Outcome {
        let lists = |names: &Names| names.lists(fault) != Listed::No;
        if fault.verdict() == Verdict::Rejected || self.ignore_names.as_ref().is_some_and(lists) {
            return Outcome::Ignored;
        }
        match &self.record_names {
            Some(names) if lists(names) => Outcome::Failure,
            Some(_) => Outcome::Success,
            None if fault.counts() => Outcome::Failure,
            None => Outcome::Ignored,
        }
    }

    /// Fixes what is left to chance (jitter, ramp), so that a test is exact.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// From when on a call is slow, if that counts.
    #[cfg(not(seawall_loom))]
    pub(crate) fn slow_threshold(&self) -> Option<Duration> {
        self.slow.map(|(threshold, _)| threshold)
    }

    /// A circuit on its own, outside of any guard, on the default clock.
    pub fn build(self) -> Result<CircuitBreaker, ConfigError> {
        self.build_with(Clock::default())
    }

    /// A circuit on its own, on this clock.
    pub fn build_with(self, clock: Clock) -> Result<CircuitBreaker, ConfigError> {
        let mut problems = Problems::default();
        self.check(&mut problems);
        problems.into_result("the breaker", ())?;
        Ok(CircuitBreaker::new(&self, clock, None))
    }
}

impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.trip {
            Trip::Streak(failures) => write!(f, "opens after {failures} failures in a row")?,
            Trip::Rate { failures, window, minimum } => {
                write!(f, "opens at {failures} failures")?;
                if let Some((threshold, share)) = self.slow {
                    write!(f, " or {share} calls of {threshold:?} or more")?;
                }
                match window {
                    Window::Calls(calls) => write!(f, " among the last {calls} calls")?,
                    Window::Time(time) => write!(f, " in the last {time:?}")?,
                }
                write!(f, " (at least {})", minimum_of(window, minimum))?;
            }
        }
        write!(f, ", for {:?}", self.cooldown)?;
        if self.growth > 1.0 {
            write!(f, " times {} for each further trip up to {:?}", self.growth, self.cooldown_max)?;
        }
        if self.jitter.millionths() > 0 {
            write!(f, " and up to {} more", self.jitter)?;
        }
        match self.judged {
            Judged::Each { successes } => {
                let (probe, success) = (plural(self.probes, "probe", ""), plural(successes, "success", "e"));
                write!(f, "; half-open with {probe} at once, closes after {success}")?;
            }
            Judged::Together => write!(f, "; half-open with {} probes judged together", self.probes)?,
        }
        if !self.ramp.is_zero() {
            write!(f, "; ramps up over {:?}", self.ramp)?;
        }
        if let Some(names) = &self.record_names {
            write!(f, "; counts only {names}")?;
        }
        if let Some(names) = &self.ignore_names {
            write!(f, "; ignores {names}")?;
        }
        Ok(())
    }
}

fn plural(number: u32, noun: &str, before_s: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{before_s}s") }
}
