//! What the tests share: streams of their own, and waiting with a limit.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_nats::jetstream::stream::{Config, DiscardPolicy};
use async_nats::jetstream::{Context, stream::Stream};
use seawall_dist::Message;
use seawall_nats::NatsConnection;
use seawall_testkit::servers::Nats;

/// How long a test waits for something that has to happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A name that no other test has.
pub(crate) fn unique(name: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

pub(crate) fn connect(nats: &Nats) -> NatsConnection {
    NatsConnection::new(&nats.url()).unwrap()
}

/// The client library itself, which looks at what the server has.
pub(crate) async fn bare(nats: &Nats) -> Context {
    async_nats::jetstream::new(async_nats::connect(nats.url()).await.unwrap())
}

/// A stream with the subjects `{name}.>`.
pub(crate) async fn stream(context: &Context, name: &str) -> Stream {
    let subjects = vec![format!("{name}.>")];
    let discard = DiscardPolicy::New;
    context
        .create_stream(Config { name: name.to_owned(), subjects, discard, ..Config::default() })
        .await
        .unwrap()
}

pub(crate) fn order(stream: &str, number: usize) -> Message {
    Message::new("OrderCreated", format!("order-{number}"), number.to_string())
        .with_event_id(format!("{stream}-e-{number}"))
        .with_topic(format!("{stream}.created"))
}

pub(crate) async fn count(context: &Context, stream: &str) -> u64 {
    context.get_stream(stream).await.unwrap().cached_info().state.messages
}

/// Waits until a condition holds, at most [`PATIENCE`].
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, mut condition: impl FnMut() -> F) {
    let polling = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, polling).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Polls a future at most this often, each time that it is woken; `None` if it has not ended then.
pub(crate) async fn poll_at_most<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
