//! Streams made of async functions.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

type Step<T, S> = Pin<Box<dyn Future<Output = Option<(T, S)>> + Send>>;

/// A stream whose next item is made out of a state. It ends when the function returns `None`.
struct Unfold<T, S, F> {
    state: Option<S>,
    step: Option<Step<T, S>>,
    next: F,
}

/// Makes a stream out of a state and a function that returns the next item with the next state.
pub(crate) fn unfold<T, S, F, Fut>(state: S, mut next: F) -> impl Stream<Item = T> + Send + 'static
where
    T: Send + 'static,
    S: Send + Unpin + 'static,
    F: FnMut(S) -> Fut + Send + Unpin + 'static,
    Fut: Future<Output = Option<(T, S)>> + Send + 'static,
{
    let next = move |state| -> Step<T, S> { Box::pin(next(state)) };
    Unfold { state: Some(state), step: None, next }
}

impl<T, S, F> Stream for Unfold<T, S, F>
where
    S: Unpin,
    F: FnMut(S) -> Step<T, S> + Unpin,
{
    type Item = T;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        let this = self.get_mut();
        if let Some(state) = this.state.take() {
            this.step = Some((this.next)(state));
        }
        let Some(step) = &mut this.step else { return Poll::Ready(None) };
        let made = ready!(step.as_mut().poll(context));
        this.step = None;
        Poll::Ready(made.map(|(item, state)| {
            this.state = Some(state);
            item
        }))
    }
}
