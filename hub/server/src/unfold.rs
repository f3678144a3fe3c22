//! Bodies that are made piece by piece, only as fast as the client reads them.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame};

/// A state that becomes a piece and the next state; `None` at the end.
pub(crate) trait Unfold: Sized + Send + 'static {
    /// Why a body breaks off, so that no client takes it for complete.
    type Error;

    /// The next piece.
    fn next(self) -> impl Future<Output = Result<Option<(Bytes, Self)>, Self::Error>> + Send;
}

type NextPiece<S> = Pin<Box<dyn Future<Output = Result<Option<(Bytes, S)>, <S as Unfold>::Error>> + Send>>;

/// The body that a state unfolds into; `None` after the end.
pub(crate) struct UnfoldBody<S: Unfold>(Option<NextPiece<S>>);

impl<S: Unfold> UnfoldBody<S> {
    pub(crate) fn new(state: S) -> Self {
        UnfoldBody(Some(Box::pin(state.next())))
    }
}

impl<S: Unfold> Body for UnfoldBody<S> {
    type Data = Bytes;
    type Error = S::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, S::Error>>> {
        let this = self.get_mut();
        let Some(next) = &mut this.0 else { return Poll::Ready(None) };
        let piece = ready!(next.as_mut().poll(cx)).transpose();
        this.0 = None;
        Poll::Ready(piece.map(|piece| {
            piece.map(|(bytes, state)| {
                this.0 = Some(Box::pin(state.next()));
                Frame::data(bytes)
            })
        }))
    }
}
