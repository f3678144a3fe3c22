use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use seawall::{millis, secs};
use seawall_dist::deadletter::{DeadLetters, MemoryDeadLetters, PutOutcome, ReplayOutcome, ReplayRequest};
use seawall_dist::messaging::{
    AttemptFailure, CONSUMER_HEADER, DeadLetterIntake, DeathReason, Delivery, FailureEvidence,
    PublisherReplayer,
};
use seawall_dist::{Message, Millis, PublishFuture, Publisher};

use seawall_testkit::ManualClock;

use super::delivery;

/// A message as an adapter puts it into the dead letter place of its broker.
fn dead(id: &str) -> Delivery {
    let source = delivery(id, 2);
    let message = source.message();
    let mut evidence = FailureEvidence::from_headers(message.headers());
    evidence.set_origin(source.place(), &source.position_text());
    for attempt in 1..=2 {
        let error = format!("failure {attempt}");
        evidence.add(AttemptFailure {
            attempt,
            at: Millis(1_000 * i64::from(attempt)),
            took: millis(7),
            error,
        });
    }
    evidence.set_reason(DeathReason::Attempts);
    let headers = evidence.apply(message.headers());
    let copy =
        Message::new(message.event_type(), message.aggregate_id(), message.payload()).with_event_id(id);
    let copy = headers.into_iter().fold(copy, |copy, (name, value)| copy.with_header(name, value));
    Delivery::new(copy, "orders-dlt", 1).with_position("partition", 0).with_position("offset", 4)
}

/// Keeps what was published.
#[derive(Default)]
struct Published(Mutex<Vec<Message>>);

impl Publisher for Published {
    fn publish<'a>(&'a self, messages: &'a [Message]) -> PublishFuture<'a> {
        Box::pin(async move {
            self.0.lock().unwrap().extend(messages.iter().cloned());
            messages.iter().map(|_| Ok(())).collect()
        })
    }
}

/// CRD-7: a message of a dead letter queue is one letter with every attempt, however often it is taken, and raises an alert.
#[tokio::test]
async fn crd_7_a_message_of_a_dead_letter_queue_becomes_one_letter_with_its_evidence() {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let alerts = Arc::new(AtomicU32::new(0));
    let counted = alerts.clone();
    let intake = DeadLetterIntake::new("kafka", "Kafka-DLT", letters.clone()).alert(move |record| {
        assert_eq!(record.origin.place, "orders");
        counted.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(intake.take(&dead("e-1")).await.unwrap(), PutOutcome::Created);
    assert_eq!(intake.take(&dead("e-1")).await.unwrap(), PutOutcome::Known);
    assert_eq!(alerts.load(Ordering::SeqCst), 2, "a crash between store and alert must not hide it");

    let letter = letters.get("kafka:orders:e-1").await.unwrap().unwrap();
    let record = &letter.record;
    assert_eq!((record.origin.kind.as_str(), record.origin.id.as_str()), ("kafka", "e-1"));
    assert_eq!(
        (record.fault.reason.as_str(), record.fault.message.as_deref()),
        ("attempts", Some("failure 2"))
    );
    let errors: Vec<_> = record.attempts.iter().filter_map(|attempt| attempt.error.as_deref()).collect();
    assert_eq!(errors, ["failure 1", "failure 2"]);
    assert_eq!(record.trace.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    assert_eq!(letters.search("failure 2", 10).await.unwrap().letters.len(), 1);
}

/// CRD-7: an event that two consumers gave up is two letters, and each says whose it is.
#[tokio::test]
async fn crd_7_what_two_consumers_gave_up_is_two_letters() {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let intake = DeadLetterIntake::new("kafka", "Kafka-DLT", letters.clone());
    for consumer in ["billing", "shipping"] {
        let mut evidence = FailureEvidence::default();
        evidence.set_origin("orders", "partition=0 offset=7");
        evidence.set_consumer(consumer);
        let message = Message::received("e-1", "OrderCreated", "order-17", "{}");
        let headers = evidence.apply(&[]).into_iter();
        let message = headers.fold(message, |message, (name, value)| message.with_header(name, value));
        let delivery = Delivery::new(message, "orders-dlt", 1);
        assert_eq!(intake.take(&delivery).await.unwrap(), PutOutcome::Created, "{consumer}");
        assert_eq!(intake.take(&delivery).await.unwrap(), PutOutcome::Known, "{consumer}");
        let letter = letters.get(&format!("kafka:orders:e-1:{consumer}")).await.unwrap().unwrap();
        let named = letter.record.headers.iter().find(|(name, _)| name == CONSUMER_HEADER);
        assert_eq!(named.map(|(_, value)| value.as_str()), Some(consumer));
    }
}

/// CRD-7: a message whose evidence has no time is known when it is delivered again later, and a deleted letter stays deleted.
#[tokio::test]
async fn crd_7_a_message_without_a_time_is_known_however_late_it_comes_again() {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let time = ManualClock::new();
    let intake = DeadLetterIntake::new("kafka", "Kafka-DLT", letters.clone()).clock(time.clock());
    let foreign =
        || Delivery::new(Message::received("e-1", "OrderCreated", "order-17", "{}"), "orders-dlt", 1);
    assert_eq!(intake.take(&foreign()).await.unwrap(), PutOutcome::Created);
    time.advance(secs(60));
    assert_eq!(intake.take(&foreign()).await.unwrap(), PutOutcome::Known);

    letters.delete("kafka:orders-dlt:e-1").await.unwrap();
    time.advance(secs(60));
    assert_eq!(intake.take(&foreign()).await.unwrap(), PutOutcome::Known);
    let letter = letters.get("kafka:orders-dlt:e-1").await.unwrap().unwrap();
    assert!(letter.deleted_at.is_some(), "a repeated delivery is no new death");

    letters.restore("kafka:orders-dlt:e-1").await.unwrap();
    let replayer = PublisherReplayer::new(Arc::new(Published::default()));
    letters.replay("kafka:orders-dlt:e-1", &ReplayRequest::new("a"), &replayer).await.unwrap();
    time.advance(secs(60));
    assert_eq!(intake.take(&foreign()).await.unwrap(), PutOutcome::Updated, "it died again after its replay");
}

/// CRD-7: a replay publishes the message to where it came from, as it was, with marks and without evidence.
#[tokio::test]
async fn crd_7_a_replay_publishes_the_message_as_it_was() {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    DeadLetterIntake::new("kafka", "Kafka-DLT", letters.clone()).take(&dead("e-1")).await.unwrap();
    let published = Arc::new(Published::default());
    let replayer = PublisherReplayer::new(published.clone());
    let outcome = letters.replay("kafka:orders:e-1", &ReplayRequest::new("a"), &replayer).await.unwrap();
    assert_eq!(outcome, ReplayOutcome::Replayed { generation: 1, repeated: false });
    let message = published.0.lock().unwrap().pop().unwrap();
    assert_eq!(
        (message.topic(), message.event_id(), message.event_type()),
        ("orders", "e-1", "OrderCreated")
    );
    assert_eq!((message.aggregate_id(), message.payload()), ("order-17", b"{}".as_slice()));
    assert_eq!(message.header("seawall-replayed"), Some("true"));
    assert_eq!(FailureEvidence::from_headers(message.headers()), FailureEvidence::default());
    assert!(message.header("traceparent").is_some());
}

/// CRD-7: an alert that panics stops nothing, and a message without id or evidence is still a letter.
#[tokio::test]
async fn crd_7_a_message_without_evidence_and_a_panicking_alert_lose_nothing() {
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let intake =
        DeadLetterIntake::new("amqp", "RabbitMQ-DLQ", letters.clone()).alert(|_| panic!("pager is down"));
    let foreign =
        Delivery::new(Message::new("", "", "x").with_event_id(""), "dlq", 1).with_position("sequence", 9);
    assert_eq!(intake.take(&foreign).await.unwrap(), PutOutcome::Created);
    let letter = letters.get("amqp:dlq:sequence=9").await.unwrap().unwrap();
    assert_eq!(letter.record.fault.reason, "unknown");
}
