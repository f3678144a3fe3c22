//! The one error of a guard.

use std::cell::Cell;
use std::error::Error as StdError;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::clock::Rounded;
use crate::fault::{Fault, Ran, Verdict};
use crate::name::Name;

/// Why a guarded call returned no value.
///
/// It is flat: whatever policies a guard holds, there is one type, and it answers the two questions that a
/// caller has. [`ran`](Error::ran): did the operation take place? [`retry_after`](Error::retry_after): when may I
/// try again?
///
/// `E` is the operation's own error. This type is a [`std::error::Error`] for every `E` that is `Debug`, `anyhow::Error`,
/// `eyre::Report` and `Box<dyn Error>` included, so that `?` turns it into any of these; its `source` is the operation's own
/// error.
///
/// The verdict travels in the error: a guard further out finds it anywhere in the chain of causes, however the error was
/// wrapped and whatever was awaited in between.
#[derive(Clone)]
pub struct Error<E> {
    pub(crate) report: Report,
    pub(crate) guard: Name,
    pub(crate) last: Option<E>,
    /// How the operation's own error is seen as an error. Only where the call was made is that known.
    pub(crate) view: View<E>,
    /// What few errors have, behind a pointer, because all are moved about.
    more: OnceLock<Box<More<E>>>,
}

/// What few errors have.
#[derive(Clone)]
struct More<E> {
    /// Why the side before this one failed, of a failover.
    previous: Option<Error<E>>,
    /// What the operation's own value looks like, where it is no error.
    text: OnceLock<Text>,
}

impl<E> Default for More<E> {
    fn default() -> Self {
        More { previous: None, text: OnceLock::new() }
    }
}

/// The value of an operation that is no error, as a cause.
#[derive(Clone, Debug)]
struct Text(String);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl StdError for Text {}

/// Sees an operation's error as an error, if it is one.
pub(crate) type View<E> = fn(&E) -> Option<&(dyn StdError + 'static)>;

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
    /// An error that nothing else is known about.
    pub(crate) fn new(report: Report, guard: Name, last: Option<E>, view: View<E>) -> Self {
        Error { report, guard, last, view, more: OnceLock::new() }
    }

    /// The same error, with that of the side before.
    pub(crate) fn after(self, previous: Self) -> Self {
        let more = More { previous: Some(previous), ..More::default() };
        Error { more: OnceLock::from(Box::new(more)), ..self }
    }

    /// The name of the guard that made the call.
    #[must_use]
    pub fn guard(&self) -> &str {
        self.guard.as_str()
    }

    /// Why the side before this one failed, if this is the error of a [failover](crate::failover): the last side's error has
    /// that of the side before it, and so on to the primary's.
    #[must_use]
    pub fn previous(&self) -> Option<&Error<E>> {
        self.more.get().and_then(|more| more.previous.as_ref())
    }

    /// The error of the side that was asked first, of a [failover](crate::failover); else this error itself.
    #[must_use]
    pub fn first(&self) -> &Error<E> {
        let mut first = self;
        while let Some(previous) = first.previous() {
            first = previous;
        }
        first
    }

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

    /// Whether the operation took place, over all attempts, hedges and sides: of two attempts the more doubtful one decides.
    #[must_use]
    pub fn ran(&self) -> Ran {
        self.previous().map_or(self.report.ran, |previous| self.report.ran.max(previous.ran()))
    }

    /// How many attempts were started, over all hedges and sides. Zero if the call was rejected before the first.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.previous().map_or(self.report.attempts, |previous| self.report.attempts + previous.attempts())
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
        self.report.outward().ran(self.ran())
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

/// Says what happened and where, never what the operation's error says: that one is the `source`.
impl<E> fmt::Display for Error<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(previous) = self.previous() {
            write!(f, "{previous}; ")?;
        }
        write!(f, "{}: {}", self.guard.as_str(), self.report)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { kind, decided_by, attempts, fault, .. } = self;
        let times = Attempts(*attempts);
        match kind {
            Kind::Failed if *decided_by == Policy::Retry => {
                write!(f, "failed, and repeating it is not declared safe: {}", fault.without_wait())?;
            }
            Kind::Failed => write!(f, "failed after {times}: {}", fault.without_wait())?,
            Kind::Exhausted => write!(f, "gave up after {times}: {}", fault.without_wait())?,
            Kind::BudgetDenied => {
                write!(f, "gave up after {times}, the retry budget is spent: {}", fault.without_wait())?;
            }
            Kind::TimedOut => {
                write!(f, "{decided_by} ran out after {times}, last: {}", fault.without_wait())?;
            }
            Kind::Rejected => write!(f, "rejected by the {decided_by} after {times}")?,
        }
        if let Some(wait) = fault.retry_after() {
            write!(f, "; try again in {}", Rounded(wait))?;
        }
        Ok(())
    }
}

pub(crate) struct Attempts(pub(crate) u32);

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
            .field("guard", &self.guard)
            .field("kind", &self.report.kind)
            .field("decided_by", &self.report.decided_by)
            .field("ran", &self.report.ran)
            .field("attempts", &self.report.attempts)
            .field("fault", &self.report.fault)
            .field("last", &self.last)
            .field("previous", &self.previous())
            .finish()
    }
}

impl<E: fmt::Debug> StdError for Error<E> {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        if PROBE.get() == Probe::Asking {
            PROBE.set(Probe::Found(self.fault()));
        }
        let last = self.last.as_ref()?;
        (self.view)(last).or_else(|| {
            let more = self.more.get_or_init(Box::default);
            Some(more.text.get_or_init(|| Text(format!("{last:?}"))))
        })
    }
}

impl<E: PartialEq> PartialEq for Error<E> {
    fn eq(&self, other: &Self) -> bool {
        self.report == other.report
            && self.guard == other.guard
            && self.last == other.last
            && self.previous() == other.previous()
    }
}

impl<E: Eq> Eq for Error<E> {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Probe {
    /// Nobody asks.
    Off,
    Asking,
    Found(Fault),
}

thread_local!(static PROBE: Cell<Probe> = const { Cell::new(Probe::Off) });

/// The source of an error, and the verdict of a guard if the error is that of a guard.
///
/// # Why so?
/// An [`Error`] is generic, so nobody can downcast to it without knowing the operation's error. But everybody who passes it
/// on as a cause passes on its `source` too, and that is a method of ours: while it is asked here, it also leaves its verdict.
/// The verdict is in the error; what stands in the thread is an argument of this one call. So a wrapper that hides the error
/// itself (`#[error(transparent)]`, `io::Error::other`) does not hide its verdict.
pub(crate) fn source_and_verdict<'e>(
    error: &'e (dyn StdError + 'static),
) -> (Option<&'e (dyn StdError + 'static)>, Option<Fault>) {
    let before = PROBE.replace(Probe::Asking);
    let source = error.source();
    match PROBE.replace(before) {
        Probe::Found(verdict) => (source, Some(verdict)),
        Probe::Off | Probe::Asking => (source, None),
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
        Error::new(report, Name::new("disk"), last, |_| None)
    }

    /// ENG-16: one type for every error of an operation, and `?` turns it into the errors that people have.
    #[test]
    fn eng_16_the_error_is_an_error_for_every_error_of_an_operation() {
        fn is_error<E: StdError + Send + Sync + 'static>(error: E) -> anyhow::Error {
            anyhow::Error::from(error)
        }
        is_error(error(Kind::Failed, 1, Some(io::Error::other("disk"))));
        is_error(error(Kind::Failed, 1, Some(anyhow::anyhow!("any"))));
        is_error(error::<Box<dyn StdError + Send + Sync>>(Kind::Failed, 1, Some("boxed".into())));
        is_error(error::<String>(Kind::Failed, 1, None));
    }

    #[test]
    fn the_display_names_the_guard_and_never_repeats_its_source() {
        let mut error = error(Kind::Exhausted, 3, Some(io::Error::other("the disk is on fire")));
        error.view = |error| Some(error);
        assert_eq!(error.to_string(), "disk: gave up after 3 attempts: i/o fault (connection reset)");
        assert_eq!(error.source().unwrap().to_string(), "the disk is on fire");
        error.report.fault = Fault::throttled().after(Duration::from_nanos(4_739_563_520));
        assert_eq!(error.to_string(), "disk: gave up after 3 attempts: throttled; try again in 4.7s");
    }

    /// ENG-16: the verdict is found in an error that hides the guard's error itself, and only there.
    #[test]
    fn eng_16_a_verdict_shows_through_what_wraps_it() {
        let verdict = |error: &(dyn StdError + 'static)| source_and_verdict(error).1;
        let inner = || error(Kind::Exhausted, 3, Some(io::Error::other("disk")));
        assert_eq!(verdict(&inner()), Some(inner().fault()));
        assert_eq!(verdict(&io::Error::other(inner())), Some(inner().fault()));
        assert_eq!(verdict(&io::Error::other("something else")), None);
        assert_eq!(verdict(&Fault::io()), None);
        let _ = inner().source();
        assert_eq!(verdict(&Fault::io()), None, "what nobody asked for is not kept");
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
