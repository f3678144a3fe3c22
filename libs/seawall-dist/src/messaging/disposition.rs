//! What is to be done with a message: functions over plain data.

use std::time::Duration;

use seawall::fault::{Class, Verdict};
use seawall::{Backoff, Fault};

use super::AttemptFailure;

/// What an adapter does with a delivery after it was processed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Disposition {
    /// The work is done, now or before: acknowledge the message.
    Acknowledge,
    /// The attempt failed: deliver the message again after this time, with one attempt more.
    Retry {
        /// How long to wait.
        after: Duration,
        /// The attempt that failed.
        failure: AttemptFailure,
    },
    /// No attempt was made, or none that says anything about the message: deliver it again after this time, and do not count
    /// the attempt.
    Release {
        /// How long to wait.
        after: Duration,
    },
    /// The message is given up: put it where dead letters go, and acknowledge it after that.
    DeadLetter {
        /// Why.
        reason: DeathReason,
        /// The last attempt; `None` if there was none this time.
        failure: Option<AttemptFailure>,
    },
}

/// Why a message was given up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DeathReason {
    /// The handler called the message invalid, or the message can't be read.
    Invalid,
    /// A peer of the handler understood and refused.
    Refused,
    /// All attempts failed.
    Attempts,
    /// The message was delivered more often than it may be, and earlier deliveries ended without an outcome: the process died,
    /// or its connection did.
    Crashes,
    /// An earlier attempt may have taken effect, and nobody knows: a person has to look.
    Unknown,
}

impl DeathReason {
    /// The word for it, in headers, records and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DeathReason::Invalid => "invalid",
            DeathReason::Refused => "refused",
            DeathReason::Attempts => "attempts",
            DeathReason::Crashes => "crashes",
            DeathReason::Unknown => "unknown",
        }
    }
}

/// How often a message is attempted, and how long it waits between two attempts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) attempts_max: u32,
    pub(super) backoff: Backoff,
}

/// What comes of an attempt that failed. `random` is any evenly distributed number.
pub(super) fn after_failure(
    failure: AttemptFailure,
    fault: Fault,
    is_invalid: bool,
    rules: &Rules,
    random: u64,
) -> Disposition {
    let retry = failure.attempt.saturating_sub(1);
    let is_throttled = fault.verdict() == Verdict::Throttled;
    let wait = rules.backoff.wait(retry, Duration::ZERO, is_throttled, random);
    let after = fault.retry_after().unwrap_or_default().max(wait);
    let dead = |reason| Disposition::DeadLetter { reason, failure: Some(failure.clone()) };
    if is_invalid {
        return dead(DeathReason::Invalid);
    }
    // A circuit that is open, or another limit of the handler's own: the message was not attempted, and an outage must not turn
    // every message into a dead letter.
    if fault.verdict() == Verdict::Rejected {
        return Disposition::Release { after };
    }
    // Credentials that are refused say nothing about the message.
    if fault.class() == Class::Business && fault.verdict() == Verdict::Permanent && !fault.is_unauthorised() {
        return dead(DeathReason::Refused);
    }
    if failure.attempt >= rules.attempts_max {
        return dead(DeathReason::Attempts);
    }
    Disposition::Retry { after, failure }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Millis;
    use seawall::{millis, secs};

    const RULES: Rules = Rules { attempts_max: 3, backoff: Backoff::exponential(secs(1)).no_jitter() };

    fn failed(attempt: u32, fault: Fault) -> Disposition {
        let failure = AttemptFailure { attempt, at: Millis(0), took: millis(5), error: "no".into() };
        after_failure(failure, fault, false, &RULES, 7)
    }

    fn wait_of(disposition: &Disposition) -> Option<Duration> {
        match disposition {
            Disposition::Retry { after, .. } => Some(*after),
            _ => None,
        }
    }

    fn reason_of(disposition: &Disposition) -> Option<DeathReason> {
        match disposition {
            Disposition::DeadLetter { reason, .. } => Some(*reason),
            _ => None,
        }
    }

    /// ADP-5: 3 attempts, 1 s × 2, then the dead letters.
    #[test]
    fn adp_5_attempts_are_apart_by_the_back_off_until_the_maximum() {
        assert_eq!(wait_of(&failed(1, Fault::system())), Some(secs(1)));
        assert_eq!(wait_of(&failed(2, Fault::io())), Some(secs(2)));
        assert_eq!(reason_of(&failed(3, Fault::io())), Some(DeathReason::Attempts));
        assert_eq!(wait_of(&failed(1, Fault::throttled().after(secs(9)))), Some(secs(9)));
    }

    /// ADP-5: what no attempt can help goes to the dead letters at once.
    #[test]
    fn adp_5_a_refusal_is_final_and_refused_credentials_are_not() {
        assert_eq!(reason_of(&failed(1, Fault::business())), Some(DeathReason::Refused));
        let unauthorised = Fault::business().code(seawall::fault::Code::Http(401));
        assert!(wait_of(&failed(1, unauthorised)).is_some());
    }

    /// CRD-4: an outage of what the handler depends on does not fill the dead letters.
    #[test]
    fn crd_4_an_attempt_that_a_circuit_refused_is_not_counted() {
        assert_eq!(failed(3, Fault::rejected().after(secs(30))), Disposition::Release { after: secs(30) });
        assert_eq!(failed(2, Fault::rejected()), Disposition::Release { after: secs(2) });
    }
}
