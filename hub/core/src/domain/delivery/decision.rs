//! The decision on a delivery after an attempt: delivered, another attempt, or a dead letter.
//!
//! # Why two ways to count?
//! Five attempts are enough for a service that answers "no" five times. They are far too few for a service that is down for an
//! hour: all pending deliveries would end as dead letters, and somebody would have to replay them. So by default only failures
//! that the service has *answered* count, and an outage costs age. Counting every failure is an option.

use std::time::Duration;

use seawall::backoff::{Backoff, Jitter};
use seawall::fault::{Class, Code, Fault, Verdict};

use super::suspects::PANICS_MAX;
use super::{ATTEMPTS, DeadLetterReason, DeliveryPolicy, FailureCounting, Progress, Schedule};
use crate::domain::time::Millis;

/// The result of one attempt, or the reason why there was none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The service accepted it.
    Delivered,
    /// The attempt failed.
    Failed {
        /// The fault of the response, or of the connection if there is no response.
        fault: Fault,
        /// Whether the circuit was not closed when the attempt began.
        probe: bool,
    },
    /// No valid request can ever be sent: it was rendered wrong, or the target is forbidden.
    Unsendable,
    /// The hub's own code panicked. That says nothing about the service.
    Panicked,
    /// Its handling ends the process, or its stored request can't be read without a panic.
    Crashed,
    /// Its rule is disabled, so nothing was sent.
    RuleDisabled,
    /// The guard refused, so nothing was sent: circuit open, rate limit, bulkhead full, or the process was paused.
    Deferred {
        /// The time after which the policy will let it pass.
        retry_after: Option<Duration>,
    },
}

/// What a fault says about a delivery. This is the only place of the hub that reads a status code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultMeaning {
    /// The service rejected the request, and would do so again.
    Rejected,
    /// The service said that the target is gone for good.
    Gone,
    /// The service asks for fewer requests. That is about the hub and not about this delivery.
    Throttled,
    /// The service is down, or a gateway in front of it says so.
    Outage,
    /// The service itself answered that it could not.
    Answered,
}

impl FaultMeaning {
    /// Classifies a fault. A transient failure of a `probe` says that the outage continues, and nothing about the delivery.
    #[must_use]
    pub const fn of(fault: &Fault, probe: bool) -> Self {
        match (fault.protocol_code(), fault.class(), fault.verdict()) {
            (Code::Http(410), ..) => FaultMeaning::Gone,
            _ if !fault.is_transient() => FaultMeaning::Rejected,
            // The hub has discarded the token that was refused, and the next attempt gets another.
            _ if is_stale_token(fault) => FaultMeaning::Answered,
            _ if probe => FaultMeaning::Outage,
            (Code::Http(502..=504), ..) | (_, Class::Io | Class::Timeout, _) => FaultMeaning::Outage,
            (_, _, Verdict::Throttled) => FaultMeaning::Throttled,
            _ => FaultMeaning::Answered,
        }
    }

    /// Whether the service may accept the same request later, without a change by anybody.
    #[must_use]
    pub const fn passes_by_itself(self) -> bool {
        matches!(self, FaultMeaning::Throttled | FaultMeaning::Outage)
    }
}

/// Whether the service refused a cached token, which the hub has discarded: another one may be accepted.
#[must_use]
pub const fn is_stale_token(fault: &Fault) -> bool {
    fault.is_transient() && fault.is_unauthorised()
}

impl Outcome {
    /// Returns the meaning of its fault; `None` if the attempt did not fail at the service.
    #[must_use]
    pub const fn meaning(&self) -> Option<FaultMeaning> {
        match self {
            Outcome::Failed { fault, probe } => Some(FaultMeaning::of(fault, *probe)),
            _ => None,
        }
    }

    /// Whether the circuit may have opened because of it.
    #[must_use]
    pub const fn counts_for_circuit(&self) -> bool {
        match self {
            Outcome::Failed { fault, .. } => fault.is_transient() && !is_stale_token(fault),
            _ => false,
        }
    }

    /// Returns the value of the label `error.type`; `None` if nothing was sent.
    #[must_use]
    pub const fn error_type(&self) -> Option<ErrorType> {
        Some(match self {
            Outcome::Delivered => ErrorType::None,
            Outcome::Failed { fault, .. } => match (fault.protocol_code(), fault.class()) {
                (Code::Http(300..=399), _) => ErrorType::Redirect,
                (Code::Http(400..=499), _) => ErrorType::Client,
                (Code::Http(500..=599), _) => ErrorType::Server,
                (_, Class::Timeout) => ErrorType::Timeout,
                (_, Class::Io) => ErrorType::Unreachable,
                _ => ErrorType::Other,
            },
            Outcome::Unsendable => ErrorType::Impossible,
            Outcome::Panicked | Outcome::Crashed => ErrorType::Panic,
            // The guard has counted a deferral.
            Outcome::RuleDisabled | Outcome::Deferred { .. } => return None,
        })
    }
}

crate::words! {
    /// The values of the label `error.type` of attempts.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum ErrorType {
        None = "none",
        Redirect = "3xx",
        Client = "4xx",
        Server = "5xx",
        Timeout = "timeout",
        Unreachable = "unreachable",
        Impossible = "impossible",
        Other = "other",
        Panic = "panic",
    }
}

/// What happens to a delivery next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// The service accepted it.
    Delivered,
    /// Its rule is disabled and holds it.
    Hold,
    /// The delivery waits for its next attempt.
    Retry {
        /// When the next attempt is due.
        due: Millis,
        /// Whether it waits for the service to recover: it resumes when the circuit closes, and is attempted when it is due
        /// anyway.
        stalled: bool,
    },
    /// Nothing was sent, so nothing is stored: the delivery stays in memory.
    Defer {
        /// The time after which the policy will let it pass.
        retry_after: Option<Duration>,
    },
    /// The delivery becomes a dead letter.
    DeadLetter {
        /// The reason of the dead letter.
        reason: DeadLetterReason,
        /// Whether later deliveries with the same ordering key wait until the dead letter is handled.
        holds_order: bool,
    },
}

/// The decision on a delivery after an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// What happens to the delivery next.
    pub disposition: Disposition,
    /// The failures so far, with that of this attempt.
    pub progress: Progress,
    /// Whether an attempt took place, so that it is recorded.
    pub attempted: bool,
    /// The wait that the service asked for from all its callers; `None` if it asked for none.
    pub throttle: Option<Duration>,
}

impl Decision {
    /// Returns the number of the attempt, counted from 1; that of the next one, if none took place.
    #[must_use]
    pub const fn attempt_number(&self) -> u32 {
        let failed = self.attempted && !matches!(self.disposition, Disposition::Delivered);
        if failed { self.progress.failures } else { self.progress.failures + 1 }
    }

    /// Whether it shows that the service is up: a refusal does so too.
    #[must_use]
    pub const fn proves_service_up(&self) -> bool {
        matches!(
            self.disposition,
            Disposition::Delivered
                | Disposition::DeadLetter { reason: DeadLetterReason::Refused | DeadLetterReason::Gone, .. }
        )
    }
}

/// The times and the random number that a decision depends on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// When the attempt ended.
    pub now: Millis,
    /// When the attempt began.
    pub began: Millis,
    /// When the circuit last closed; `None` if it has not since the start.
    pub circuit_closed: Option<Millis>,
    /// A number that is evenly distributed, for the jitter.
    pub random: u64,
}

/// The longest wait that a service may ask for.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

impl Progress {
    /// Returns the progress after an outcome. Every attempt that failed adds a failure, and counts if `counting` says so,
    /// whatever becomes of the delivery. An outcome without an attempt changes nothing.
    fn after(self, outcome: &Outcome, counting: FailureCounting) -> Self {
        let answered = match outcome {
            Outcome::Delivered | Outcome::RuleDisabled | Outcome::Deferred { .. } => return self,
            Outcome::Failed { fault, probe } => !FaultMeaning::of(fault, *probe).passes_by_itself(),
            Outcome::Unsendable | Outcome::Panicked | Outcome::Crashed => false,
        };
        Progress {
            counted: self.counted + u32::from(answered || counting == FailureCounting::All),
            failures: self.failures + 1,
            panics: self.panics + u32::from(*outcome == Outcome::Panicked),
            ..self
        }
    }
}

/// Decides what happens to a delivery after an attempt, or instead of one.
#[must_use]
pub fn decide(outcome: &Outcome, progress: Progress, policy: &DeliveryPolicy, moment: &Moment) -> Decision {
    let schedule = &policy.schedule;
    let progress = progress.after(outcome, schedule.count);
    let dead = |reason| Disposition::DeadLetter { reason, holds_order: policy.holds_order };
    let too_old = |at: Millis| at.since(progress.accepted) >= schedule.age_max;
    let disposition = match (outcome, outcome.meaning()) {
        (Outcome::Delivered, _) => Disposition::Delivered,
        (Outcome::RuleDisabled, _) => Disposition::Hold,
        (Outcome::Unsendable, _) => dead(DeadLetterReason::Impossible),
        (Outcome::Crashed, _) => dead(DeadLetterReason::Poison),
        (Outcome::Deferred { .. }, _) if too_old(moment.now) => dead(DeadLetterReason::Age),
        // Costs nothing but age: the service has not even been asked.
        (Outcome::Deferred { retry_after }, _) => Disposition::Defer { retry_after: *retry_after },
        (_, Some(FaultMeaning::Gone)) => dead(DeadLetterReason::Gone),
        (_, Some(FaultMeaning::Rejected)) => dead(DeadLetterReason::Refused),
        _ if progress.panics >= PANICS_MAX => dead(DeadLetterReason::Poison),
        _ if progress.counted >= schedule.attempts.unwrap_or(ATTEMPTS) => dead(DeadLetterReason::Attempts),
        (Outcome::Failed { .. } | Outcome::Panicked, meaning) => {
            let asked = outcome.retry_after();
            let wait = asked.map_or_else(
                || back_off(schedule, progress.failures, moment.random),
                |asked| asked.min(RETRY_AFTER_MAX),
            );
            let due = moment.now + wait;
            // A service that said when to come back is called then, circuit or not.
            let stalled = asked.is_none() && meaning == Some(FaultMeaning::Outage);
            // An attempt that began before the circuit closed belongs to the outage, and resumes like the others.
            let resumes = stalled && moment.circuit_closed.is_some_and(|closed| closed >= moment.began);
            match too_old(due) {
                true => dead(DeadLetterReason::Age),
                false => Disposition::Retry { due: if resumes { moment.now } else { due }, stalled },
            }
        }
    };
    let attempted = !matches!(outcome, Outcome::RuleDisabled | Outcome::Deferred { .. });
    Decision { disposition, progress, attempted, throttle: outcome.throttle() }
}

impl Outcome {
    fn retry_after(&self) -> Option<Duration> {
        match self {
            Outcome::Failed { fault, .. } => fault.retry_after(),
            _ => None,
        }
    }

    /// Returns the wait that a throttling service asked for. A probe says nothing new: the circuit holds the others up anyway.
    fn throttle(&self) -> Option<Duration> {
        match self {
            Outcome::Failed { fault, probe: false } if fault.verdict() == Verdict::Throttled => {
                fault.retry_after()
            }
            _ => None,
        }
    }
}

/// Returns the wait after a number of failures: doubled each time up to the cap, with half of it random.
fn back_off(schedule: &Schedule, failures: u32, random: u64) -> Duration {
    let backoff = Backoff::exponential(schedule.base).cap(schedule.cap).jitter(Jitter::Equal);
    backoff.wait(failures.saturating_sub(1), Duration::ZERO, false, random)
}

#[cfg(test)]
mod tests;
