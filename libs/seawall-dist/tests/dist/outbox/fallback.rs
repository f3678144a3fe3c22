//! Publish now, or store for later.

use std::sync::Arc;

use seawall::{Breaker, Fault, Guard};
use seawall_dist::outbox::{FallbackError, FallbackPublisher, MemoryOutbox, OutboxStore, PublishedBy};
use seawall_dist::{Message, PublishError, PublishFuture, Publisher};

use super::away::Away;

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
