//! The results of a dispatcher as a stream.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use tokio::task::coop;

use super::config::{Progress, Share};
use super::pool::{Pool, Rules};
use super::workers::Workers;
use crate::task::TaskError;

/// The result of one item in a [`ResultStream`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ItemResult<R, E> {
    /// The position of the item in the input, from 0.
    pub index: usize,
    /// The result of the handler.
    pub result: Result<R, TaskError<E>>,
}

pin_project! {
    /// The results of a [`Dispatcher`](super::Dispatcher) as a [`Stream`].
    ///
    /// [`next`](ResultStream::next) takes results without a crate for streams. The dispatcher takes no items and makes no progress
    /// while the caller asks for no results. Dropping the stream cancels the items in progress.
    #[must_use = "a stream does nothing until it is polled"]
    pub struct ResultStream<'a, S, T, W: Workers<T>> {
        #[pin]
        input: S,
        input_ended: bool,
        pool: Pool<'a, T, W>,
        progress: Option<Progress<'a>>,
    }
}

/// So often one poll looks for workers that were woken meanwhile, before it lets others have a turn.
const ROUNDS_MAX: usize = 2;

/// So many results cost one of the operations that tokio lets a task do in one go (128): asking each time would cost as much
/// as the item.
const RESULTS_PER_TURN: usize = 16;

impl<'a, S, T, W> ResultStream<'a, S, T, W>
where
    S: Stream<Item = T>,
    W: Workers<T>,
{
    pub(super) fn new(
        input: S,
        work: W,
        rules: Rules,
        share: Share<'a, T>,
        progress: Option<Progress<'a>>,
    ) -> Self {
        ResultStream { input, input_ended: false, pool: Pool::new(work, rules, share), progress }
    }

    /// Returns the next result, or `None` after the last one.
    pub async fn next(&mut self) -> Option<ItemResult<W::Output, W::Error>>
    where
        Self: Unpin,
    {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// At least so many items are to come.
    pub(super) fn expected(&self) -> usize {
        self.input.size_hint().0
    }
}

impl<S, T, W> Stream for ResultStream<'_, S, T, W>
where
    S: Stream<Item = T>,
    W: Workers<T>,
{
    type Item = ItemResult<W::Output, W::Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut this = self.project();
        if this.pool.given().is_multiple_of(RESULTS_PER_TURN) {
            // Handlers that never wait must not keep others waiting for ever.
            ready!(coop::poll_proceed(cx)).made_progress();
        }
        for _ in 0..ROUNDS_MAX {
            let mut ended = this.pool.go_on();
            while ended.is_none() && !*this.input_ended && this.pool.has_room() {
                match this.input.as_mut().poll_next(cx) {
                    Poll::Ready(Some(item)) => ended = this.pool.take(item),
                    Poll::Ready(None) => *this.input_ended = true,
                    Poll::Pending => break,
                }
            }
            if let Some((index, result)) = ended {
                if let Some(progress) = this.progress {
                    progress(this.pool.given(), total(this.pool.taken(), *this.input_ended, &this.input));
                }
                return Poll::Ready(Some(ItemResult { index, result }));
            }
            if *this.input_ended && this.pool.taken() == this.pool.given() {
                return Poll::Ready(None);
            }
            if this.pool.sleep(cx.waker()) {
                return Poll::Pending;
            }
            if !coop::has_budget_remaining() {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let open = self.pool.taken() - self.pool.given();
        let (least, most) = if self.input_ended { (0, Some(0)) } else { self.input.size_hint() };
        (least.saturating_add(open), most.and_then(|most| most.checked_add(open)))
    }
}

/// How many items there are in all, if that is known.
fn total(taken: usize, ended: bool, input: &impl Stream) -> Option<usize> {
    match input.size_hint() {
        _ if ended => Some(taken),
        (least, Some(most)) if least == most => taken.checked_add(most),
        _ => None,
    }
}

/// The items of an iterator as a stream that never waits. [`Dispatcher::stream`](super::Dispatcher::stream) uses it.
#[derive(Clone, Debug)]
pub struct ItemStream<I>(pub(super) I);

// It hands out what the iterator gives, and pins nothing.
impl<I> Unpin for ItemStream<I> {}

impl<I: Iterator> Stream for ItemStream<I> {
    type Item = I::Item;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<I::Item>> {
        Poll::Ready(self.0.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}
