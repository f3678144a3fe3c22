//! How a call ended, and what it gives back.

use super::decide::{Next, Run};
use crate::error::{Error, Report};
use crate::fault::{Fault, Judge, inner_verdict};

/// What the last attempt that ended by itself left, if that was no good answer: an answer and how it was judged, or an error.
pub(super) type Last<T, E> = Option<Result<(T, Fault), E>>;

/// How a call ended.
pub(crate) enum Ended<T, E> {
    /// With a good answer.
    Good(T),
    /// With an answer that was judged a fault, and why it was not asked for again.
    Bad { value: T, fault: Fault, report: Report },
    /// Without an answer.
    Failed(Error<E>),
}

impl Run<'_> {
    /// The attempt ended by itself, with no good answer.
    #[cold]
    pub(super) fn judged<T, E, J: Judge<T, E, K>, K>(
        &mut self,
        result: Result<T, E>,
        fault: Option<Fault>,
        last: &mut Last<T, E>,
    ) -> Next {
        let (fault, from_guard) = match &result {
            // A guard further in has spent its retries on this very answer.
            Ok(_) if self.within.is_spent() => (fault.map(Fault::permanent), false),
            Ok(_) => (fault, false),
            Err(error) => (fault, J::view(error).and_then(inner_verdict).is_some()),
        };
        *last = Some(result.map(|value| (value, fault.unwrap_or(Fault::system()))));
        self.answered(fault, from_guard)
    }

    /// The call is given up. An answer that is judged a fault is still the peer's answer: the caller gets it.
    #[cold]
    pub(super) fn given_up<T, E, J: Judge<T, E, K>, K>(&self, last: Last<T, E>) -> Ended<T, E> {
        let last = match last {
            Some(Ok((value, fault))) => {
                return Ended::Bad { value, fault, report: self.answered_after_all() };
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        Ended::Failed(Error::new(self.final_report(), self.guard.name.clone(), last, J::view))
    }
}
