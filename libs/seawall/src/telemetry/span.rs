//! A span for each attempt, around whatever the operation does.

#[cfg(feature = "tracing")]
use tracing::{Span, field, info_span, span::Entered};

use crate::error::Policy;
use crate::event::Labels;
use crate::fault::Fault;

/// How an attempt ended, in the field `outcome` of its span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttemptOutcome {
    Success,
    Failed(Fault),
    TimedOut,
}

impl AttemptOutcome {
    /// The outcome of an attempt that a policy, or the operation itself, ended with this fault.
    pub(crate) fn of(fault: Fault, from: Policy) -> Self {
        if from == Policy::AttemptTimeout { AttemptOutcome::TimedOut } else { AttemptOutcome::Failed(fault) }
    }
}

/// The span of the attempt under way, if its guard has spans.
///
/// Dropping it without an outcome means that nobody waited for one.
#[derive(Debug, Default)]
pub(crate) struct AttemptSpan {
    #[cfg(feature = "tracing")]
    span: Option<Span>,
}

/// The span is the current one while this lives: within one poll, never across an await.
#[must_use = "the span is left when this is dropped"]
pub(crate) struct InSpan<'a> {
    #[cfg(feature = "tracing")]
    _entered: Option<Entered<'a>>,
    #[cfg(not(feature = "tracing"))]
    _entered: std::marker::PhantomData<&'a ()>,
}

impl Drop for InSpan<'_> {
    #[inline]
    fn drop(&mut self) {}
}

#[cfg(feature = "tracing")]
impl AttemptSpan {
    /// Begins a span below the current one, which is the caller's.
    #[cold]
    #[inline(never)]
    pub(crate) fn start(guard: &str, labels: Labels<'_>, number: u32) -> Self {
        let some = |label: &'_ str| (!label.is_empty()).then(|| label.to_owned());
        let span = info_span!(
            target: "seawall",
            "seawall.attempt",
            guard,
            operation = some(labels.operation),
            key = some(labels.about),
            attempt = number,
            outcome = field::Empty,
            cause = field::Empty,
        );
        AttemptSpan { span: (!span.is_disabled()).then_some(span) }
    }

    #[inline]
    pub(crate) fn enter(&self) -> InSpan<'_> {
        InSpan { _entered: self.span.as_ref().map(Span::enter) }
    }

    /// Records how the attempt ended, and ends the span.
    #[inline]
    pub(crate) fn end(&mut self, outcome: AttemptOutcome) {
        if self.span.is_some() {
            self.record(outcome);
        }
    }

    #[cold]
    fn record(&mut self, outcome: AttemptOutcome) {
        let Some(span) = self.span.take() else { return };
        match outcome {
            AttemptOutcome::Success => span.record("outcome", "success"),
            AttemptOutcome::Failed(fault) => {
                span.record("outcome", "failed").record("cause", field::display(fault))
            }
            AttemptOutcome::TimedOut => span.record("outcome", "timed_out"),
        };
    }
}

#[cfg(feature = "tracing")]
impl Drop for AttemptSpan {
    #[inline]
    fn drop(&mut self) {
        if let Some(span) = self.span.take() {
            span.record("outcome", if std::thread::panicking() { "panicked" } else { "abandoned" });
        }
    }
}

#[cfg(not(feature = "tracing"))]
impl AttemptSpan {
    pub(crate) fn start(_: &str, _: Labels<'_>, _: u32) -> Self {
        AttemptSpan {}
    }

    #[inline]
    #[expect(clippy::unused_self, reason = "there is a span with the feature `tracing`")]
    pub(crate) fn enter(&self) -> InSpan<'_> {
        InSpan { _entered: std::marker::PhantomData }
    }

    #[inline]
    #[expect(clippy::unused_self, reason = "there is a span with the feature `tracing`")]
    pub(crate) fn end(&mut self, outcome: AttemptOutcome) {
        let (AttemptOutcome::Success | AttemptOutcome::Failed(_) | AttemptOutcome::TimedOut) = outcome;
    }
}
