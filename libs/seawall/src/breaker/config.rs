//! What a breaker is told.

use std::fmt;
use std::time::Duration;

use super::machine::{Judge, Rules};
use super::policy::CircuitBreaker;
use super::word::{PROBES_MAX, STREAK_MAX};
use crate::chance::entropy;
use crate::clock::{Clock, units};
use crate::config::{ConfigError, Percent, Problems};
use crate::stats::RING_MAX;

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
/// Below this many calls a rate means nothing.
pub const MINIMUM_CALLS: u32 = 20;
/// A call that was dropped after this long counts as a failure, where no slow threshold and no attempt timeout
/// says otherwise.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(1);

/// Which calls a rate is taken of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Window {
    /// The last so many calls.
    Calls(u32),
    /// The calls of the last while.
    Time(Duration),
}

/// What the breaker of a guard counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
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
    trip: Trip,
    slow: Option<(Duration, Percent)>,
    cooldown: Duration,
    growth: f64,
    cooldown_max: Duration,
    jitter: Percent,
    probes: u32,
    judged: Judged,
    probe_timeout: Duration,
    ramp: Duration,
    automatic: bool,
    abandoned_after: Option<Duration>,
    pub(crate) scope: Scope,
    seed: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Trip {
    Streak(u32),
    Rate { failures: Percent, window: Window, minimum: Option<u32> },
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Judged {
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
            cooldown_max: Duration::from_secs(600),
            jitter: Percent::from(0),
            probes: PROBES,
            judged: Judged::Each { successes: SUCCESSES },
            probe_timeout: PROBE_TIMEOUT,
            ramp: Duration::ZERO,
            automatic: false,
            abandoned_after: None,
            scope: Scope::Attempt,
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

    /// Also opens when this share of the calls in the window took at least `threshold`, successful or not.
    #[must_use]
    pub fn slow_calls(mut self, threshold: Duration, share: impl Into<Percent>) -> Self {
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
    /// up to `max`.
    #[must_use]
    pub fn growing_cooldown(mut self, times: f64, max: Duration) -> Self {
        self.growth = times;
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

    /// Lets `probes` probes through in all and judges them together by the failure rate, as resilience4j does.
    #[must_use]
    pub fn judge_probes_together(mut self, probes: u32) -> Self {
        self.probes = probes;
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

    /// A call that is dropped after it ran for this long counts as a failure, a shorter one as nothing. By
    /// default the smallest of the slow threshold, half of the attempt timeout and half of the call timeout,
    /// or one second if there is none of them.
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

    /// Fixes what is left to chance (jitter, ramp), so that a test is exact.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
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
        Ok(CircuitBreaker::new(&self, clock))
    }

    /// The smaller thresholds of a guard's timeouts, if nothing was said about abandoned calls.
    pub(crate) fn abandoned_default(mut self, threshold: Option<Duration>) -> Self {
        self.abandoned_after = self.abandoned_after.or(threshold);
        self
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        match self.trip {
            Trip::Streak(failures) => {
                problems.refuse_if(
                    !(1..=STREAK_MAX).contains(&failures),
                    "breaker.consecutive_failures",
                    || format!("{failures} is not between 1 and {STREAK_MAX}; 5 is usual"),
                );
                problems.refuse_if(self.slow.is_some(), "breaker.slow_calls", || {
                    "a share of slow calls needs a window; begin with `Breaker::failure_rate(..)`".into()
                });
            }
            Trip::Rate { failures, window, minimum } => {
                check_rate(failures, "breaker.failure_rate", problems);
                check_window(window, minimum, problems);
            }
        }
        if let Some((threshold, share)) = self.slow {
            check_rate(share, "breaker.slow_calls", problems);
            problems.refuse_if(threshold.is_zero(), "breaker.slow_calls", || {
                "with a threshold of zero every call is slow; name the time from which a call is slow".into()
            });
        }
        problems.refuse_if(self.cooldown < Duration::from_millis(2), "breaker.cooldown", || {
            format!("{:?} is no time to recover in; 30 s is usual", self.cooldown)
        });
        problems.refuse_if(!(1.0..=100.0).contains(&self.growth), "breaker.growing_cooldown", || {
            format!("a factor of {} is not between 1 and 100; 2 doubles the cooldown", self.growth)
        });
        problems.refuse_if(
            self.growth > 1.0 && self.cooldown_max < self.cooldown,
            "breaker.growing_cooldown",
            || format!("the longest cooldown {:?} is below the first {:?}", self.cooldown_max, self.cooldown),
        );
        problems.refuse_if(!self.jitter.is_share(), "breaker.cooldown_jitter", || {
            format!("{} is not between 0 % and 100 %", self.jitter)
        });
        let Judged::Each { successes } = self.judged else { return self.check_probes(problems) };
        problems.refuse_if(!(1..=PROBES_MAX).contains(&successes), "breaker.close_after", || {
            format!("{successes} successes are not between 1 and {PROBES_MAX}")
        });
        self.check_probes(problems);
    }

    fn check_probes(&self, problems: &mut Problems) {
        problems.refuse_if(!(1..=PROBES_MAX).contains(&self.probes), "breaker.probes", || {
            format!("{} probes are not between 1 and {PROBES_MAX}", self.probes)
        });
        problems.refuse_if(self.probe_timeout < Duration::from_millis(2), "breaker.probe_timeout", || {
            format!("{:?} is over before a probe can answer; 60 s is usual", self.probe_timeout)
        });
    }

    /// The cooldown after so many trips without health in between.
    fn cooldown_of(&self, earlier_trips: usize) -> u64 {
        let first = units(self.cooldown);
        // The cast saturates, and the longest cooldown decides.
        let grown = (first as f64 * self.growth.powi(earlier_trips as i32)) as u64;
        grown.clamp(first, units(self.cooldown_max).max(first))
    }

    pub(crate) fn settings(&self) -> Settings {
        let (window, minimum, failure_rate, streak) = match self.trip {
            Trip::Streak(failures) => (None, 0, None, failures),
            Trip::Rate { failures, window, minimum } => {
                (Some(window), minimum_of(window, minimum), Some(failures.millionths()), 0)
            }
        };
        let slow_after = self.slow.map(|(threshold, _)| threshold);
        let mut abandoned_after = self.abandoned_after.or(slow_after).unwrap_or(ABANDONED_AFTER);
        if let Some(slow) = slow_after {
            abandoned_after = abandoned_after.min(slow);
        }
        Settings {
            rules: Rules {
                streak,
                cooldowns: std::array::from_fn(|trip| self.cooldown_of(trip)),
                jitter: self.jitter.millionths(),
                seed: self.seed.unwrap_or_else(entropy),
                probes: self.probes,
                judge: match self.judged {
                    Judged::Each { successes } => Judge::Successes(successes),
                    // A circuit that opens after failures in a row has no rate of its own: half is a majority.
                    Judged::Together => Judge::Rate(failure_rate.unwrap_or(500_000)),
                },
                probe_timeout: units(self.probe_timeout),
                ramp: units(self.ramp),
                automatic: self.automatic,
            },
            window,
            minimum_calls: u64::from(minimum),
            failure_rate: failure_rate.unwrap_or(0),
            slow_rate: self.slow.map(|(_, share)| share.millionths()),
            slow_after,
            abandoned_after,
            precise: slow_after.is_some_and(|slow| slow < PRECISE_BELOW) || abandoned_after < PRECISE_BELOW,
            text: self.to_string(),
        }
    }
}

/// Durations below this are measured with the precise clock: one step of the coarse one would be 8 % of it.
const PRECISE_BELOW: Duration = Duration::from_millis(50);

fn minimum_of(window: Window, minimum: Option<u32>) -> u32 {
    minimum.unwrap_or(match window {
        Window::Calls(calls) => MINIMUM_CALLS.min(calls),
        Window::Time(_) => MINIMUM_CALLS,
    })
}

fn check_rate(share: Percent, path: &'static str, problems: &mut Problems) {
    problems.refuse_if(!share.is_share() || share.millionths() == 0, path, || {
        format!("{share} is not above 0 % and at most 100 %; 50 is usual")
    });
}

fn check_window(window: Window, minimum: Option<u32>, problems: &mut Problems) {
    problems.refuse_if(minimum == Some(0), "breaker.minimum_calls", || "at least 1 call makes a rate".into());
    match window {
        Window::Calls(calls) => {
            problems.refuse_if(!(1..=RING_MAX).contains(&calls), "breaker.over_calls", || {
                format!("a window of {calls} calls is not between 1 and {RING_MAX}; 100 is usual")
            });
            problems.refuse_if(minimum.is_some_and(|minimum| minimum > calls), "breaker.minimum_calls", || {
                format!("the window never holds more than {calls} calls, so it would never open; lower the minimum")
            });
        }
        Window::Time(time) => {
            problems.refuse_if(time < Duration::from_millis(20), "breaker.over_time", || {
                format!("a window of {time:?} is too short to count in; 10 s is usual")
            })
        }
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
                write!(
                    f,
                    "; half-open with {} probe(s) at once, closes after {successes} success(es)",
                    self.probes
                )?;
            }
            Judged::Together => write!(f, "; half-open with {} probes judged together", self.probes)?,
        }
        if !self.ramp.is_zero() {
            write!(f, "; ramps up over {:?}", self.ramp)?;
        }
        match self.scope {
            Scope::Attempt => f.write_str("; counts attempts"),
            Scope::Call => f.write_str("; counts calls"),
        }
    }
}

/// The configuration as the circuit uses it.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) rules: Rules,
    pub(crate) window: Option<Window>,
    pub(crate) minimum_calls: u64,
    /// In millionths.
    pub(crate) failure_rate: u64,
    pub(crate) slow_rate: Option<u64>,
    pub(crate) slow_after: Option<Duration>,
    pub(crate) abandoned_after: Duration,
    /// Whether a threshold is too short for the coarse clock.
    pub(crate) precise: bool,
    pub(crate) text: String,
}
