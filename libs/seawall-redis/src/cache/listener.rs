//! The subscription to the deletions of other processes.

use std::future::poll_fn;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::pin::Pin;
use std::time::Duration;

use futures_core::Stream;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Msg, RedisError};
use seawall::task::cache::{Invalidation, InvalidationListener, RemoteFuture};

use super::log::{subscribed, unsubscribed};
use crate::Connection;

/// How often the listener asks whether its connection still lives. A peer that is gone without a word would otherwise never be
/// missed, and neither would its messages.
pub const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The pause before the second attempt to subscribe. It doubles with each further one.
pub const SUBSCRIBE_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between attempts to subscribe.
pub const SUBSCRIBE_PAUSE_MAX: Duration = Duration::from_secs(2);

/// A subscription that is made again whenever it breaks. It never ends by itself.
pub(super) struct RedisListener {
    connection: Connection,
    channel: String,
    ping_interval: Duration,
    subscription: Option<Subscription>,
    /// The number of failures since the last success.
    failures: u32,
}

impl RedisListener {
    pub(super) fn new(connection: Connection, channel: String, ping_interval: Duration) -> Self {
        RedisListener { connection, channel, ping_interval, subscription: None, failures: 0 }
    }

    async fn wait(&mut self) -> Invalidation {
        loop {
            let cause = match &mut self.subscription {
                None => match Subscription::begin(&self.connection, &self.channel).await {
                    Ok(subscription) => {
                        subscribed(&self.channel);
                        self.subscription = Some(subscription);
                        self.failures = 0;
                        // What was deleted until now was not heard.
                        return Invalidation::All;
                    }
                    Err(error) => error.to_string(),
                },
                Some(subscription) => {
                    match subscription.next(self.ping_interval, self.connection.response_timeout()).await {
                        Some(message) => return key_of(&message),
                        None => "the connection broke".to_owned(),
                    }
                }
            };
            self.subscription = None;
            let pause = pause_after(self.failures);
            self.failures = self.failures.saturating_add(1);
            unsubscribed(&self.channel, pause, &cause);
            tokio::time::sleep(pause).await;
        }
    }
}

impl InvalidationListener for RedisListener {
    fn next(&mut self) -> RemoteFuture<'_, Invalidation> {
        Box::pin(async move { Ok(self.wait().await) })
    }
}

/// A connection that is subscribed.
struct Subscription {
    sink: PubSubSink,
    messages: PubSubStream,
}

impl Subscription {
    async fn begin(connection: &Connection, channel: &str) -> Result<Self, RedisError> {
        let begin = async {
            let (mut sink, messages) = connection.client().get_async_pubsub().await?.split();
            sink.subscribe(channel).await?;
            Ok(Subscription { sink, messages })
        };
        // The client has no limit of its own for this kind of connection.
        match tokio::time::timeout(connection.connect_timeout(), begin).await {
            Ok(result) => result,
            Err(_) => Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()),
        }
    }

    /// Waits for a message; `None` when the connection is lost.
    async fn next(&mut self, ping_interval: Duration, response_timeout: Duration) -> Option<Msg> {
        loop {
            tokio::select! {
                message = next_message(&mut self.messages) => return message,
                () = tokio::time::sleep(ping_interval) => {
                    let pong = tokio::time::timeout(response_timeout, self.sink.ping::<redis::Value>()).await;
                    if !matches!(pong, Ok(Ok(_))) {
                        return None;
                    }
                }
            }
        }
    }
}

async fn next_message(messages: &mut PubSubStream) -> Option<Msg> {
    poll_fn(|cx| Pin::new(&mut *messages).poll_next(cx)).await
}

/// A message is the key that was deleted. One that is not text says nothing about which.
fn key_of(message: &Msg) -> Invalidation {
    match std::str::from_utf8(message.get_payload_bytes()) {
        Ok(key) => Invalidation::Key(key.to_owned()),
        Err(_) => Invalidation::All,
    }
}

/// The pause after so many failures. Half of it is random, so that processes that lost Redis together come back apart.
fn pause_after(failures: u32) -> Duration {
    let full = SUBSCRIBE_PAUSE.saturating_mul(1 << failures.min(16)).min(SUBSCRIBE_PAUSE_MAX);
    let random = (random_number() >> 32) as u32;
    full / 2 + (full / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

/// A number that nobody can foresee: the keys of a hash map's hasher are random.
pub(super) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSK-3: pauses grow to their maximum and differ between processes.
    #[test]
    fn tsk_3_pauses_between_attempts_to_subscribe_grow_to_a_maximum() {
        for failures in [0, 1, 5, 40, u32::MAX] {
            let pause = pause_after(failures);
            assert!(pause >= SUBSCRIBE_PAUSE / 2 && pause <= SUBSCRIBE_PAUSE_MAX, "{failures}: {pause:?}");
        }
        assert!(pause_after(40) >= SUBSCRIBE_PAUSE_MAX / 2);
        assert_ne!(random_number(), random_number());
    }
}
