//! What timeouts a guard has.

use std::time::Duration;

use crate::config::Problems;

/// How long a call may take where nothing else says so. Ten seconds is what a person waits.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How long one attempt may take where a preset or the hub asks for the usual: three of them fit into a call.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(3);

/// A derived call timeout is this much longer than what it is derived from. Timers fire a little late, each of them, and
/// without it the last attempt would be cut short.
pub const DERIVED_SLACK: Duration = Duration::from_millis(100);

/// Durations below this are measured with the precise clock: one step of the coarse one would be 4 % of it.
const PRECISE_BELOW: Duration = Duration::from_millis(100);

/// The timeouts of a guard, as they are in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Timeouts {
    pub(crate) call: Option<Duration>,
    /// Whether `call` was derived from the attempts, not asked for.
    pub(crate) derived: bool,
    pub(crate) attempt: Option<Duration>,
}

/// What a user asked for as call timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum CallTimeout {
    #[default]
    Derived,
    Set(Duration),
    None,
}

impl Timeouts {
    /// A call timeout that is not set covers every attempt and the longest waits between them, so that it never
    /// takes away what was asked for.
    pub(crate) fn new(
        call: CallTimeout,
        attempt: Option<Duration>,
        attempts: u32,
        longest_waits: Duration,
        problems: &mut Problems,
    ) -> Self {
        let zero = |timeout: Option<Duration>| timeout.is_some_and(|timeout| timeout.is_zero());
        problems.refuse_if(zero(attempt), "attempt_timeout", || {
            "a timeout of zero fails every attempt; leave it out for none".into()
        });
        let (call, derived) = match call {
            CallTimeout::Set(call) => (Some(call), false),
            CallTimeout::None => (None, false),
            CallTimeout::Derived => match attempt {
                Some(attempt) => {
                    let sum = attempt.saturating_mul(attempts).saturating_add(longest_waits);
                    (Some(sum.saturating_add(DERIVED_SLACK)), true)
                }
                None => (Some(CALL_TIMEOUT), true),
            },
        };
        problems.refuse_if(zero(call), "call_timeout", || {
            "a timeout of zero fails every call; write `none` in a file or `no_call_timeout()` in code for none".into()
        });
        if let (Some(call), Some(attempt), false) = (call, attempt, derived) {
            problems.refuse_if(attempt > call, "attempt_timeout", || {
                format!(
                    "{attempt:?} is above the call timeout of {call:?}, so it could never end an attempt; \
                     lower it or raise the call timeout"
                )
            });
        }
        Timeouts { call, derived, attempt }
    }

    /// Whether one of them is too short for the coarse clock.
    pub(crate) fn precise(&self) -> bool {
        let short = |timeout: Option<Duration>| timeout.is_some_and(|timeout| timeout < PRECISE_BELOW);
        short(self.call) || short(self.attempt)
    }

    /// How long a call must have run for its being dropped to say something about the peer.
    pub(crate) fn abandoned_after(&self) -> Option<Duration> {
        match (self.attempt, self.call) {
            (Some(attempt), Some(call)) => Some(attempt.min(call) / 2),
            (Some(timeout), None) | (None, Some(timeout)) => Some(timeout / 2),
            (None, None) => None,
        }
    }
}
