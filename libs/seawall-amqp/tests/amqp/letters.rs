use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lapin::BasicProperties;
use lapin::options::BasicPublishOptions;
use lapin::types::{AMQPValue, FieldTable};
use seawall::Fault;
use seawall_amqp::AmqpConnection;
use seawall_amqp::consume::AmqpDeadLetterReader;
use seawall_amqp::topology::QueueTopology;
use seawall_dist::deadletter::{
    ChangeOutcome, CopyOutcome, Cursor, DeadLetter, DeadLetterStore, DeadLetters, Edit, FailedReplay, Filter,
    GroupCount, LetterChange, LetterOrder, MemoryDeadLetters, Page, PutOutcome, Record, ReplayOutcome,
    ReplayRequest, ReplayStart,
};
use seawall_dist::messaging::{DeadLetterIntake, Delivery, HandlerError, PublisherReplayer};
use seawall_dist::{Publisher, StoreError, StoreFuture};

use crate::consume::{HandledMessages, Running, consumer, publish};
use crate::support::{declared, drain, length, message, publisher, queues, shared, until};

async fn letter(letters: &DeadLetters, queues: &QueueTopology, id: &str) -> Option<DeadLetter> {
    letters.get(&format!("amqp:{}:{id}", queues.queue())).await.unwrap()
}

fn reader(
    connection: &AmqpConnection,
    queues: &QueueTopology,
    letters: &DeadLetters,
) -> AmqpDeadLetterReader {
    let intake = DeadLetterIntake::new("amqp", "RabbitMQ-DLQ", letters.clone());
    AmqpDeadLetterReader::new(connection.clone(), queues.clone(), intake)
}

/// ADP-4: an error and a panic are attempted five times, apart by waits, and then the message is in the dead letter queue with every
/// attempt; an invalid message goes there at once. Replayed, it is processed again.
#[tokio::test]
async fn adp_4_poison_goes_to_the_dead_letters_with_its_evidence_and_can_be_replayed() {
    let connection = shared();
    let queues = declared(&connection, queues("poison")).await;
    let (seen, is_mended) = (HandledMessages::default(), Arc::new(AtomicBool::new(false)));
    let handler = {
        let (seen, is_mended) = (seen.clone(), is_mended.clone());
        move |delivery: Arc<Delivery>| {
            let attempt = seen.add(&delivery);
            let is_mended = is_mended.load(Ordering::SeqCst);
            async move {
                match delivery.message().event_id() {
                    _ if is_mended => Ok(()),
                    "fails" => Err(HandlerError::from(std::io::Error::other(format!("failure {attempt}")))),
                    "panics" => panic!("panic {attempt}"),
                    "invalid" => Err(HandlerError::invalid("no order number")),
                    "third time" if attempt < 3 => Err("not yet".into()),
                    _ => Ok(()),
                }
            }
        }
    };
    let running = Running::start(consumer(&connection, &queues, handler));
    let ids = ["fails", "panics", "invalid", "third time", "fine"];
    let batch = ids.map(|id| message(queues.queue(), id));
    assert!(publisher(&connection).publish(&batch).await.iter().all(Result::is_ok));
    until("three dead letters", async || length(&connection, queues.dead_letter_queue()).await == 3).await;
    assert_eq!(ids.map(|id| seen.of(id)), [5, 5, 1, 3, 1]);

    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let reading = Running::read(reader(&connection, &queues, &letters));
    until("letters", async || letters.search("", 10).await.unwrap().letters.len() == 3).await;
    reading.stop().await;
    assert_eq!(
        length(&connection, queues.dead_letter_queue()).await,
        0,
        "what the store has is acknowledged"
    );
    let fails = letter(&letters, &queues, "fails").await.unwrap().record;
    let errors: Vec<_> = fails.attempts.iter().filter_map(|attempt| attempt.error.clone()).collect();
    assert_eq!(errors, ["failure 1", "failure 2", "failure 3", "failure 4", "failure 5"]);
    assert_eq!((fails.fault.reason.as_str(), fails.origin.place.as_str()), ("attempts", queues.queue()));
    assert_eq!(fails.trace.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    let panics = letter(&letters, &queues, "panics").await.unwrap().record;
    assert_eq!(panics.fault.message.as_deref(), Some("the handler panicked: panic 5"));
    assert_eq!(letter(&letters, &queues, "invalid").await.unwrap().record.fault.reason, "invalid");

    is_mended.store(true, Ordering::SeqCst);
    let replayer = PublisherReplayer::new(Arc::new(publisher(&connection)));
    let id = format!("amqp:{}:fails", queues.queue());
    let outcome = letters.replay(&id, &ReplayRequest::new("key"), &replayer).await.unwrap();
    assert_eq!(outcome, ReplayOutcome::Replayed { generation: 1, repeated: false });
    until("the replay", async || seen.of("fails") == 6).await;
    running.stop().await;
    assert_eq!(length(&connection, queues.queue()).await, 0);
    assert_eq!(length(&connection, queues.dead_letter_queue()).await, 0);
}

/// ADP-4, CRD-7: what other programs send is dealt with too: without an id, with a time to live, another user, copies, and headers
/// that are no text.
#[tokio::test]
async fn adp_4_messages_of_other_programs_lose_nothing_on_their_way() {
    let connection = shared();
    let (queues, copies) =
        (declared(&connection, queues("foreign")).await, declared(&connection, queues("copies")).await);
    let channel = connection.channel().await.unwrap();
    let mut table = FieldTable::default();
    table.insert("number".into(), AMQPValue::LongInt(7));
    table.insert(
        "CC".into(),
        AMQPValue::FieldArray(vec![AMQPValue::LongString(copies.queue().into())].into()),
    );
    let properties = BasicProperties::default()
        .with_headers(table)
        .with_user_id("guest".into())
        .with_expiration("60000".into());
    for _ in 0..2 {
        let (options, body) = (BasicPublishOptions::default(), b"same");
        let sent = channel.basic_publish("".into(), queues.queue().into(), options, body, properties.clone());
        sent.await.unwrap().await.unwrap();
    }
    let seen = HandledMessages::default();
    let noted = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        noted.add(&delivery);
        async move {
            assert_eq!(delivery.message().header("number"), Some("7"));
            Err::<(), _>(std::io::Error::other("no"))
        }
    };
    let running = Running::start(consumer(&connection, &queues, handler));
    until("two dead letters", async || length(&connection, queues.dead_letter_queue()).await == 2).await;
    running.stop().await;
    assert_eq!(seen.total(), 10);
    assert_eq!(length(&connection, copies.queue()).await, 2, "retries make no further copies");
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let reading = Running::read(reader(&connection, &queues, &letters));
    until("two letters", async || letters.search("", 10).await.unwrap().letters.len() == 2).await;
    reading.stop().await;
}

/// TRAPS "DLQ write fails": a dead letter queue that is full refuses, and the message stays where it is until there is room.
#[tokio::test]
async fn adp_4_a_full_dead_letter_queue_loses_nothing() {
    let connection = shared();
    let queues = declared(&connection, queues("crowded").dead_letters_max(2)).await;
    publish(&connection, &queues, 0..20).await;
    let invalid = |_: Arc<Delivery>| async { Err::<(), _>(HandlerError::invalid("no")) };
    let running = Running::start(consumer(&connection, &queues, invalid));
    let mut taken = Vec::new();
    until("all letters", async || {
        let letters = drain(&connection, queues.dead_letter_queue()).await;
        taken.extend(
            letters.into_iter().map(|letter| letter.properties.message_id().as_ref().unwrap().to_string()),
        );
        taken.sort_unstable();
        taken.dedup();
        taken.len() == 20
    })
    .await;
    running.stop().await;
    assert_eq!(length(&connection, queues.queue()).await, 0);
}

/// ADP-4: a message whose headers have no room for evidence is put into the dead letter queue by the server, as it came.
#[tokio::test]
async fn adp_4_a_message_without_room_for_evidence_is_a_dead_letter_too() {
    let connection = shared();
    let queues = declared(&connection, queues("stuffed")).await;
    let channel = connection.channel().await.unwrap();
    let mut table = FieldTable::default();
    table.insert("stuff".into(), AMQPValue::LongString("x".repeat(110_000).into()));
    let properties = BasicProperties::default().with_headers(table).with_message_id("stuffed".into());
    let sent = channel.basic_publish(
        "".into(),
        queues.queue().into(),
        BasicPublishOptions::default(),
        b"x",
        properties,
    );
    sent.await.unwrap().await.unwrap();
    let fails = |_: Arc<Delivery>| async { Err::<(), _>(std::io::Error::other("no")) };
    let running = Running::start(consumer(&connection, &queues, fails));
    until("the letter", async || length(&connection, queues.dead_letter_queue()).await == 1).await;
    running.stop().await;
    let letters = DeadLetters::new(Arc::new(MemoryDeadLetters::new()));
    let reading = Running::read(reader(&connection, &queues, &letters));
    until("the letter", async || letter(&letters, &queues, "stuffed").await.is_some()).await;
    reading.stop().await;
    let record = letter(&letters, &queues, "stuffed").await.unwrap().record;
    assert_eq!(record.fault.reason, "refused");
    assert_eq!(record.fault.message.as_deref(), Some("RabbitMQ gave the message up: rejected"));
}

/// A store that can be away.
struct AwayStore {
    store: MemoryDeadLetters,
    is_away: AtomicBool,
}

/// CRD-7: while the store is away letters stay in their queue, and each is taken over when it is back.
#[tokio::test]
async fn crd_7_letters_wait_in_their_queue_while_the_store_is_away() {
    let connection = shared();
    let queues = declared(&connection, queues("parked")).await;
    let batch: Vec<_> = (0..6).map(|id| message(queues.dead_letter_queue(), id)).collect();
    assert!(publisher(&connection).publish(&batch).await.iter().all(Result::is_ok));
    let store = Arc::new(AwayStore { store: MemoryDeadLetters::new(), is_away: AtomicBool::new(true) });
    let letters = DeadLetters::new(store.clone());
    let alerts = Arc::new(HandledMessages::default());
    let reading = Running::read(reader(&connection, &queues, &letters));
    until("the attempt", async || length(&connection, queues.dead_letter_queue()).await < 6).await;
    reading.stop().await;
    until("all in the queue", async || length(&connection, queues.dead_letter_queue()).await == 6).await;
    store.is_away.store(false, Ordering::SeqCst);
    let intake = {
        let alerts = alerts.clone();
        DeadLetterIntake::new("amqp", "RabbitMQ-DLQ", letters.clone()).alert(move |record| {
            alerts.note(&record.origin.id);
        })
    };
    let reading = Running::read(AmqpDeadLetterReader::new(connection.clone(), queues.clone(), intake));
    until("all letters", async || alerts.len() == 6).await;
    until("an empty queue", async || length(&connection, queues.dead_letter_queue()).await == 0).await;
    reading.stop().await;
    assert_eq!(letters.search("", 10).await.unwrap().letters.len(), 6);
    assert_eq!(length(&connection, queues.dead_letter_queue()).await, 0, "counts on both sides");
}

impl DeadLetterStore for AwayStore {
    fn put<'a>(&'a self, record: &'a Record) -> StoreFuture<'a, PutOutcome> {
        if self.is_away.load(Ordering::SeqCst) {
            return Box::pin(async {
                Err(StoreError::without_cause("storing a letter", Fault::unreachable()))
            });
        }
        self.store.put(record)
    }

    fn get<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<DeadLetter>> {
        self.store.get(id)
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        order: LetterOrder,
        after: Option<&'a Cursor>,
        limit: u32,
    ) -> StoreFuture<'a, Page> {
        self.store.list(filter, order, after, limit)
    }

    fn counts<'a>(&'a self, filter: &'a Filter, limit: u32) -> StoreFuture<'a, Vec<GroupCount>> {
        self.store.counts(filter, limit)
    }

    fn change<'a>(&'a self, id: &'a str, change: LetterChange) -> StoreFuture<'a, ChangeOutcome> {
        self.store.change(id, change)
    }

    fn copy<'a>(&'a self, id: &'a str, edit: &'a Edit, copy_id: &'a str) -> StoreFuture<'a, CopyOutcome> {
        self.store.copy(id, edit, copy_id)
    }

    fn begin_replay<'a>(&'a self, id: &'a str, request: &'a ReplayRequest) -> StoreFuture<'a, ReplayStart> {
        self.store.begin_replay(id, request)
    }

    fn finish_replay<'a>(
        &'a self,
        id: &'a str,
        claim: u64,
        failure: Option<&'a FailedReplay>,
    ) -> StoreFuture<'a, bool> {
        self.store.finish_replay(id, claim, failure)
    }

    fn purge(&self, deleted: Duration, replayed: Duration, limit: u32) -> StoreFuture<'_, u64> {
        self.store.purge(deleted, replayed, limit)
    }
}
