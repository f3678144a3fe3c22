//! A call with a fallback.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use super::answer::Answer;
use super::config::{When, is_given_up};
use crate::error::Error;
use crate::event::What;
use crate::fault::Classify;
use crate::guard::{Attempt, Request};

/// A call in the making that has something to answer with when it fails. Made by [`Request::or_value`] and its sisters.
///
/// The fallback is outermost: it stands in for whatever the guard gave up on, its own timeouts and rejections included.
#[must_use = "nothing happens until `call`"]
pub struct WithFallback<'g, C, F, S = NoSink> {
    request: Request<'g, C>,
    fallback: F,
    /// What the guard says, if nothing else is said.
    when: Option<When>,
    sink: S,
}

/// No dead-letter place.
#[derive(Clone, Copy, Debug)]
pub struct NoSink;

impl<'g, C, F> WithFallback<'g, C, F> {
    pub(crate) fn new(request: Request<'g, C>, fallback: F) -> Self {
        WithFallback { request, fallback, when: None, sink: NoSink }
    }

    /// What was given up (attempts spent, budget denied, out of time) is shown to `sink` before the fallback answers, so
    /// that it can be kept and tried again later.
    pub fn dead_letter<E, S: FnOnce(&Error<E>)>(self, sink: S) -> WithFallback<'g, C, F, S> {
        WithFallback { request: self.request, fallback: self.fallback, when: self.when, sink }
    }
}

impl<C, F, S> WithFallback<'_, C, F, S> {
    /// Which failures it stands in for, instead of those that the guard names.
    pub fn when(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }

    /// Makes the call. Nothing happens until the future is polled.
    ///
    /// If there is no fallback for a failure, or the fallback itself has nothing, the error is the call's.
    pub async fn call<O, Fut, R, T, E>(self, operation: O) -> Result<Answer<T, E>, Error<E>>
    where
        O: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Classify<T, E>,
        F: FnOnce(&Error<E>) -> R,
        R: Fallback<T>,
        S: Sink<E>,
    {
        // Read before the call, so that a change of settings never meets it halfway.
        let settings = self.request.inner().settings.newest();
        let teller = self.request.teller();
        let error = match self.request.call(operation).await {
            Ok(value) => return Ok(Answer::real(value)),
            Err(error) => error,
        };
        if is_given_up(&error) {
            self.sink.take(&error);
        }
        if !self.when.as_ref().unwrap_or(settings.fallback_when()).covers(&error) {
            return Err(error);
        }
        match (self.fallback)(&error).value().await {
            Some(value) => {
                teller.tell(What::Fallback { fault: error.last_fault() });
                Ok(Answer::fallback(value, error))
            }
            None => Err(error),
        }
    }
}

impl<C, F, S> fmt::Debug for WithFallback<'_, C, F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithFallback").field("when", &self.when).finish_non_exhaustive()
    }
}

/// What a fallback yields: a value at once, or a future of one. Implementation detail of [`WithFallback`].
pub trait Fallback<T> {
    /// The value, if there is one.
    fn value(self) -> impl Future<Output = Option<T>>;
}

/// A value that is at hand.
#[derive(Debug)]
pub struct AtHand<T>(pub(crate) Option<T>);

impl<T> Fallback<T> for AtHand<T> {
    async fn value(self) -> Option<T> {
        self.0
    }
}

/// A value that another operation yields.
#[derive(Debug)]
pub struct Elsewhere<Fut>(pub(crate) Fut);

impl<T, E, Fut: Future<Output = Result<T, E>>> Fallback<T> for Elsewhere<Fut> {
    async fn value(self) -> Option<T> {
        self.0.await.ok()
    }
}

/// Where what was given up goes. Implementation detail of [`WithFallback`].
pub trait Sink<E> {
    /// Takes it.
    fn take(self, error: &Error<E>);
}

impl<E> Sink<E> for NoSink {
    fn take(self, _: &Error<E>) {}
}

impl<E, S: FnOnce(&Error<E>)> Sink<E> for S {
    fn take(self, error: &Error<E>) {
        self(error);
    }
}

/// The last good value of something, to answer with when there is no new one.
///
/// Keep one beside the guard, for each thing that is asked for. Clones share the value.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use seawall::{Guard, fallback::LastGood};
/// let rates = Guard::builder("exchange rates").no_retry().build()?;
/// let last = LastGood::new();
/// let fresh = rates.idempotent().or_last_good(&last).call(|_| async { std::io::Result::Ok(1.08) }).await?;
/// assert!(!fresh.is_fallback());
/// let stale = rates.idempotent().or_last_good(&last).call(|_| async { Err(std::io::Error::other("down")) }).await?;
/// assert!(stale.is_fallback() && *stale == 1.08);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LastGood<T>(Arc<Mutex<Option<T>>>);

impl<T> Clone for LastGood<T> {
    fn clone(&self) -> Self {
        LastGood(self.0.clone())
    }
}

impl<T> Default for LastGood<T> {
    fn default() -> Self {
        LastGood(Arc::default())
    }
}

impl<T: Clone> LastGood<T> {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value, if there was one.
    #[must_use]
    pub fn get(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers a value.
    pub fn set(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }
}

/// A call that remembers its good answers and falls back to the last one. Made by [`Request::or_last_good`].
#[must_use = "nothing happens until `call`"]
#[derive(Debug)]
pub struct OrLastGood<'g, 'l, C, T> {
    pub(crate) request: Request<'g, C>,
    pub(crate) last: &'l LastGood<T>,
}

impl<C, T: Clone> OrLastGood<'_, '_, C, T> {
    /// Makes the call. Nothing happens until the future is polled.
    pub async fn call<O, Fut, E>(self, operation: O) -> Result<Answer<T, E>, Error<E>>
    where
        O: FnMut(Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        C: Classify<T, E>,
    {
        let last = self.last;
        let answer =
            WithFallback::new(self.request, |_: &Error<E>| AtHand(last.get())).call(operation).await?;
        if !answer.is_fallback() {
            last.set((*answer).clone());
        }
        Ok(answer)
    }
}
