//! Publish now, or store for later.

use std::sync::Arc;

use seawall::{Breaker, Fault, Guard, Retry, secs};
use seawall_dist::outbox::{FallbackError, FallbackPublisher, MemoryOutbox, OutboxStore, PublishedBy};
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};
#[cfg(feature = "tracing")]
use seawall_testkit::observe::Lines;
use tokio::time::timeout;

use super::away::Away;
use super::faulty::Faulty;

struct Broker(Option<Fault>);

impl Publisher for Broker {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        let result =
            move || self.0.map_or(Ok(()), |fault| Err(PublishError::new(fault, "the broker says no")));
        Box::pin(async move { messages.iter().map(|_| result()).collect() })
    }
}

fn publisher(fault: Option<Fault>, store: Arc<dyn OutboxStore>) -> FallbackPublisher {
    FallbackPublisher::new("Kafka-Publisher", Arc::new(Broker(fault)), store)
}

fn message() -> Message {
    Message::new("OrderCreated", "order-17", "{}")
}

/// CRD-3: a broker that is up gets the message, and the outbox does not.
#[tokio::test]
async fn crd_3_a_message_is_published_at_once_if_the_broker_is_up() {
    let outbox = MemoryOutbox::new();
    let by = publisher(None, Arc::new(outbox.clone())).publish(&message()).await.unwrap();
    assert_eq!((by, outbox.stats().await.unwrap().depth), (PublishedBy::Broker, 0));
}

/// CRD-3: if the broker is down, or its circuit open, the message is stored.
#[tokio::test]
async fn crd_3_a_message_is_stored_if_the_broker_is_down() {
    let outbox = MemoryOutbox::new();
    for fault in [Fault::unreachable(), Fault::timeout(), Fault::throttled(), Fault::rejected()] {
        let by = publisher(Some(fault), Arc::new(outbox.clone())).publish(&message()).await.unwrap();
        assert_eq!(by, PublishedBy::Outbox);
    }
    assert_eq!(outbox.stats().await.unwrap().depth, 4);
    let guard = Guard::builder("kafka").breaker(Breaker::default()).build().unwrap();
    guard.breaker().unwrap().force_open("a test");
    let by = publisher(None, Arc::new(outbox.clone())).guard(guard).publish(&message()).await.unwrap();
    assert_eq!((by, outbox.stats().await.unwrap().depth), (PublishedBy::Outbox, 5));
}

/// CRD-3: a fault that can't be retried is not stored.
#[tokio::test]
async fn crd_3_a_message_that_is_refused_for_good_is_not_stored() {
    let outbox = MemoryOutbox::new();
    let result = publisher(Some(Fault::business()), Arc::new(outbox.clone())).publish(&message()).await;
    assert!(matches!(result, Err(FallbackError::Refused(_))));
    assert_eq!(outbox.stats().await.unwrap().depth, 0);
}

/// CRD-3: broker and outbox both failing is an error of its own, and converts into anyhow.
#[tokio::test]
async fn crd_3_broker_and_outbox_both_away_is_a_risk_of_data_loss() {
    let result: anyhow::Result<PublishedBy> =
        async { Ok(publisher(Some(Fault::unreachable()), Arc::new(Away)).publish(&message()).await?) }.await;
    let error = result.unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(FallbackError::DataLossRisk { .. })));
    assert_eq!(
        format!("{error:#}").split(": i/o").next().unwrap(),
        "data loss risk: the message was neither published (the broker says no) nor stored: writing to the outbox failed"
    );
}

/// CRD-3, OBS-1: the lines are those of the seed.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn crd_3_the_log_lines_of_a_fallback_are_those_of_the_seed() {
    let lines = Lines::collect();
    let outbox = Arc::new(MemoryOutbox::new());
    publisher(Some(Fault::rejected()), outbox.clone()).publish(&message()).await.unwrap();
    publisher(Some(Fault::unreachable()), Arc::new(Away)).publish(&message()).await.unwrap_err();
    let text =
        |line: String| line.split(' ').take_while(|word| !word.contains('=')).collect::<Vec<_>>().join(" ");
    assert_eq!(
        lines.take().into_iter().map(text).collect::<Vec<_>>(),
        [
            "ERROR [Kafka-Publisher][Fallback] Circuit open, saving to outbox.",
            "INFO [Kafka-Publisher][Outbox] Saved.",
            "ERROR [Kafka-Publisher][Fallback] Broker unavailable, saving to outbox.",
            "ERROR [Kafka-Publisher][Outbox] Failed to store! Data loss risk!",
        ]
    );
}

/// A broker that never answers.
struct Hanging;

impl Publisher for Hanging {
    fn publish<'a>(&'a self, _: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(std::future::pending())
    }
}

/// CRD-3: a broker that hangs is one that is away: the message is stored. An outbox that hangs too is a risk of data loss.
#[tokio::test(start_paused = true)]
async fn crd_3_a_broker_that_hangs_is_one_that_is_away() {
    let faulty = Arc::new(Faulty::default());
    let publisher = FallbackPublisher::new("Kafka-Publisher", Arc::new(Hanging), faulty.clone());
    let by = timeout(secs(60), publisher.publish(&message())).await.expect("it waits for ever").unwrap();
    assert_eq!((by, faulty.outbox.stats().await.unwrap().depth), (PublishedBy::Outbox, 1));
    faulty.hang("store", 1);
    let result = timeout(secs(60), publisher.publish(&message())).await.expect("it waits for ever");
    assert!(matches!(result, Err(FallbackError::DataLossRisk { .. })), "{result:?}");
}

/// CRD-3: a message whose retries are used up is stored for later, and one that the broker refuses is not.
#[tokio::test(start_paused = true)]
async fn crd_3_a_message_is_stored_when_the_retries_of_its_guard_are_used_up() {
    let guard = || Guard::builder("kafka").retry(Retry::max_attempts(3)).build().unwrap();
    for fault in [Fault::unreachable(), Fault::timeout(), Fault::throttled()] {
        let store = Arc::new(MemoryOutbox::new());
        let by = publisher(Some(fault), store.clone()).guard(guard()).publish(&message()).await.unwrap();
        assert_eq!(by, PublishedBy::Outbox, "{fault:?}");
        assert_eq!(store.stats().await.unwrap().depth, 1);
    }
    let store = Arc::new(MemoryOutbox::new());
    let refused = publisher(Some(Fault::business()), store.clone()).guard(guard()).publish(&message()).await;
    assert!(matches!(refused, Err(FallbackError::Refused(_))), "{refused:?}");
    assert_eq!(store.stats().await.unwrap().depth, 0);
}
