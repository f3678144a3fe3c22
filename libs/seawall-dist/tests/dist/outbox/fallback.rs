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

/// Keeps the level and the text of every event.
#[cfg(feature = "tracing")]
#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<String>>>);

#[cfg(feature = "tracing")]
impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        struct Text(String);
        impl tracing::field::Visit for Text {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.lock().unwrap().push(format!("{} {}", event.metadata().level(), text.0));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

/// CRD-3, OBS-1: the lines are those of the seed.
#[cfg(feature = "tracing")]
#[tokio::test]
async fn crd_3_the_log_lines_of_a_fallback_are_those_of_the_seed() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let outbox = Arc::new(MemoryOutbox::new());
    publisher(Some(Fault::rejected()), outbox.clone()).publish(&message()).await.unwrap();
    publisher(Some(Fault::unreachable()), Arc::new(Away)).publish(&message()).await.unwrap_err();
    assert_eq!(
        *lines.0.lock().unwrap(),
        [
            "ERROR [Kafka-Publisher][Fallback] Circuit open, saving to outbox.",
            "INFO [Kafka-Publisher][Outbox] Saved.",
            "ERROR [Kafka-Publisher][Fallback] Broker unavailable, saving to outbox.",
            "ERROR [Kafka-Publisher][Outbox] Failed to store! Data loss risk!",
        ]
    );
}
