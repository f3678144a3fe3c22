//! The one error of a guard.

use std::fmt;
use std::time::Duration;

use crate::fault::{Fault, Ran, Verdict};

/// Why a guarded call returned no value.
///
/// It is flat: whatever policies a guard holds, there is one type, and it answers the two questions that a
/// caller has. [`ran`](Error::ran): did the operation take place? [`retry_after`](Error::retry_after): when may I
/// try again?
///
/// `E` is the operation's own error and may be anything, `anyhow::Error` and `String` too; this type is a
/// [`std::error::Error`] where `E` is one.
#[derive(Clone, PartialEq, Eq)]
pub struct Error<E> {
    pub(crate) report: Report,
    pub(crate) last: Option<E>,
}

/// Everything about a failure that does not depend on the operation's types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Report {
    pub(crate) kind: Kind,
    pub(crate) decided_by: Policy,
    pub(crate) ran: Ran,
    pub(crate) attempts: u32,
    /// The fault of the last attempt; it also knows when to come back.
    pub(crate) fault: Fault,
}

/// What became of the call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The operation failed in a way that is not retried.
    Failed,
    /// The operation failed in every attempt that it was given.
    Exhausted,
    /// The operation failed and the retry budget had nothing left for another attempt.
    BudgetDenied,
    /// Time ran out.
    TimedOut,
    /// A policy refused the call or its next attempt.
    Rejected,
}

/// A part of a guard, from outside in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Policy {
    /// The time that the whole call may take, or the deadline that it inherited.
    CallTimeout,
    /// How often the operation is tried.
    Retry,
    /// How many retries all callers together may make.
    Budget,
    /// The circuit breaker.
    Breaker,
    /// The rate limiter.
    RateLimit,
    /// The bulkhead.
    Bulkhead,
    /// The time that one attempt may take.
    AttemptTimeout,
    /// No policy: the operation itself.
    Operation,
}

impl<E> Error<E> {
    /// What became of the call.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.report.kind
    }

    /// The policy that ended the call.
    #[must_use]
    pub fn decided_by(&self) -> Policy {
        self.report.decided_by
    }

    /// Whether the operation took place, over all attempts: of two attempts the more doubtful one decides.
    #[must_use]
    pub fn ran(&self) -> Ran {
        self.report.ran
    }

    /// How many attempts were started. Zero if the call was rejected before the first.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.report.attempts
    }

    /// When to come back, where somebody knows: the peer by its answer, or the policy that refused.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.report.fault.retry_after()
    }

    /// The fault of the last attempt that was judged.
    #[must_use]
    pub fn last_fault(&self) -> Fault {
        self.report.fault
    }

    /// The operation's own error, if the last attempt that ended by itself left one.
    #[must_use]
    pub fn last(&self) -> Option<&E> {
        self.last.as_ref()
    }

    /// The operation's own error, by value.
    #[must_use]
    pub fn into_last(self) -> Option<E> {
        self.last
    }

    /// What this failure is to a guard further out: retries that were spent here are not spent again there.
    #[must_use]
    pub fn fault(&self) -> Fault {
        self.report.outward()
    }
}

impl Report {
    pub(crate) fn outward(&self) -> Fault {
        let fault = self.fault.ran(self.ran);
        match self.kind {
            Kind::Exhausted | Kind::BudgetDenied => fault.permanent(),
            Kind::Rejected => fault.verdict_of(Verdict::Rejected),
            // More than one attempt means that this guard has retried, and ran out of time doing so.
            Kind::TimedOut if self.attempts > 1 => fault.permanent(),
            Kind::Failed | Kind::TimedOut => fault,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::CallTimeout => "call timeout",
            Policy::Retry => "retry",
            Policy::Budget => "retry budget",
            Policy::Breaker => "breaker",
            Policy::RateLimit => "rate limit",
            Policy::Bulkhead => "bulkhead",
            Policy::AttemptTimeout => "attempt timeout",
            Policy::Operation => "operation",
        })
    }
}

/// Says what happened, never what the operation's error says: that one is the `source`.
impl<E> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(f)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { kind, decided_by, attempts, fault, .. } = self;
        let times = Attempts(*attempts);
        match kind {
            Kind::Failed if *decided_by == Policy::Retry => {
                write!(f, "failed, and repeating it is not declared safe: {fault}")?;
            }
            Kind::Failed => write!(f, "failed after {times}: {fault}")?,
            Kind::Exhausted => write!(f, "gave up after {times}: {fault}")?,
            Kind::BudgetDenied => write!(f, "gave up after {times}, the retry budget is spent: {fault}")?,
            Kind::TimedOut => write!(f, "{decided_by} ran out after {times}, last: {fault}")?,
            Kind::Rejected => write!(f, "rejected by the {decided_by} after {times}")?,
        }
        if let Some(wait) = fault.retry_after() {
            write!(f, "; try again in {wait:?}")?;
        }
        Ok(())
    }
}

struct Attempts(u32);

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("no attempt"),
            1 => f.write_str("1 attempt"),
            n => write!(f, "{n} attempts"),
        }
    }
}

impl<E: fmt::Debug> fmt::Debug for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.report.kind)
            .field("decided_by", &self.report.decided_by)
            .field("ran", &self.report.ran)
            .field("attempts", &self.report.attempts)
            .field("fault", &self.report.fault)
            .field("last", &self.last)
            .finish()
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Error<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.last.as_ref().map(|last| last as _)
    }
}

#[cfg(all(test, not(seawall_loom)))]
mod tests {
    use super::*;
    use std::io;

    fn error<E>(kind: Kind, attempts: u32, last: Option<E>) -> Error<E> {
        let report = Report {
            kind,
            decided_by: Policy::Retry,
            ran: Ran::Unknown,
            attempts,
            fault: Fault::of_io(io::ErrorKind::ConnectionReset),
        };
        Error { report, last }
    }

    /// ENG-11: one type for errors that are errors and for those that are not.
    #[test]
    fn eng_11_any_error_of_an_operation_fits() {
        fn is_error<E: std::error::Error>(_: &E) {}
        is_error(&error(Kind::Failed, 1, Some(io::Error::other("disk"))));
        let _: Error<anyhow::Error> = error(Kind::Failed, 1, Some(anyhow::anyhow!("any")));
        let _: Error<Box<dyn std::error::Error>> = error(Kind::Failed, 1, Some("boxed".into()));
        let _: Error<String> = error(Kind::Failed, 1, None);
    }

    #[test]
    fn the_display_never_repeats_its_source() {
        let error = error(Kind::Exhausted, 3, Some(io::Error::other("the disk is on fire")));
        let text = error.to_string();
        assert_eq!(text, "gave up after 3 attempts: i/o fault (connection reset)");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "the disk is on fire");
    }

    /// ENG-3: exhausted retries are not retryable for an outer guard.
    #[test]
    fn eng_3_spent_retries_are_final_for_an_outer_guard() {
        assert!(!error::<()>(Kind::Exhausted, 3, None).fault().is_transient());
        assert!(!error::<()>(Kind::BudgetDenied, 1, None).fault().is_transient());
        assert!(error::<()>(Kind::Failed, 1, None).fault().is_transient());
        assert!(!error::<()>(Kind::Rejected, 0, None).fault().counts());
    }
}
