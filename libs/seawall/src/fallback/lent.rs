//! A fallback whose operation may hold the error while it runs.
//!
//! A future that borrows the error can't stand beside it in one future, so the error is lent: it goes into the operation and
//! comes back when that ends. Used by `#[guarded]`, whose fallbacks are functions of `&Error<E>`.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use super::Answer;
use super::policy::{Fallback, Sealed};
use crate::error::Error;
use crate::event::FallbackKind;

/// An operation that is lent the error.
#[derive(Debug)]
pub struct LentOperation<F>(pub(crate) F);

/// An error that is lent to a fallback until it ends.
#[derive(Debug)]
pub struct LentError<E> {
    error: Option<Error<E>>,
    home: Home<E>,
}

type Home<E> = Arc<Mutex<Option<Error<E>>>>;

impl<E> Deref for LentError<E> {
    type Target = Error<E>;

    fn deref(&self) -> &Error<E> {
        self.error.as_ref().expect("it is lent until it is dropped")
    }
}

impl<E> Drop for LentError<E> {
    fn drop(&mut self) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = self.error.take();
    }
}

impl<F> Sealed for LentOperation<F> {}

impl<T, E, E2, F, Fut> Fallback<T, E> for LentOperation<F>
where
    F: FnOnce(LentError<E>) -> Fut,
    Fut: Future<Output = Result<T, E2>>,
{
    type Output = Answer<T, E>;
    type Work = (Option<Home<E>>, Pin<Box<Fut>>);

    fn begin(self, error: &mut Option<Error<E>>) -> Self::Work {
        let home = Home::default();
        let lent = LentError { error: error.take(), home: home.clone() };
        (Some(home), Box::pin((self.0)(lent)))
    }

    fn poll_value(
        mut work: Pin<&mut Self::Work>,
        error: &mut Option<Error<E>>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<(T, FallbackKind)>> {
        let (home, operation) = &mut *work;
        let polled = operation.as_mut().poll(cx);
        polled.map(|asked| {
            let home = home.take().expect("it is polled to its end once");
            *error = home.lock().unwrap_or_else(PoisonError::into_inner).take();
            Some((asked.ok()?, FallbackKind::Other))
        })
    }

    fn output(answer: Answer<T, E>) -> Answer<T, E> {
        answer
    }
}
