//! CRD-4, CRD-7: the consumer with an inbox, with stores that are away, and dead letters that are replayed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use seawall::Fault;
use seawall_dist::deadletter::{DeadLetters, MemoryDeadLetters, Record, ReplayOutcome, ReplayRequest};
use seawall_dist::idempotency::{
    ClaimAnswer, ClaimRequest, Idempotency, IdempotencyKey, IdempotencyStore, Inbox, MemoryIdempotency,
    StoredResult,
};
use seawall_dist::messaging::{Delivery, HandlerError, PublisherReplayer};
use seawall_dist::{Message, StoreError, StoreFuture};
use seawall_kafka::consumer::default_processor;
use seawall_kafka::{KafkaConsumer, KafkaDeadLetterConsumer, KafkaPublisher};
use seawall_testkit::servers::Kafka;

use super::consumer::{HandledRecords, Running, publish};
use super::support::{PATIENCE, cluster_of, count_of, messages, topic, unique, until};

/// A store that can be away.
struct UnsteadyStore {
    memory: MemoryIdempotency,
    is_away: AtomicBool,
    refusals: AtomicUsize,
}

impl IdempotencyStore for UnsteadyStore {
    fn claim<'a>(&'a self, key: &'a IdempotencyKey, request: ClaimRequest) -> StoreFuture<'a, ClaimAnswer> {
        if self.is_away.load(Ordering::SeqCst) {
            self.refusals.fetch_add(1, Ordering::SeqCst);
            return Box::pin(async {
                Err(StoreError::without_cause("claiming a key", Fault::unreachable()))
            });
        }
        self.memory.claim(key, request)
    }

    fn renew<'a>(&'a self, key: &'a IdempotencyKey, holder: u64, lease: Duration) -> StoreFuture<'a, bool> {
        self.memory.renew(key, holder, lease)
    }

    fn complete<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        holder: u64,
        result: &'a StoredResult,
        ttl: Duration,
    ) -> StoreFuture<'a, bool> {
        self.memory.complete(key, holder, result, ttl)
    }

    fn release<'a>(&'a self, key: &'a IdempotencyKey, holder: u64) -> StoreFuture<'a, bool> {
        self.memory.release(key, holder)
    }

    fn resolve<'a>(
        &'a self,
        key: &'a IdempotencyKey,
        result: Option<&'a StoredResult>,
    ) -> StoreFuture<'a, bool> {
        self.memory.resolve(key, result)
    }
}

/// CRD-4: a message that is in the topic twice is handled once, and while the inbox's store is away nothing is handled, lost
/// or given up.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_4_an_inbox_handles_repeated_messages_once_and_waits_for_its_store() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("inbox", 2).await, HandledRecords::default());
    let sent = messages(&topic, 50, 10);
    publish(kafka, &sent).await;
    publish(kafka, &sent).await;
    let store = Arc::new(UnsteadyStore {
        memory: MemoryIdempotency::new(),
        is_away: AtomicBool::new(true),
        refusals: AtomicUsize::new(0),
    });
    let by = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        by.add(&delivery);
        async { Ok::<(), HandlerError>(()) }
    };
    let inbox = Inbox::new("billing", Idempotency::new(store.clone())).unwrap();
    let processor = default_processor(handler).inbox(inbox).build().unwrap();
    let group = unique("group");
    let consumer =
        KafkaConsumer::with_processor(&cluster_of(kafka), &group, &topic, processor).build().unwrap();
    let running = Running::start(consumer);
    until("the consumer asks the store again", async || store.refusals.load(Ordering::SeqCst) > 20).await;
    assert_eq!(seen.len(), 0, "records were handled without the inbox");
    store.is_away.store(false, Ordering::SeqCst);
    until("all messages are handled", async || seen.counts().len() == 50).await;
    publish(kafka, &[Message::new("OrderPaid", "order-1", "last").with_topic(&topic)]).await;
    until("the last message is handled", async || seen.counts().len() == 51).await;
    running.stop().await;
    assert_eq!(seen.len(), 51, "a repeated message was handled twice");
    let elsewhere = ["retry-1", "retry-2", "dlt"].map(|name| count_of(kafka, &format!("{topic}-{name}")));
    assert_eq!(elsewhere, [0, 0, 0], "an outage of the inbox's store cost attempts");
}

/// CRD-7: a dead letter that was taken over is replayed to the topic that it came from, and processed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_7_a_dead_letter_is_replayed_to_its_topic() {
    let (kafka, topic, seen) = (Kafka::shared(), topic("replay", 1).await, HandledRecords::default());
    let is_mended = Arc::new(AtomicBool::new(false));
    let sent = Message::new("OrderPaid", "order-7", "letter").with_topic(&topic).with_header("tenant", "t1");
    publish(kafka, std::slice::from_ref(&sent)).await;
    let (by, mended) = (seen.clone(), is_mended.clone());
    let handler = move |delivery: Arc<Delivery>| {
        let is_mended = mended.load(Ordering::SeqCst);
        let message = delivery.message();
        let is_same = message.header("tenant") == Some("t1") && message.aggregate_id() == "order-7";
        if is_mended && is_same {
            by.add(&delivery);
        }
        async move { if is_mended { Ok(()) } else { Err(HandlerError::invalid("no order number")) } }
    };
    let consumer =
        KafkaConsumer::builder(&cluster_of(kafka), unique("group"), &topic, handler).build().unwrap();
    let running = Running::start(consumer);
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let taken = Arc::new(std::sync::Mutex::new(None::<Record>));
    let alert = taken.clone();
    let intake = KafkaDeadLetterConsumer::builder(&cluster_of(kafka), unique("dlt"), &topic, letters.clone())
        .alert(move |record| *alert.lock().unwrap() = Some(record.clone()))
        .build()
        .unwrap();
    let found = taken.clone();
    let run = intake.run_until(until("a dead letter", async move || found.lock().unwrap().is_some()));
    tokio::time::timeout(PATIENCE, run).await.expect("the intake did not stop").unwrap();
    let record = taken.lock().unwrap().clone().unwrap();
    is_mended.store(true, Ordering::SeqCst);
    let publisher = Arc::new(KafkaPublisher::builder(&cluster_of(kafka)).build().unwrap());
    let replayer = PublisherReplayer::new(publisher);
    let outcome = letters.replay(&record.id, &ReplayRequest::new("click-1"), &replayer).await.unwrap();
    assert!(matches!(outcome, ReplayOutcome::Replayed { repeated: false, .. }), "{outcome:?}");
    until("the letter is processed", async || seen.len() == 1).await;
    running.stop().await;
    assert_eq!(seen.all()[0], ("letter".to_owned(), 1, topic.clone()));
}
