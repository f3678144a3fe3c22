//! From a configuration to what the circuit uses: checked, in units, with the defaults filled in.

use std::time::Duration;

use super::config::{ABANDONED_AFTER, Breaker, Judged, MINIMUM_CALLS, Trip, Window};
use super::machine::{Judge, Rules};
use super::word::{PROBES_MAX, STREAK_MAX};
use crate::clock::units;
use crate::config::{Percent, Problems};
use crate::stats::RING_MAX;

/// The configuration as the circuit uses it.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) rules: Rules,
    pub(super) window: Option<Window>,
    pub(super) minimum_calls: u64,
    /// In millionths.
    pub(super) failure_rate: u64,
    pub(super) slow_rate: Option<u64>,
    pub(super) slow_after: Option<Duration>,
    pub(super) abandoned_after: Duration,
    /// Whether a threshold is too short for the coarse clock.
    pub(super) precise: bool,
    pub(super) text: String,
}

/// What holds where the configuration says nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) abandoned_after: Option<Duration>,
    pub(super) seed: u64,
}

impl Breaker {
    pub(crate) fn check(&self, problems: &mut Problems) {
        match self.trip {
            Trip::Streak(failures) => {
                problems.refuse_if(
                    !(1..=STREAK_MAX).contains(&failures),
                    "breaker.consecutive_failures",
                    || format!("{failures} is not between 1 and {STREAK_MAX}; 5 is usual"),
                );
                problems.refuse_if(self.slow.is_some(), "breaker.slow_after", || {
                    "a share of slow calls needs a window; begin with `failure_rate`".into()
                });
            }
            Trip::Rate { failures, window, minimum } => {
                check_rate(failures, "breaker.failure_rate", problems);
                check_window(window, minimum, problems);
            }
        }
        if let Some((threshold, share)) = self.slow {
            check_rate(share, "breaker.slow_rate", problems);
            problems.refuse_if(threshold.is_zero(), "breaker.slow_after", || {
                "with a threshold of zero every call is slow; name the time from which a call is slow".into()
            });
        }
        problems.refuse_if(self.cooldown < Duration::from_millis(2), "breaker.cooldown", || {
            format!("{:?} is no time to recover in; 30 s is usual", self.cooldown)
        });
        problems.refuse_if(!(1.0..=100.0).contains(&self.growth), "breaker.cooldown_growth", || {
            format!("a factor of {} is not between 1 and 100; 2 doubles the cooldown", self.growth)
        });
        problems.refuse_if(
            self.growth > 1.0 && self.cooldown_max < self.cooldown,
            "breaker.cooldown_max",
            || {
                format!(
                    "the longest cooldown {:?} is below the first {:?}; raise it",
                    self.cooldown_max, self.cooldown
                )
            },
        );
        self.jitter.check("breaker.cooldown_jitter", problems, Percent::is_share, || {
            format!("{} is not between 0 % and 100 %; 10 is usual", self.jitter)
        });
        let Judged::Each { successes } = self.judged else { return self.check_probes(problems) };
        problems.refuse_if(!(1..=PROBES_MAX).contains(&successes), "breaker.close_after", || {
            format!("{successes} successes are not between 1 and {PROBES_MAX}; 1 is usual")
        });
        self.check_probes(problems);
    }

    fn check_probes(&self, problems: &mut Problems) {
        problems.refuse_if(!(1..=PROBES_MAX).contains(&self.probes), "breaker.probes", || {
            format!("{} probes are not between 1 and {PROBES_MAX}; 1 is usual", self.probes)
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

    pub(super) fn settings(&self, defaults: &Defaults) -> Settings {
        let (window, minimum, failure_rate, streak) = match self.trip {
            Trip::Streak(failures) => (None, 0, None, failures),
            Trip::Rate { failures, window, minimum } => {
                (Some(window), minimum_of(window, minimum), Some(failures.millionths()), 0)
            }
        };
        let slow_after = self.slow.map(|(threshold, _)| threshold);
        // What was asked for, or the smallest of what is known, or the constant.
        let known = [slow_after, defaults.abandoned_after].into_iter().flatten().min();
        let abandoned_after = self.abandoned_after.or(known).unwrap_or(ABANDONED_AFTER);
        Settings {
            rules: Rules {
                streak,
                cooldowns: std::array::from_fn(|trip| self.cooldown_of(trip)),
                jitter: self.jitter.millionths(),
                seed: self.seed.unwrap_or(defaults.seed),
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

pub(super) fn minimum_of(window: Window, minimum: Option<u32>) -> u32 {
    minimum.unwrap_or(match window {
        Window::Calls(calls) => MINIMUM_CALLS.min(calls),
        Window::Time(_) => MINIMUM_CALLS,
    })
}

fn check_rate(share: Percent, path: &'static str, problems: &mut Problems) {
    let is_rate = |share: Percent| share.is_share() && share.millionths() > 0;
    share.check(path, problems, is_rate, || {
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
            });
        }
    }
}
