//! Where the handler of an item runs: in the caller's own task, or in a task per item.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tokio::task::JoinHandle;

use crate::task::error::flatten;
use crate::task::panic::Caught;
use crate::task::{Panic, TaskError, in_caller_span};

/// Decides where a [`Dispatcher`](super::Dispatcher) runs the handler of an item of type `T`: [`InlineWorkers`] or
/// [`TaskWorkers`].
///
/// This trait is sealed. It is public so that a function can name the dispatcher that it returns.
pub trait Workers<T>: sealed::Sealed {
    /// The value that the handler returns.
    type Output;
    /// The error that the handler returns.
    type Error;
    /// The future of one item. Dropping it cancels the item.
    #[doc(hidden)]
    type Future: Future<Output = Result<Self::Output, TaskError<Self::Error>>>;

    #[doc(hidden)]
    fn start(&self, item: T) -> Self::Future;
}

/// Workers that run inside the task that awaits the results. They may borrow from it, and the dispatcher spawns nothing.
#[derive(Clone, Debug)]
pub struct InlineWorkers<H>(pub(super) H);

/// Workers that run every item as a task of its own, on all threads of the runtime.
#[derive(Debug)]
pub struct TaskWorkers<H>(pub(super) Arc<H>);

mod sealed {
    pub trait Sealed {}
    impl<H> Sealed for super::InlineWorkers<H> {}
    impl<H> Sealed for super::TaskWorkers<H> {}
}

impl<T, H, F, R, E> Workers<T> for InlineWorkers<H>
where
    H: Fn(T) -> F,
    F: Future<Output = Result<R, E>>,
{
    type Output = R;
    type Error = E;
    type Future = Here<F>;

    #[inline]
    fn start(&self, item: T) -> Here<F> {
        Here { future: (self.0)(item) }
    }
}

pin_project! {
    pub struct Here<F> {
        #[pin]
        future: F,
    }
}

impl<F: Future<Output = Result<R, E>>, R, E> Future for Here<F> {
    type Output = Result<R, TaskError<E>>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().future.poll(cx).map_err(TaskError::Failed)
    }
}

impl<T, H, F, R, E> Workers<T> for TaskWorkers<H>
where
    H: Fn(T) -> F + Send + Sync + 'static,
    F: Future<Output = Result<R, E>> + Send,
    T: Send + 'static,
    R: Send + 'static,
    E: Send + 'static,
{
    type Output = R;
    type Error = E;
    type Future = Task<R, E>;

    fn start(&self, item: T) -> Task<R, E> {
        let handler = Arc::clone(&self.0);
        // The handler is called within the task too, so that what it does before its first await runs there.
        let work = Caught::new(async move { handler(item).await });
        #[expect(clippy::disallowed_methods, reason = "whoever drops `Task` ends it, so it is not detached")]
        Task(tokio::spawn(in_caller_span(work)))
    }
}

pub struct Task<R, E>(JoinHandle<Result<Result<R, E>, Panic>>);

impl<R, E> Future for Task<R, E> {
    type Output = Result<R, TaskError<E>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(Pin::new(&mut self.0).poll(cx)) {
            Ok(caught) => flatten(caught),
            Err(error) => Err(error.into()),
        })
    }
}

impl<R, E> Drop for Task<R, E> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
