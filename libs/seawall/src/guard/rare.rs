//! What few calls have. It is behind one pointer, so that the others pay for nothing but that it is not there.

use super::admission::Queued;
use super::decide::Run;
use crate::budget::Token;
use crate::telemetry::{AttemptOutcome, AttemptSpan, InSpan};

/// What few calls have.
#[derive(Default)]
pub(super) struct Rare<'g> {
    /// The span of the attempt under way.
    span: AttemptSpan,
    /// What the attempt waits for.
    pub(super) queued: Option<Queued<'g>>,
    /// The price of the retry that is waiting to start.
    pub(super) token: Option<Token<'g>>,
}

/// The span of the attempt under way is the current one while this lives.
#[inline(always)]
pub(super) fn enter_span<'a>(rare: &'a Option<Box<Rare<'_>>>) -> Option<InSpan<'a>> {
    rare.as_deref().map(|rare| rare.span.enter())
}

impl<'g> Run<'g> {
    #[cold]
    pub(super) fn rare_mut(&mut self) -> &mut Rare<'g> {
        self.rare.get_or_insert_default()
    }

    pub(super) fn has_token(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.token.is_some())
    }

    /// A retry starts: it is paid for.
    #[inline]
    pub(super) fn spend_token(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.token.take().into_iter().for_each(Token::spend);
        }
    }

    /// A retry that will not start gives its price back.
    #[inline]
    pub(super) fn return_token(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.token = None;
        }
    }

    /// An attempt starts; if its guard has spans, it has one.
    #[inline]
    pub(super) fn start_span(&mut self) {
        if self.guard.watch.has_spans() {
            self.rare_mut().span = self.guard.watch.attempt_span(self.terms.labels, self.attempts);
        }
    }

    #[inline]
    pub(super) fn end_span(&mut self, outcome: AttemptOutcome) {
        if let Some(rare) = &mut self.rare {
            rare.span.end(outcome);
        }
    }
}
