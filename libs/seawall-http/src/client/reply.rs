//! Waiting for an answer, or for the news that there will be none.
//!
//! # Why not just wait?
//! A request is handed to its connection through a channel. A connection that closes in that very moment may empty the channel
//! just before the request is in it, and then nobody will ever answer (<https://github.com/hyperium/hyper/issues/4122>, open with
//! hyper 1.12). So when a request waits for long, its connection is watched: when the socket is gone and no answer came with
//! its end, none will come.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use http::{Extensions, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use hyper_util::client::legacy::{self, Client};

use crate::body::Outgoing;
use crate::dial::{Dialer, Peer};
use crate::error::{Cause, HttpError};
use crate::fault::of_pool;

/// A connection is watched only for requests that wait for longer: most do not, and should not pay for it.
const WATCH_AFTER: Duration = Duration::from_millis(100);

/// How long an answer may take to get from a socket that is gone to here. It is on its way through memory; on a machine that
/// is busy that may take a while.
const GRACE: Duration = Duration::from_millis(100);

/// What became of a request.
pub(super) enum Reply {
    Answer(Response<Incoming>),
    /// The idle connection that it was given to was closed before it took the request: nothing was written, and another
    /// connection may be better.
    Stale(HttpError),
    Failed(HttpError),
}

pub(super) async fn reply(pool: &Client<Dialer, Outgoing>, mut wire: Request<Outgoing>) -> Reply {
    let captured = capture_connection(&mut wire);
    let mut answer = pin!(pool.request(wire));
    let mut lost = pin!(lost(&captured));
    let answer = poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending => lost.as_mut().poll(cx).map(|()| None),
    });
    match answer.await {
        Some(Ok(answer)) => Reply::Answer(answer),
        Some(Err(error)) => judged(error, &captured),
        None => Reply::Failed(Cause::Exchange("the connection was closed".into()).into()),
    }
}

fn judged(error: legacy::Error, captured: &CaptureConnection) -> Reply {
    let error = of_pool(error);
    let is_unwritten = matches!(error.cause(), Cause::NotWritten(_));
    let was_used = || peer(captured).is_some_and(|peer| peer.was_used());
    if is_unwritten && was_used() { Reply::Stale(error) } else { Reply::Failed(error) }
}

/// Ends when the connection of the request is gone, and an answer with it would be here.
async fn lost(captured: &CaptureConnection) {
    tokio::time::sleep(WATCH_AFTER).await;
    // Nobody wakes us for this: the request gets its connection while it is polled, and then this is polled too.
    let peer = poll_fn(|_| peer(captured).map_or(Poll::Pending, Poll::Ready)).await;
    peer.gone().await;
    tokio::time::sleep(GRACE).await;
}

/// The connection that the request was given to.
fn peer(captured: &CaptureConnection) -> Option<Peer> {
    let mut extras = Extensions::new();
    captured.connection_metadata().as_ref()?.get_extras(&mut extras);
    extras.remove()
}
